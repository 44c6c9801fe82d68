"""PagedAttention in a real browser: block sizes and shared prefixes, without the server, equal to Python's numbers."""

import random
import re
from fractions import Fraction

from playwright.sync_api import Page as Tab

from explorer.estimators.paging import expected_unfilled, paging, place
from explorer.estimators.sharing import Sharing
from tests.browser.paged_attention_widget import settled
from tests.browser.watching import Visitor

JS = """(cases) => cases.map(([lengths, size, token, requests, prefix, tail]) => {
  const m = KV.pagedAttention, p = m.paging(lengths, size), s = m.sharing(requests, prefix, tail, size);
  const paged = [p.tokens, p.entries, p.slots, p.unfilled, p.tableBytes, m.expected(size), m.place(token, size)];
  return [...paged, s.apart, s.together, s.prefill];
})"""


def test_javascript_equals_python_over_random_settings(visit: Visitor) -> None:
    draw, cases = random.Random(16), []
    for _ in range(300):
        lengths = [draw.randint(1, 10 ** draw.randint(1, 6)) for _ in range(draw.randint(1, 64))]
        numbers = (draw.randint(0, 10**6), draw.randint(2, 32), draw.randint(0, 512), draw.randint(1, 128))
        cases.append([lengths, draw.choice([1, 2, 3, 16, 100, 512]), *numbers])
    got = visit("paged-attention").page.evaluate(JS, cases)
    for (lengths, size, token, requests, prefix, tail), js in zip(cases, got, strict=True):
        found = paging(lengths, size)
        full = prefix // size * size
        shared = Sharing(requests, prefix + tail, full, prefix - full, 1, size)
        assert js == [
            *(found.tokens, found.blocks, found.slots, found.unfilled, found.table_bytes),
            *(float(expected_unfilled(size)), list(place(token, size))),
            *(shared.apart_blocks, shared.shared_blocks, shared.saved_prefill_tokens),
        ]


def size_out(tab: Tab, name: str) -> str:
    return tab.locator(f'#paged-attention-size [data-out="{name}"]').inner_text()


def test_block_sizes_with_own_lengths(visit: Visitor) -> None:
    """34, 24 and 200 tokens in blocks of 16: 3 + 2 + 13 = 18 blocks, 288 - 258 = 30 empty slots of 128 KiB."""
    opened = visit("paged-attention?mix=own")
    tab = opened.page
    settled(tab)
    tab.wait_for_timeout(1_000)
    asked = len(opened.asked)
    names = ("tokens", "blocks", "unfilled", "each", "share", "waste", "table")
    shown = [size_out(tab, name) for name in names]
    assert shown == ["258", "18", "30", "10.00; (B − 1)/2 is 7.5", "10.42 %", "3.75 MiB", "72 B"]
    assert Fraction(30, 288) == Fraction(625, 6000)
    assert tab.locator("#paged-attention-size .pa-formula").inner_text() == (
        "logical block ⌊33 / 16⌋ = 2, offset 33 mod 16 = 1"
    )
    tab.locator('#paged-attention-size [data-control="block"]').press("Home")
    assert [size_out(tab, name) for name in ("blocks", "unfilled", "table")] == ["258", "0", "1.01 KiB"]
    tab.fill('#paged-attention-size [data-control="lengths"]', "34, zwei")
    assert "Whole numbers" in tab.locator("#paged-attention-size .pa-say").inner_text()
    assert size_out(tab, "tokens") == "258", "the last lengths that could be read stay"
    assert len(opened.asked) == asked


def test_lengths_that_fill_their_blocks_leave_nothing_to_draw(visit: Visitor) -> None:
    """No empty slot at any block size: no line, no name, and no coordinate that is not a number (a console error)."""
    tab = visit("paged-attention?mix=own&lengths=512").page
    plot = tab.locator("#paged-attention-size .pa-plot")
    text = plot.text_content() or ""
    assert "block tables" in text and "empty ends" not in text
    assert size_out(tab, "waste") == "0 B"


def test_a_prefix_one_token_short_costs_a_block_each(visit: Visitor) -> None:
    """80 tokens fill five blocks of 16, 79 fill four; with 30 own ones each request has seven."""
    tab = visit("paged-attention?prefix=80&requests=8").page
    out = lambda name: tab.locator(f'#paged-attention-prefix [data-out="{name}"]').inner_text()  # noqa: E731
    assert [out(name) for name in ("apart", "together", "saved")] == ["56", "21", "35 blocks (62.5 %)"]
    assert out("prefill") == "560 tokens"
    tab.locator('#paged-attention-prefix [data-control="prefix"]').press("ArrowLeft")
    assert [out(name) for name in ("together", "prefill")] == ["28", "448 tokens"]
    rows = tab.locator("#paged-attention-prefix .pa-row")
    assert rows.count() == 4 and rows.first.locator(".is-shared").count() == 4
    first, second = (re.findall(r"\d+", rows.nth(i).inner_text()) for i in (0, 1))
    assert first[:4] == second[:4] and not set(first[4:]) & set(second[4:])

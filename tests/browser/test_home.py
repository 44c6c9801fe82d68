"""Home in a real browser: the bars equal the estimator's bytes while they are moved, and the card fills by itself."""

from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page as Tab

from explorer.specs.layers import FullAttention
from explorer.specs.units import binary, count
from pages import home
from pages._content import label
from tests.browser.conftest import Visitor

# The first start on a machine downloads and converts the weights.
MODEL_MS = 300_000
ROWS = {"mha": 32, "gqa": 8, "mqa": 1}


def python_bytes(heads: int, tokens: int) -> int:
    """The same size by the specification's arithmetic."""
    layer = FullAttention(heads, 128, 128)
    return 32 * layer.bytes_at(tokens, home.BF16_BYTES)


def shown(tab: Tab) -> dict[str, int]:
    rows = {key: tab.locator(f".home-row.is-{key}") for key in (*ROWS, "yours")}
    return {key: int(row.get_attribute("data-bytes") or 0) for key, row in rows.items()}


def sliders(tab: Tab) -> tuple[object, object]:
    return tab.locator('[data-control="choice"]'), tab.locator('[data-control="tokens"]')


def test_it_opens_with_64_16_and_2_gib(visit: Visitor) -> None:
    tab = visit("").page
    assert shown(tab) == {"mha": 64 * 2**30, "gqa": 16 * 2**30, "mqa": 2 * 2**30, "yours": 16 * 2**30}
    assert "64.00 GiB" in tab.locator(".is-mha").inner_text()
    assert "17,179,869,184 B" in tab.locator(".home-formula").inner_text()
    assert tab.locator(".home-formula .kv-computed").is_visible()


def test_the_sliders_move_every_bar_by_the_formula_without_a_request(visit: Visitor) -> None:
    opened = visit("")
    tab = opened.page
    tab.wait_for_selector("#home-card code", timeout=MODEL_MS)  # the card has its last answer
    tab.wait_for_timeout(1000)
    before = opened.asked
    choice, tokens = sliders(tab)
    widths = []
    for heads in (8, 4, 2, 1):
        assert shown(tab)["yours"] == python_bytes(heads, home.NUM_TOKENS)
        widths.append(tab.locator(".is-yours .home-fill").bounding_box()["width"])
        choice.press("ArrowLeft")
    assert widths == sorted(widths, reverse=True) and widths[0] == pytest.approx(8 * widths[-1], rel=0.1)
    choice.press("End")
    tokens.press("Home")
    assert shown(tab) == {key: python_bytes(heads, 1024) for key, heads in (ROWS | {"yours": 32}).items()}
    assert opened.asked == before


def test_the_question_is_answered_where_the_bar_meets_the_line(visit: Visitor) -> None:
    tab = visit("?kv_heads=32&tokens=25600").page
    weights = home.bars_props("en")["weight_bytes"]
    assert python_bytes(32, 25_600) < weights < python_bytes(32, 26_624)
    verdict = tab.locator(".home-verdict")
    under = verdict.inner_text()
    assert binary(python_bytes(32, 25_600)) in under
    sliders(tab)[1].press("ArrowRight")
    assert count(26_624) in verdict.inner_text() and verdict.inner_text() != under
    over = tab.locator(".is-mha")
    assert "is-over" in (over.get_attribute("class") or "")
    line = tab.locator(".is-mha .home-line").bounding_box()["x"]
    fill = tab.locator(".is-mha .home-fill").bounding_box()
    assert fill["x"] + fill["width"] == pytest.approx(line, rel=0.03)


def test_the_address_keeps_what_was_set_and_survives_nonsense(visit: Visitor) -> None:
    tab = visit("").page
    choice, tokens = sliders(tab)
    choice.press("ArrowRight")
    tokens.press("ArrowLeft")
    tab.wait_for_function("location.search.includes('tokens')")
    assert parse_qs(urlsplit(tab.url).query) == {"kv_heads": ["16"], "tokens": ["130048"]}
    tab.click("#kv-language")
    tab.wait_for_selector(".home-row.is-yours[data-bytes]")
    assert urlsplit(tab.url).path == "/zh-home" and shown(tab)["yours"] == python_bytes(16, 130_048)
    odd = visit("?kv_heads=3&tokens=%3Cb%3E").page
    assert shown(odd)["yours"] == python_bytes(8, home.NUM_TOKENS)


@pytest.mark.model
@pytest.mark.parametrize(("path", "lang"), [("", "en"), ("zh-home", "zh")])
def test_the_card_fills_by_itself_and_then_asks_no_more(
    path: str, lang: str, visit: Visitor, axe: Callable[[Tab], None]
) -> None:
    opened = visit(path)
    tab = opened.page
    tab.wait_for_selector("#home-card code", timeout=MODEL_MS)
    card = tab.locator("#home-card").inner_text()
    for part in ("torch", "SmolLM2-135M-Instruct", "bf16", "269,030,016 B"):
        assert part in card
    assert label("home", lang, "card.state") in card
    tab.wait_for_timeout(2500)
    before = len(opened.asked)
    tab.wait_for_timeout(2500)
    assert len(opened.asked) == before
    axe(tab)


def test_every_link_of_the_page_leads_to_a_page(visit: Visitor) -> None:
    tab = visit("zh-home").page
    links = tab.eval_on_selector_all(".home-grid a", "nodes => nodes.map(n => n.href)")
    assert len(links) >= 6
    for link in sorted(set(links)):
        assert "/zh-" in link
        assert tab.request.get(link).ok

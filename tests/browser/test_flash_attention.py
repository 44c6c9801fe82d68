"""FlashAttention in a real browser: what it draws and says is what it computed, and no input does harm."""

import math
import re

import pytest

from explorer.estimators.attention_scores import Attention
from pages.flash_attention import BLOCK, PRESETS, VALUES
from tests.browser.flash_attention_widget import BYTES, MERGE, PAGE, WIDGET, change, go, out, softmax, table
from tests.browser.watching import Visitor, draws_within_a_frame, query


def test_a_late_large_score_rescales_what_was_summed(visit: Visitor) -> None:
    tab = visit(PAGE).page
    scores = [float(word) for word in PRESETS["late"].split(",")]
    before = math.fsum(math.exp(s - 2.3) for s in scores[:8])
    factor, after = math.exp(2.3 - 5.5), math.fsum(math.exp(s - 5.5) for s in scores)
    assert after < before
    go(tab, "rescale.2")
    assert f"{factor:.4g}" in out(tab, "sums") and f"{before:.4g}" in out(tab, "sums")
    found = table(tab, "state")
    assert found["before"][:2] == ["2.3", f"{before:.4g}"]
    assert found["rescaled"][:2] == ["5.5", f"{factor * before:.4g}"]
    assert found["after"] == ["…", "…", "…"]
    go(tab, "add.2")
    assert table(tab, "state")["after"][:2] == ["5.5", f"{after:.4g}"]
    wanted = softmax(scores, [list(v) for v in VALUES[:12]])
    shown = "(" + ", ".join(f"{x:.4g}" for x in wanted) + ")"
    assert [row[-1] for row in table(tab, "end").values()] == [shown, shown]


def test_the_lower_bars_add_up_to_l(visit: Visitor) -> None:
    tab = visit(PAGE).page
    for frame in ("add.0", "rescale.1", "add.1", "rescale.2", "done.2"):
        go(tab, frame)
        heights = tab.evaluate(
            "[...document.querySelectorAll('.fa-plot .fa-weight')].map((r) => +r.getAttribute('height'))"
        )
        state = table(tab, "state")
        wanted = float(state["rescaled" if frame.startswith("rescale") else "after"][1])
        full = 74.0  # px of a weight of 1
        assert sum(heights) / full == pytest.approx(wanted, rel=2e-3, abs=2e-3), frame
    bars = tab.evaluate("[...document.querySelectorAll('.fa-plot .fa-bar')].map((r) => +r.getAttribute('height'))")
    scores = [float(word) for word in PRESETS["late"].split(",")]
    assert [h / max(bars) for h in bars] == pytest.approx([max(abs(s) / 5.5, 1 / max(bars)) for s in scores], abs=1e-3)


def test_equal_huge_and_masked_scores(visit: Visitor) -> None:
    tab = visit(PAGE).page
    change(tab, lambda: tab.click("[data-preset=equal]"))
    go(tab, "done.2")
    mean = [sum(v[d] for v in VALUES[:12]) / 12 for d in (0, 1)]
    assert table(tab, "state")["after"][:2] == ["1.5", "12"]
    assert table(tab, "end")["in blocks: u / l so far"][-1] == f"({mean[0]:.4g}, {mean[1]:.4g})"

    change(tab, lambda: tab.click("[data-preset=huge]"))
    assert tab.locator(WIDGET).get_attribute("data-frame") == "start.0", "another row starts anew"
    assert table(tab, "bare") == {name: ["∞", "∞", "(NaN, NaN)"] for name in ("fp16", "fp32")}
    go(tab, "done.2")
    assert not any(word in str(table(tab, "end")) for word in ("NaN", "∞"))

    change(tab, lambda: tab.click("[data-preset=masked]"))
    go(tab, "add.0")
    assert table(tab, "state")["after"] == ["−∞", "0", "(0, 0)"]
    assert "No visible Key" in out(tab, "gap")
    go(tab, "done.2")
    scores = [float(word) for word in PRESETS["masked"].split(",")]
    wanted = softmax(scores, [list(v) for v in VALUES[:12]])
    assert table(tab, "end")["in blocks: u / l so far"][-1] == f"({wanted[0]:.4g}, {wanted[1]:.4g})".replace("-", "−")
    assert "NaN" not in tab.locator(WIDGET).inner_text()


def test_own_scores_are_taken_and_wrong_ones_are_not(visit: Visitor) -> None:
    tab = visit(PAGE).page
    field = tab.locator(f'{WIDGET} [data-control="scores"]')
    change(tab, lambda: field.fill("0, 0"))
    go(tab, "done.0")
    assert table(tab, "end")["in blocks: u / l so far"] == ["4", "(0.75, −0.5)"]
    assert query(tab)["scores"] == "0, 0"
    change(tab, lambda: field.fill("0，-INF"))
    assert table(tab, "end")["in blocks: u / l so far"][-1] == "(1, 0)"
    for wrong in ("1", "", "1, two", "1, 2, 1001", "nan, 1", "1e3, 2", ", ".join(["1"] * 25), "<b>, 1"):
        change(tab, lambda wrong=wrong: field.fill(wrong))
        assert field.get_attribute("data-wrong") is not None, wrong
        assert "Not taken" in tab.locator(".fa-wrong").first.inner_text()
        assert table(tab, "end")["in blocks: u / l so far"][-1] == "(1, 0)"
    change(tab, lambda: field.fill("-inf, -inf"))
    assert tab.locator(".fa-wrong").first.inner_text() == ""
    assert "0 / 0" in out(tab, "gap") and "NaN" in table(tab, "bare")["fp32"][2]


def test_order_and_block_size_change_the_way_and_not_the_result(visit: Visitor) -> None:
    tab = visit(f"{PAGE}?order=reversed&block=5").page
    turns = tab.locator(".fa-plot .fa-turn").all_text_contents()
    assert turns == ["3", "2", "1"]
    go(tab, "done.2")
    reversed_output = table(tab, "end")["in blocks: u / l so far"][-1]
    change(tab, lambda: tab.locator(f'{WIDGET} [data-control="order"]').select_option("shuffled"))
    assert tab.locator(".fa-plot .fa-turn").all_text_contents() not in (turns, turns[::-1])
    assert tab.locator(WIDGET).get_attribute("data-frame") == "done.2", "who was at the end stays there"
    assert table(tab, "end")["in blocks: u / l so far"][-1] == reversed_output
    change(tab, lambda: tab.locator(f'{WIDGET} [data-control="block"]').press("Home"))
    assert table(tab, "end")["in blocks: u / l so far"][-1] == reversed_output
    assert "36 runs" in out(tab, "every")
    power = out(tab, "every").split("10⁻")[-1].rstrip(".")
    assert power in ("¹⁵", "¹⁶") or out(tab, "every").endswith(" 0.")


def test_the_second_part_follows_the_first_figure(visit: Visitor) -> None:
    tab = visit(PAGE).page
    change(tab, lambda: tab.locator(f'{WIDGET} [data-control="scores"]').fill("0, 1, 2"), MERGE)
    cut = tab.locator(f'{MERGE} [data-control="cut"]')
    assert cut.get_attribute("max") == "2"
    change(tab, lambda: cut.press("Home"), MERGE)
    found = table(tab, "merge")
    assert found["Keys"] == ["1", "2–3", "1–3", "1–3"]
    total = math.exp(-2) + math.exp(-1) + 1
    share = math.exp(-2) / total
    assert found["share exp(LSE part − LSE)"][:2] == [f"{share:.4g}", f"{1 - share:.4g}"]
    assert found["LSE = m + ln l"] == [
        "0",
        f"{2 + math.log(1 + math.exp(-1)):.4g}",
        *[f"{2 + math.log(total):.4g}"] * 2,
    ]
    assert found["output u / l"][2] == found["output u / l"][3]
    change(tab, lambda: tab.locator(f'{WIDGET} [data-control="scores"]').fill("-inf, 1, 2"), MERGE)
    assert table(tab, "merge")["share exp(LSE part − LSE)"][:2] == ["0", "1"]
    assert "NaN" not in tab.locator(MERGE).inner_text()
    assert "sees nothing" in out(tab, "merge-mean")


def test_the_documents_numbers_are_the_first_ones_shown(visit: Visitor) -> None:
    tab = visit(PAGE).page
    assert "2.00 GiB = 2,147,483,648 B" in out(tab, "head")
    assert "256.00 GiB = 274,877,906,944 B" in out(tab, "all")
    assert "1.02 GiB = 1,090,519,040 B" in out(tab, "kept")
    change(tab, lambda: tab.locator(f'{BYTES} [data-control="phase"]').select_option("decode"), BYTES)
    assert "64.00 KiB" in out(tab, "head") and "8.00 MiB" in out(tab, "all")
    assert "1.02" in out(tab, "moved"), "little to save in decode"
    assert query(tab) == {"b_phase": "decode"}
    assert tab.locator(f'{BYTES} [data-control="block_q"]').is_disabled(), "one Query, whatever the tile"


def test_what_a_tile_holds_and_when_flash_moves_more(visit: Visitor) -> None:
    """128 Queries of 128 in bf16: 32 KiB of Queries, 64 KiB of u, 1 KiB of m and l. 2 B / d falls below 1."""
    tab = visit(PAGE).page
    assert out(tab, "tile") == "97.00 KiB = 99,328 B"
    assert "moves more" not in out(tab, "moved")
    tile = tab.locator(f'{BYTES} [data-control="block_q"]')
    change(tab, lambda: tile.select_option("16"), BYTES)
    assert out(tab, "tile") == "12.13 KiB = 12,416 B"
    assert "a ratio of 0.25" in out(tab, "moved") and "moves more" in out(tab, "moved")


def test_the_question_has_the_answer_that_it_should(visit: Visitor) -> None:
    """bf16: 131,072 squared x 2 B = 34.4 GB, 262,144 squared x 2 B = 137.4 GB."""
    tab = visit(f"{PAGE}?tokens=131072").page
    assert "34,359,738,368 B" in out(tab, "head")
    change(tab, lambda: tab.locator(f'{BYTES} [data-control="tokens"]').press("ArrowRight"), BYTES)
    assert "137,438,953,472 B" in out(tab, "head") and "8.13 GiB" in out(tab, "kept")


def test_the_flow_is_true_to_scale(visit: Visitor) -> None:
    tab = visit(f"{PAGE}?tokens=4096&b_head_dim=64&b_block_q=32").page
    one = Attention(4_096, 4_096, head_dim=64)
    moves = [*one.naive_moves(), *one.flash_moves(32)]
    most = max(move.num_bytes for move in moves)
    bars = tab.evaluate(
        "[...document.querySelectorAll('.fa-flow .fa-share')].map((r) => [+r.getAttribute('width'), +r.dataset.share])"
    )
    room = bars[1][0] / bars[1][1]
    for move, (width, share) in zip(moves, bars, strict=True):
        assert share == pytest.approx(move.num_bytes / most, rel=1e-9)
        assert width == pytest.approx(max(0.75, room * share), abs=0.02)


def test_sliders_draw_at_once_and_ask_nobody(visit: Visitor) -> None:
    opened = visit(PAGE)
    tab = opened.page
    tab.wait_for_timeout(1_000)
    before = len(opened.asked)
    for widget, names in ((WIDGET, ("block",)), (BYTES, ("tokens", "heads", "batch"))):
        times = []
        for name in names:
            for key in ("End", "Home", *["ArrowRight"] * 4):
                change(
                    tab, lambda w=widget, n=name, k=key: tab.locator(f'{w} [data-control="{n}"]').first.press(k), widget
                )
                times.append(float(tab.locator(widget).get_attribute("data-draw-ms") or "nan"))
        draws_within_a_frame(times)
    assert len(opened.asked) == before, opened.asked[before:]


def test_wrong_addresses_do_no_harm(visit: Visitor) -> None:
    tab = visit(f"{PAGE}?scores=x&block=0&order=none&step=99&tokens=-1&heads=9999&b_dtype=int4&cut=77").page
    assert out(tab, "head").endswith("2,147,483,648 B")
    assert len(table(tab, "end")) == 2 and BLOCK == 4
    assert tab.locator(f'{WIDGET} [data-control="block"]').input_value() == "4"


def test_measured_on_the_page(visit: Visitor) -> None:
    small = {"max_len": 4096, "num_heads": 1, "head_dim": 64, "rounds": 1}
    tab = visit(f"{PAGE}?" + "&".join(f"flash-attention.{name}={value}" for name, value in small.items())).page
    panel = tab.locator("#lab-flash-attention")
    panel.get_by_role("button", name="Measure", exact=True).click()
    tab.wait_for_function(
        "/grows with the power/.test(document.querySelector('#lab-flash-attention').textContent)", timeout=60_000
    )
    assert panel.locator("tbody tr").count() == 4, "512 to 4,096: the settings of the address"
    assert re.search(r"power \d\.\d\d of the length and time with \d\.\d\d; with flash,", panel.inner_text())

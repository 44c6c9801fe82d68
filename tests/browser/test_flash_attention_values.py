"""FlashAttention in a real browser: the reader's own Values, the terms of a block, and the figure at its narrowest."""

import itertools
import math

import pytest

from pages.flash_attention import PRESETS
from tests.browser.flash_attention_widget import PAGE, WIDGET, change, go, out, softmax, table
from tests.browser.watching import Visitor


def test_own_values_are_summed_and_wrong_ones_are_not_taken(visit: Visitor) -> None:
    tab = visit(f"{PAGE}?scores=0,1,2,-inf,1&block=2").page
    field = tab.locator(f'{WIDGET} [data-control="values"]')
    for written, values in (("(1, 0), (0, 1)", [[1, 0], [0, 1]]), ("2 -1；0.5，4, −3 0", [[2, -1], [0.5, 4], [-3, 0]])):
        change(tab, lambda written=written: field.fill(written))
        go(tab, "done.2")
        row = [values[j % len(values)] for j in range(5)]
        wanted = "(" + ", ".join(f"{x:.4g}" for x in softmax([0, 1, 2, -math.inf, 1], row)).replace("-", "−") + ")"
        assert table(tab, "end")["in blocks: u / l so far"][-1] == wanted, "fewer Values than Keys begin again"
        assert table(tab, "merge")["output u / l"][2] == wanted, "the second part takes them too"
        shown = tab.locator(".fa-plot .fa-value").all_text_contents()
        assert [float(x.replace("−", "-")) for x in shown] == [v[d] for d in (0, 1) for v in row]
    for wrong in ("1", "1, 2, 3", "1 -inf", "1 101", "a b", ", ".join(["(1, 1)"] * 25)):
        change(tab, lambda wrong=wrong: field.fill(wrong))
        assert field.get_attribute("aria-invalid") == "true", wrong
        assert "Not taken" in tab.locator(".fa-wrong").all_inner_texts()[1]
        assert table(tab, "end")["in blocks: u / l so far"][-1] == wanted
    assert tab.locator(".fa-wrong").all_inner_texts()[0] == "", "the scores are right"
    change(tab, lambda: field.fill(" "))
    assert tab.locator(".fa-plot .fa-value").all_text_contents()[:5] == ["1", "0.5", "−1", "0", "2"]


def test_a_block_of_six_is_added_term_by_term(visit: Visitor) -> None:
    tab = visit(PAGE).page
    go(tab, "add.2")
    scores = [float(word) for word in PRESETS["late"].split(",")][8:]
    weights = [f"{math.exp(s - 5.5):.4g}" for s in scores]
    assert f"{' + '.join(weights)} = {math.fsum(math.exp(s - 5.5) for s in scores):.4g}" in out(tab, "sums")
    assert f"{weights[1]} × (3, 1) + {weights[2]} × (−1.5, −1)" in out(tab, "sums")
    change(tab, lambda: tab.locator(f'{WIDGET} [data-control="block"]').fill("7"))
    go(tab, "add.0")
    assert "weighted Values" not in out(tab, "sums"), "seven terms are too many to read"


def test_the_line_of_m_is_what_the_bars_below_are_measured_against(visit: Visitor) -> None:
    """In the block that brings 5.5: still 2.3 when it arrives, 5.5 from the rescaling on."""
    tab = visit(PAGE).page
    lines = """[...document.querySelectorAll('.fa-plot .fa-max')]
        .map((p) => [p.matches('.is-other'), +/ ([\\d.]+)H/.exec(p.getAttribute('d'))[1]])"""
    tops = "[...document.querySelectorAll('.fa-plot .fa-bar')].map((r) => +r.getAttribute('y'))"
    for frame, solid, other in (("read.2", 7, 9), ("rescale.2", 9, 7), ("add.2", 9, None)):
        go(tab, frame)
        at, found = tab.evaluate(tops), dict(tab.evaluate(lines))
        assert found.pop(False) == pytest.approx(at[solid], abs=0.02), frame
        assert found == ({} if other is None else {True: pytest.approx(at[other], abs=0.02)}), frame
        names = sorted(tab.locator(".fa-plot text.fa-mark").all_text_contents())
        assert names == (["m", "v₁", "v₂"] if other is None else ["m", "m′", "v₁", "v₂"])


def test_many_small_blocks_on_a_phone_are_numbered_without_collisions(visit: Visitor) -> None:
    row = ",".join(str(j % 5) for j in range(24))
    tab = visit(f"{PAGE}?scores={row}&block=1&step=34", width=390).page
    boxes = """(name) => [...document.querySelectorAll(name)].map((t) => t.getBoundingClientRect())
        .map((r) => [r.left, r.right]).sort((a, b) => a[0] - b[0])"""
    for name in (".fa-plot .fa-turn", ".fa-plot .fa-value", ".fa-plot .fa-key"):
        found = tab.evaluate(boxes, name)
        assert len(found) >= 6
        assert all(left >= right - 1.5 for (_, right), (left, _) in itertools.pairwise(found)), name

"""FlashAttention in a real browser: its arithmetic equals Python's, and what it draws and says is what it computed."""

import math
import random
import struct

import pytest
from playwright.sync_api import Page as Tab

from explorer.estimators.attention_scores import Attention, moved
from pages.flash_attention import BLOCK, HEAD_DIMS, LIMITS, MOST_KEYS, PRESETS, TILES, VALUES
from tests.browser.watching import Visitor, query

PAGE = "flash-attention"
WIDGET, MERGE, BYTES = (f"#{name} .kv-widget" for name in (PAGE, f"{PAGE}-merge", f"{PAGE}-bytes"))

# JSON knows no infinity: "-inf", "inf" and "nan" travel as words.
OUT = """const out = (x) => (Array.isArray(x) ? x.map(out) : typeof x !== 'number' ? x : Number.isNaN(x) ? 'nan'
  : x === Infinity ? 'inf' : x === -Infinity ? '-inf' : x);
const into = (x) => (Array.isArray(x) ? x.map(into) : x === '-inf' ? -Infinity : x);"""
RUN = f"""(cases) => {{ {OUT}
  const m = KV.flashAttention, line = (t) => [t.at, t.factor, t.after.m, t.after.l, t.after.u];
  return cases.map(([scores, values, size, order]) => {{
    const s = into(scores), steps = m.run(s, values, size, order), last = steps[steps.length - 1].after;
    return out([...steps.map(line), [m.output(last), m.whole(s, values).output]]);
  }});
}}"""
JOIN = f"""(cases) => {{ {OUT}
  const m = KV.flashAttention, part = (s, v) => m.fold(m.start(v[0].length), s, v).after;
  return cases.map(([scores, values, cut]) => {{
    const s = into(scores), halves = [[s.slice(0, cut), values.slice(0, cut)], [s.slice(cut), values.slice(cut)]];
    const joined = m.merge(...halves.map(([some, theirs]) => part(some, theirs)));
    return out([joined.m, joined.l, joined.u, m.lse(joined), m.output(joined), m.whole(s, values).output]);
  }});
}}"""
SIZES = """(cases) => cases.map((s) => {
  const m = KV.flashBytes, list = (moves) => moves.map(([name, n]) => [name, String(n)]);
  const sums = [m.head(s), m.scores(s), m.output(s), m.lse(s), m.flops(s), m.moved(m.naive(s)), m.moved(m.flash(s))];
  return [...sums.map(String), list(m.naive(s)), list(m.flash(s))];
})"""


def number(word: object) -> float:
    return float(word)  # type: ignore[arg-type]


def exp(x: float) -> float:
    return 0.0 if x == -math.inf else math.exp(x)


def softmax(scores: list[float], values: list[list[float]]) -> list[float]:
    """Over the whole row, with exactly rounded sums; 0 where nothing is visible."""
    top = max(scores)
    if top == -math.inf:
        return [0.0] * len(values[0])
    weights = [exp(s - top) for s in scores]
    total = math.fsum(weights)
    return [math.fsum(w * v[d] for w, v in zip(weights, values, strict=True)) / total for d in range(len(values[0]))]


def online(scores: list[float], values: list[list[float]], blocks: list[list[int]]) -> list[list]:
    """Each block's factor and the state after it, written down once more."""
    m, total, u, steps = -math.inf, 0.0, [0.0] * len(values[0]), []
    for at in blocks:
        new = max(m, *(scores[j] for j in at))
        base = 0.0 if new == -math.inf else new
        factor = exp(m - base)
        total = factor * total + sum(exp(scores[j] - base) for j in at)
        u = [factor * x + sum(exp(scores[j] - base) * values[j][d] for j in at) for d, x in enumerate(u)]
        m = new
        steps.append([factor, m, total, u])
    return steps


def rows(draw: random.Random, count: int) -> list[tuple[list[float], list[list[float]]]]:
    """Random rows: flat and steep ones, some Keys masked, now and then all of them."""
    made = []
    for _ in range(count):
        n, spread, dim = draw.randint(2, MOST_KEYS), draw.choice([0.0, 1.0, 10.0, 500.0]), draw.randint(1, 3)
        masked = draw.choice([0.0, 0.0, 0.3, 0.8, 1.0])
        scores = [-math.inf if draw.random() < masked else draw.uniform(-spread, spread) for _ in range(n)]
        made.append((scores, [[draw.uniform(-3, 3) for _ in range(dim)] for _ in range(n)]))
    return made


def sent(scores: list[float]) -> list:
    return ["-inf" if s == -math.inf else s for s in scores]


def out(tab: Tab, name: str) -> str:
    return tab.locator(f'[data-out="{name}"]').inner_text()


def table(tab: Tab, name: str) -> dict[str, list[str]]:
    found = tab.locator(f"[data-table={name}] tbody tr").all()
    texts = [row.locator("th, td").all_inner_texts() for row in found]
    return {row[0]: row[1:] for row in texts}


def change(tab: Tab, action, widget: str = WIDGET) -> None:
    """Do something and wait until the widget has drawn again."""
    before = int(tab.locator(widget).get_attribute("data-renders") or 0)
    action()
    tab.wait_for_function(f"Number(document.querySelector('{widget}').dataset.renders) > {before}")


def go(tab: Tab, frame: str) -> None:
    """Step on until the first figure shows `frame`, such as "rescale.2"."""
    tab.locator(f'{WIDGET} .kv-player input[type="range"]').press("Home")
    for _ in range(80):
        if tab.locator(WIDGET).get_attribute("data-frame") == frame:
            return
        tab.locator(f"{WIDGET} .kv-play-bar button").nth(2).click()
    pytest.fail(f"there is no frame {frame}")


def test_online_softmax_equals_python_over_random_rows(visit: Visitor) -> None:
    draw = random.Random(13)
    cases = []
    for scores, values in rows(draw, 250):
        cases.append((scores, values, draw.randint(1, MOST_KEYS), draw.choice(["given", "reversed", "shuffled"])))
    got = visit(PAGE).page.evaluate(RUN, [[sent(s), v, size, order] for s, v, size, order in cases])
    blank = 0
    for (scores, values, size, order), (*steps, (flash, whole)) in zip(cases, got, strict=True):
        blocks = [step[0] for step in steps]
        lying = [list(range(i, min(i + size, len(scores)))) for i in range(0, len(scores), size)]
        assert sorted(blocks) == lying, "every Key once"
        assert {"given": blocks == lying, "reversed": blocks == lying[::-1]}.get(
            order, len(lying) == 1 or blocks != lying
        )
        for step, (factor, m, total, u) in zip(steps, online(scores, values, blocks), strict=True):
            assert number(step[1]) == pytest.approx(factor, rel=1e-12, abs=1e-300)
            assert number(step[2]) == m
            assert number(step[3]) == pytest.approx(total, rel=1e-12)
            assert step[4] == pytest.approx(u, rel=1e-11, abs=1e-12)
        wanted = softmax(scores, values)
        assert flash == pytest.approx(wanted, rel=1e-11, abs=1e-12)
        assert whole == pytest.approx(wanted, rel=1e-11, abs=1e-12)
        blank += max(scores) == -math.inf
    assert blank > 5, "rows without a visible Key occur"


def test_two_parts_joined_are_the_whole(visit: Visitor) -> None:
    draw = random.Random(14)
    cases = [(scores, values, draw.randint(1, len(scores) - 1)) for scores, values in rows(draw, 200)]
    got = visit(PAGE).page.evaluate(JOIN, [[sent(s), v, cut] for s, v, cut in cases])
    for (scores, values, _), (m, total, u, lse, joined, whole) in zip(cases, got, strict=True):
        top = max(scores)
        assert number(m) == top
        base = 0.0 if top == -math.inf else top
        wanted = math.fsum(exp(s - base) for s in scores)
        assert total == pytest.approx(wanted, rel=1e-12)
        assert number(lse) == (-math.inf if wanted == 0 else pytest.approx(top + math.log(wanted), rel=1e-12))
        assert u == pytest.approx([x * wanted for x in softmax(scores, values)], rel=1e-11, abs=1e-12)
        assert joined == pytest.approx(whole, rel=1e-11, abs=1e-12)


def test_fp16_is_rounded_as_python_rounds_it(visit: Visitor) -> None:
    draw = random.Random(16)
    xs = [draw.choice([-1, 1]) * 2 ** draw.uniform(-26, 17) for _ in range(400)]
    xs += [0.0, 65_504.0, 65_519.99, 65_520.0, 2**-24, 2**-25, 1.5 * 2**-24, 2_049.0, 2_051.0]
    got = visit(PAGE).page.evaluate(f"(xs) => {{ {OUT} return out(xs.map(KV.flashAttention.half)); }}", xs)
    for x, half in zip(xs, got, strict=True):
        try:
            (wanted,) = struct.unpack("<e", struct.pack("<e", x))
        except OverflowError:
            wanted = math.copysign(math.inf, x)
        assert number(half) == wanted, x
    assert "inf" in got and 65_504 in got


def test_stored_and_moved_bytes_equal_the_estimator(visit: Visitor) -> None:
    draw = random.Random(256)
    types, cases = {2: "bf16", 4: "fp32"}, []
    for _ in range(300):
        tokens = int(2 ** draw.uniform(0, math.log2(LIMITS["tokens"])))
        case = {name: draw.randint(1, LIMITS[name]) for name in ("heads", "batch")}
        case |= {"q_len": draw.choice([1, tokens]), "kv_len": tokens, "block_q": draw.choice(TILES)}
        cases.append(case | {"head_dim": draw.choice(HEAD_DIMS), "element_bytes": draw.choice([2, 4])})
    got = visit(PAGE).page.evaluate(SIZES, cases)
    for s, (*sums, naive, flash) in zip(cases, got, strict=True):
        dtype = types[s["element_bytes"]]
        one = Attention(s["q_len"], s["kv_len"], s["heads"], s["batch"], s["head_dim"], dtype)
        moves = (one.naive_moves(), one.flash_moves(s["block_q"]))
        kept = [one.head_score_bytes, one.score_bytes, one.output_bytes, one.lse_bytes, one.flops]
        assert sums == [str(n) for n in (*kept, *map(moved, moves))], s
        assert [naive, flash] == [[[move.name, str(move.num_bytes)] for move in found] for found in moves], s


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
        assert "Not taken" in tab.locator(".fa-wrong").inner_text()
        assert table(tab, "end")["in blocks: u / l so far"][-1] == "(1, 0)"
    change(tab, lambda: field.fill("-inf, -inf"))
    assert tab.locator(".fa-wrong").inner_text() == ""
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
    most = max(moved(one.naive_moves()), moved(one.flash_moves(32)))
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
    before, times = len(opened.urls), []
    for widget, name in ((WIDGET, "block"), (BYTES, "tokens"), (BYTES, "heads"), (BYTES, "batch")):
        for key in ("End", "Home", "ArrowRight", "ArrowRight"):
            change(tab, lambda w=widget, n=name, k=key: tab.locator(f'{w} [data-control="{n}"]').first.press(k), widget)
            times.append(float(tab.locator(widget).get_attribute("data-draw-ms") or "nan"))
    assert len(opened.urls) == before, opened.urls[before:]
    assert sorted(times)[len(times) // 2] < 16.7, times


def test_wrong_addresses_do_no_harm(visit: Visitor) -> None:
    tab = visit(f"{PAGE}?scores=x&block=0&order=none&step=99&tokens=-1&heads=9999&b_dtype=int4&cut=77").page
    assert out(tab, "head").endswith("2,147,483,648 B")
    assert len(table(tab, "end")) == 2 and BLOCK == 4
    assert tab.locator(f'{WIDGET} [data-control="block"]').input_value() == "4"


def test_measured_on_the_page(visit: Visitor) -> None:
    tab = visit(f"{PAGE}?max_len=4096&num_heads=1&head_dim=64&rounds=1").page
    panel = tab.locator("#lab-flash-attention")
    panel.get_by_role("button", name="Measure", exact=True).click()
    tab.wait_for_function(
        "/grows with the power/.test(document.querySelector('#lab-flash-attention').textContent)", timeout=60_000
    )
    assert panel.locator("tbody tr").count() >= 4

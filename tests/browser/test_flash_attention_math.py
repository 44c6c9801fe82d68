"""FlashAttention in a real browser: its arithmetic equals Python's over random rows and settings."""

import math
import random
import struct

import pytest

from explorer.estimators.attention_scores import Attention, moved
from pages.flash_attention import HEAD_DIMS, LIMITS, MOST_KEYS, TILES
from tests.browser.flash_attention_widget import PAGE, exp, softmax
from tests.browser.watching import Visitor

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
  const kept = [m.head(s), m.scores(s), m.output(s), m.lse(s), m.flops(s)];
  const sums = [...kept, m.moved(m.naive(s)), m.moved(m.flash(s)), m.tile(s)];
  return [...sums.map(String), list(m.naive(s)), list(m.flash(s))];
})"""


def number(word: object) -> float:
    return float(word)  # type: ignore[arg-type]


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
        assert sums == [str(n) for n in (*kept, *map(moved, moves), one.tile_bytes(s["block_q"]))], s
        assert [naive, flash] == [[[move.name, str(move.num_bytes)] for move in found] for found in moves], s

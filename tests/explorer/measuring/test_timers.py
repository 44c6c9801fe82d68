import os
import random
import subprocess
import sys
import time

import pytest

from explorer.errors import Stopped
from explorer.measuring import timers


def test_a_known_sleep_is_measured():
    timing = timers.measure(lambda: time.sleep(0.02), "cpu", warmup=1, repeats=5)
    assert 0.02 <= timing.min_s <= timing.p20_s <= timing.median_s <= timing.p80_s < 0.2
    assert (timing.repeats, timing.clock) == (5, "perf_counter")


def test_warmup_is_not_timed():
    calls = []
    pauses = [0.2, 0.2, 0, 0, 0]
    timing = timers.measure(lambda: time.sleep(pauses[len(calls)]) or calls.append(1), "cpu", warmup=2, repeats=3)
    assert len(calls) == 5
    assert timing.p80_s < 0.1


@pytest.mark.parametrize(
    ("samples", "share", "right"),
    [([3.0], 0.2, 3.0), ([1.0, 2.0], 0.5, 1.5), ([5, 1, 4, 2, 3], 0.2, 1.8), ([5, 1, 4, 2, 3], 0.8, 4.2)],
)
def test_quantile(samples, share, right):
    assert timers.quantile(samples, share) == pytest.approx(right)


def test_quantile_as_numpy():
    numpy = pytest.importorskip("numpy")
    chance = random.Random(1)
    for _ in range(50):
        samples = [chance.random() for _ in range(chance.randint(1, 30))]
        share = chance.random()
        assert timers.quantile(samples, share) == pytest.approx(numpy.quantile(samples, share))


def test_rivals_take_turns_and_swap_order():
    heard = []
    contest = timers.interleave({"a": lambda: heard.append("a"), "b": lambda: heard.append("b")}, "cpu", repeats=4)
    assert "".join(heard) == "ab" + "abba" * 2
    assert {name: timing.repeats for name, timing in contest.timings.items()} == {"a": 4, "b": 4}


def test_ratio_is_paired_so_drift_cancels():
    """The machine gets ten times slower on the way; the ratio of each pair stays 2."""
    pace = iter([0.001, 0.001, 0.01, 0.01] * 3)
    contest = timers.Contest({}, {"slow": [], "fast": []})
    for unit in pace:
        contest.samples["slow"].append(2 * unit)
        contest.samples["fast"].append(unit)
    ratio = contest.ratio("slow", "fast")
    assert (ratio.median, ratio.p20, ratio.p80) == pytest.approx((2, 2, 2))
    assert ratio.pairs == 12


def test_ratio_of_real_work():
    contest = timers.interleave({"slow": lambda: time.sleep(0.03), "fast": lambda: time.sleep(0.01)}, "cpu", repeats=5)
    ratio = contest.ratio("slow", "fast")
    assert 2 < ratio.p20 <= ratio.median <= ratio.p80 < 4


def test_check_ends_it():
    left = iter([None, None])

    def check():
        if next(left, "end") == "end":
            raise Stopped("stopped", "已停止")

    done = []
    with pytest.raises(Stopped):
        timers.measure(lambda: done.append(1), "cpu", warmup=1, repeats=100, check=check)
    assert len(done) == 2


def test_per_divides_everything():
    timing = timers.Timing(4.0, 2.0, 6.0, 1.0, 5, "perf_counter").per(2)
    assert (timing.median_s, timing.p20_s, timing.p80_s, timing.min_s, timing.repeats) == (2, 1, 3, 0.5, 5)


@pytest.mark.parametrize("how", [{"repeats": 0}, {"warmup": -1}])
def test_bad_counts_are_refused(how):
    with pytest.raises(ValueError, match="repeats"):
        timers.measure(lambda: None, "cpu", **how)


INTERPRETED = """
import torch, triton, triton.language as tl
from explorer.measuring import timers

@triton.jit
def _copy(a, b, n: tl.constexpr):
    i = tl.arange(0, n)
    tl.store(b + i, tl.load(a + i))

a, b = torch.ones(8), torch.zeros(8)
assert timers.measure(a.sum, "cpu", repeats=2).repeats == 2  # plain torch is timed even so
try:
    timers.measure(lambda: _copy[(1,)](a, b, 8), "cpu", warmup=0, repeats=1)
except timers.ResourceError as error:
    print("refused:", error)
_copy[(1,)](a, b, 8)
assert b.sum() == 8  # and afterwards kernels run as before
"""


def test_interpreted_kernels_are_never_timed():
    pytest.importorskip("triton")
    done = subprocess.run(
        [sys.executable, "-c", INTERPRETED.strip()],
        capture_output=True,
        text=True,
        env={**os.environ, "TRITON_INTERPRET": "1"},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("refused: Triton's interpreter"), done.stdout + done.stderr

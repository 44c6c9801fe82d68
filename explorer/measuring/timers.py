"""How long something takes: warm-up, repeats, the median with its spread, and rivals timed in turn.

On a GPU the clock is the device's own (CUDA events), on a CPU the host's. Two things are compared only by
`interleave`, which alternates them in one run, so that a machine that slows down slows both.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from explorer.errors import ResourceError
from explorer.text import Text

CUDA_CLOCK = "cuda events"
HOST_CLOCK = "perf_counter"

Check = Callable[[], None]


@dataclass(frozen=True)
class Timing:
    """Seconds of one call, over several.

    Attributes:
        median_s: the middle of the repeats.
        p20_s: a fifth of them were faster.
        p80_s: a fifth of them were slower.
        min_s: the fastest.
        repeats: how many were timed, warm-up not counted.
        clock: "cuda events" or "perf_counter".
    """

    median_s: float
    p20_s: float
    p80_s: float
    min_s: float
    repeats: int
    clock: str

    @classmethod
    def of(cls, samples: list[float], clock: str) -> "Timing":
        """The Timing of `samples` (seconds, at least one)."""
        return cls(
            median_s=quantile(samples, 0.5),
            p20_s=quantile(samples, 0.2),
            p80_s=quantile(samples, 0.8),
            min_s=min(samples),
            repeats=len(samples),
            clock=clock,
        )

    def per(self, parts: int) -> "Timing":
        """The same for one of `parts` equal parts of the call (a token of a step that makes several)."""
        if parts < 1:
            raise ValueError(f"parts={parts}: at least 1")
        return Timing(
            self.median_s / parts, self.p20_s / parts, self.p80_s / parts, self.min_s / parts, self.repeats, self.clock
        )


@dataclass(frozen=True)
class Ratio:
    """One rival's time over another's, pair by pair.

    Attributes:
        median: the middle of the pairs' ratios.
        p20: a fifth of the pairs lie below.
        p80: a fifth of the pairs lie above.
        pairs: how many.
    """

    median: float
    p20: float
    p80: float
    pairs: int


@dataclass(frozen=True)
class Contest:
    """What `interleave` saw.

    Attributes:
        timings: a `Timing` for each rival.
        samples: the seconds behind them, in order of round.
    """

    timings: dict[str, Timing]
    samples: dict[str, list[float]]

    def ratio(self, slower: str, faster: str) -> Ratio:
        """How many times as long `slower` takes as `faster`: above 1 when the names are true."""
        pairs = [a / b for a, b in zip(self.samples[slower], self.samples[faster], strict=True) if b > 0]
        if not pairs:
            raise ResourceError(
                Text(
                    f"{faster} took less time than the clock can tell; measure more work in one repeat",
                    f"{faster} 快得连时钟都分辨不出；请让每次重复包含更多计算",
                )
            )
        return Ratio(quantile(pairs, 0.5), quantile(pairs, 0.2), quantile(pairs, 0.8), len(pairs))


def measure(
    fn: Callable[[], Any], device: Any, *, warmup: int = 1, repeats: int = 5, check: Check | None = None
) -> Timing:
    """Time `fn()`.

    Args:
        fn: what is timed; what it returns is dropped.
        device: a `torch.device` (or its name): which clock is right.
        warmup: calls made first and not timed.
        repeats: calls timed, at least 1.
        check: called before every call, so that a run can be stopped; what it raises passes through.

    Raises:
        ResourceError: `fn` runs a kernel in Triton's interpreter, whose time means nothing.
    """
    return interleave({"fn": fn}, device, warmup=warmup, repeats=repeats, check=check).timings["fn"]


def interleave(
    rivals: Mapping[str, Callable[[], Any]],
    device: Any,
    *,
    warmup: int = 1,
    repeats: int = 5,
    check: Check | None = None,
) -> Contest:
    """Time several callables in turn: A B, B A, A B, ... so that drift meets all of them.

    Args:
        rivals: what is timed, by name.
        device: a `torch.device` (or its name).
        warmup: rounds made first and not timed.
        repeats: rounds timed, at least 1.
        check: called before every call.

    Raises:
        ResourceError: as `measure`.
    """
    if repeats < 1 or warmup < 0 or not rivals:
        raise ValueError(f"repeats={repeats}, warmup={warmup}, {len(rivals)} rivals: need repeats >= 1 and a rival")
    check = check or _no_check
    stopwatch, clock = _stopwatch(device)
    # One call under watch even with warmup=0 where the interpreter is on: else its time would slip through.
    rounds = max(warmup, 1) if interpreter_on() else warmup
    with refuse_interpreter():
        for _ in range(rounds):
            for fn in rivals.values():
                check()
                fn()
    samples: dict[str, list[float]] = {name: [] for name in rivals}
    for turn in range(repeats):
        order = list(rivals) if turn % 2 == 0 else list(rivals)[::-1]
        for name in order:
            check()
            samples[name].append(stopwatch(rivals[name]))
    return Contest({name: Timing.of(seen, clock) for name, seen in samples.items()}, samples)


def quantile(samples: list[float], share: float) -> float:
    """The value below which `share` (0 to 1) of the samples lie, linear between neighbours."""
    ordered = sorted(samples)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def interpreter_on() -> bool:
    """Whether Triton kernels launched in this process would run in its interpreter."""
    return os.environ.get("TRITON_INTERPRET") == "1"


@contextmanager
def refuse_interpreter() -> Iterator[None]:
    """Raise if a Triton kernel is interpreted inside the block: such a run checks numbers, never speed.

    Raises:
        ResourceError: a kernel was interpreted.
    """
    if not interpreter_on() or "triton" not in sys.modules:
        yield
        return
    from triton.runtime.interpreter import GridExecutor

    launches = []
    genuine = GridExecutor.__call__

    def watched(self: Any, *args: Any, **kwargs: Any) -> Any:
        launches.append(1)
        return genuine(self, *args, **kwargs)

    GridExecutor.__call__ = watched
    try:
        yield
    finally:
        GridExecutor.__call__ = genuine
    if launches:
        raise ResourceError(
            Text(
                "Triton's interpreter is on (TRITON_INTERPRET=1) and its runs are never timed; unset it to measure",
                "Triton 解释器已开启(TRITON_INTERPRET=1)，解释执行从不计时；取消该变量后再测量",
            )
        )


def _no_check() -> None:
    return None


def _stopwatch(device: Any) -> tuple[Callable[[Callable[[], Any]], float], str]:
    if str(device).startswith("cuda"):
        return _time_on_gpu, CUDA_CLOCK
    return _time_on_host, HOST_CLOCK


def _time_on_host(fn: Callable[[], Any]) -> float:
    start = time.perf_counter()
    fn()
    return time.perf_counter() - start


def _time_on_gpu(fn: Callable[[], Any]) -> float:
    import torch

    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    start.record()
    fn()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3

"""What a lab gets to work with: the device, the model, a clock that can be stopped, and a notebook for provenance."""

import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch

from explorer.errors import DeadlineExceeded, ResourceError, Stopped
from explorer.labs.base import Progress
from explorer.measuring import memory, timers
from explorer.measuring.timers import Contest, Timing
from explorer.text import Text

if TYPE_CHECKING:
    from explorer.engine.model import Model

LOADING = Text("Loading the model", "正在加载模型")


class Bench:
    """One run's tools. Labs use it from the thread they run in.

    Attributes:
        device: where tensors go.
        notes: what goes into the Record's provenance besides the machine's own facts.

    Args:
        device: where to work.
        model_name: which model `model()` gives; None for the default one.
        deadline_s: seconds from now that the run may take; time spent loading the model is not counted.
        stop: set from outside to end the run.
        emit: receives `Progress` as it happens, even from inside a long step.
    """

    def __init__(
        self,
        device: torch.device,
        *,
        model_name: str | None = None,
        deadline_s: float = 120.0,
        stop: threading.Event | None = None,
        emit: Callable[[Progress], None] | None = None,
    ):
        self.device = device
        self.notes: dict[str, Any] = {}
        self._model_name = model_name
        self._deadline_s = deadline_s
        self._ends_at = time.monotonic() + deadline_s
        self._stop = stop or threading.Event()
        self._emit = emit or (lambda progress: None)

    @property
    def kind(self) -> str:
        """ "cpu" or "cuda"."""
        return self.device.type

    @property
    def left_s(self) -> float:
        """Seconds until the deadline; below 0 when it has passed."""
        return self._ends_at - time.monotonic()

    def check(self) -> None:
        """Call this often: between repeats, layers, tokens.

        Raises:
            Stopped: the visitor pressed Stop or left.
            DeadlineExceeded: the run took too long.
        """
        if self._stop.is_set():
            raise Stopped(Text("stopped", "已停止"))
        if self.left_s < 0:
            raise self.too_late()

    def too_late(self) -> DeadlineExceeded:
        """The error that says how long a run may take."""
        allowed = f"{self._deadline_s:g}"
        return DeadlineExceeded(
            Text(
                f"this run took longer than the {allowed} s it may; choose smaller settings",
                f"本次运行超过了允许的 {allowed} 秒；请把参数调小",
            )
        )

    def progress(self, done: int, total: int, text: Text) -> None:
        """Say what happens now, from inside a step (a lab may also yield `Progress`)."""
        self._emit(Progress(done, total, text))

    def model(self, dtype: str | None = None) -> "Model":
        """The model on this device, loaded on first use; its name, weights and dtype are noted.

        Args:
            dtype: "bf16", "fp16" or "fp32"; None for what suits the device.
        """
        from explorer.engine import runtime

        self.check()
        start = time.monotonic()
        self.progress(0, 0, LOADING)
        model = runtime.get_model(self._model_name, dtype=dtype, device=str(self.device))
        self._ends_at += time.monotonic() - start
        files = model.files
        self.note(model=model.config.name, weights=files.weight_hash, weights_detail=files.detail)
        self._join("dtype", model.dtype)
        self.check()
        return model

    def time(self, fn: Callable[[], Any], *, warmup: int = 1, repeats: int = 5) -> Timing:
        """Time one callable; see `explorer.measuring.timers.measure`. Stops between repeats when it must."""
        timing = timers.measure(fn, self.device, warmup=warmup, repeats=repeats, check=self.check)
        self._noted(warmup, timing)
        return timing

    def rivals(self, rivals: Mapping[str, Callable[[], Any]], *, warmup: int = 1, repeats: int = 5) -> Contest:
        """Time several callables in turn, for ratios: `.timings[name]`, `.ratio(slower, faster)`."""
        contest = timers.interleave(rivals, self.device, warmup=warmup, repeats=repeats, check=self.check)
        self._noted(warmup, next(iter(contest.timings.values())))
        return contest

    def copy_gb_per_s(self) -> float:
        """Measured speed of a plain copy here, GB/s (10^9), bytes read plus bytes written."""
        found = memory.copy_bandwidth(self.device, check=self.check)
        self.note(copy_moved_bytes=found.moved_bytes, copy_measured_s_ago=round(time.time() - found.measured_at, 1))
        return found.gb_per_s

    def need_bytes(self, wanted: int, what: Text) -> None:
        """Ask before allocating much.

        Args:
            wanted: bytes about to be allocated.
            what: what for, as it reads in a sentence ("the cache", "缓存").

        Raises:
            ResourceError: they are not there.
        """
        have = memory.available_bytes(self.device)
        if wanted > have:
            need, free = f"{wanted / 2**30:.2f} GiB", f"{have / 2**30:.2f} GiB"
            raise ResourceError(
                Text(
                    f"{what.en} needs {need} and {free} are free here; choose smaller settings",
                    f"{what.zh}需要 {need}，而这里只剩 {free}；请把参数调小",
                )
            )

    def note(self, **facts: Any) -> None:
        """Add to the Record's provenance, e.g. `note(implementation="engine, grouped matmul")`."""
        self.notes.update(facts)

    def _noted(self, warmup: int, timing: Timing) -> None:
        self._join("repeats", timing.repeats)
        self._join("warmup", warmup)
        self._join("clock", timing.clock)

    def _join(self, name: str, value: Any) -> None:
        """Note a value; a second, different one is listed beside the first."""
        have = self.notes.get(name)
        if have is None:
            self.notes[name] = value
        elif str(value) not in str(have).split(", "):
            self.notes[name] = f"{have}, {value}"

"""How many bytes: of tensors, of the allocator, and how fast the machine can copy them."""

import gc
import os
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import torch

from explorer.measuring.timers import Timing, measure


@dataclass(frozen=True)
class AllocatorReading:
    """What an allocator handed out while something ran.

    Attributes:
        net_bytes: handed out less given back: what the run left behind.
        peak_bytes: the most in use at once above the start.
        source: which allocator, and what it counts.
    """

    net_bytes: int
    peak_bytes: int
    source: str


@dataclass(frozen=True)
class CopyBandwidth:
    """The speed of a plain copy on this device.

    Attributes:
        gb_per_s: GB/s (10^9 bytes a second), bytes read plus bytes written.
        moved_bytes: read plus written in one copy.
        timing: of one copy.
        measured_at: when, seconds since the epoch.
    """

    gb_per_s: float
    moved_bytes: int
    timing: Timing
    measured_at: float


_COPIES: dict[str, CopyBandwidth] = {}
_COPY_LIFETIME_S = 600.0
CPU_COPY_BYTES = 256 << 20
CUDA_COPY_BYTES = 2 << 30


def tensor_bytes(tensors: Iterable[torch.Tensor]) -> int:
    """Bytes that these tensors occupy: every storage once, views and shared tensors not again.

    A view counts the whole storage that it keeps alive, which is what it costs.
    """
    storages = {}
    for tensor in tensors:
        storage = tensor.untyped_storage()
        storages[(tensor.device, storage.data_ptr(), storage.nbytes())] = storage.nbytes()
    return sum(storages.values())


def element_bytes(tensors: Iterable[torch.Tensor]) -> int:
    """Bytes of these tensors' elements as their shapes say, each tensor by itself."""
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def allocator_delta(fn: Callable[[], Any], device: torch.device) -> tuple[Any, AllocatorReading]:
    """Run `fn` and read the device's allocator around it.

    On CUDA: the caching allocator's `memory_allocated`, which rounds every block up to 512 bytes. On CPU: torch's own
    CPU allocator, as `torch.profiler(profile_memory=True)` reports each of its calls; it counts the bytes asked for, to
    the byte (1 MiB asked is 1,048,576 seen), on the calling thread only, and neither the C library's rounding nor
    memory that torch did not allocate.

    Returns:
        What `fn` returned (keep it, or its memory counts as given back), and the reading.
    """
    return _cuda_delta(fn, device) if device.type == "cuda" else _cpu_delta(fn)


def copy_bandwidth(device: torch.device, *, check: Callable[[], None] | None = None) -> CopyBandwidth:
    """The measured speed of copying a large tensor, remembered for ten minutes.

    Args:
        device: where.
        check: called between repeats.
    """
    known = _COPIES.get(str(device))
    if known is not None and time.time() - known.measured_at < _COPY_LIFETIME_S:
        return known
    size = CUDA_COPY_BYTES if device.type == "cuda" else CPU_COPY_BYTES
    size = min(size, max(available_bytes(device) // 8, 1 << 20))
    source = torch.ones(size, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    timing = measure(lambda: target.copy_(source), device, warmup=2, repeats=7, check=check)
    found = CopyBandwidth(2 * size / timing.median_s / 1e9, 2 * size, timing, time.time())
    _COPIES[str(device)] = found
    return found


def available_bytes(device: torch.device) -> int:
    """Bytes that can still be allocated: free memory on the GPU, or on the host (its control group's limit counts)."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    candidates = [found for found in (_meminfo_available(), _cgroup_available()) if found is not None]
    return min(candidates) if candidates else 1 << 62


def free_memory(device: torch.device | None = None) -> None:
    """Give back what nothing refers to any more."""
    gc.collect()
    if torch.cuda.is_available() and (device is None or device.type == "cuda"):
        torch.cuda.empty_cache()


def _cuda_delta(fn: Callable[[], Any], device: torch.device) -> tuple[Any, AllocatorReading]:
    torch.cuda.synchronize(device)
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    result = fn()
    torch.cuda.synchronize(device)
    net = torch.cuda.memory_allocated(device) - before
    peak = torch.cuda.max_memory_allocated(device) - before
    return result, AllocatorReading(net, peak, "torch CUDA caching allocator, blocks of 512 bytes")


def _cpu_delta(fn: Callable[[], Any]) -> tuple[Any, AllocatorReading]:
    profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True)
    _start(profiler)
    try:
        result = fn()
    finally:
        profiler.stop()
    # Each call of the allocator, in order of time; what is given back counts below 0.
    calls = sorted((e.start_ns(), e.nbytes()) for e in _kineto_events(profiler) if e.name() == "[memory]")
    in_use = list(accumulate((size for _, size in calls), initial=0))
    return result, AllocatorReading(in_use[-1], max(in_use), "torch CPU allocator through torch.profiler, exact bytes")


def _kineto_events(profiler: torch.profiler.profile) -> Any:
    assert profiler.profiler is not None and profiler.profiler.kineto_results is not None, "the profiler has run"
    return profiler.profiler.kineto_results.events()


_STARTED: list[bool] = []


def _start(profiler: torch.profiler.profile) -> None:
    """Start the profiler; the first time without its library's complaint.

    Started first outside the main thread, it writes an "ERROR" about being attached to by other programs, which nobody
    asks for here. It goes past Python to stderr, so stderr is held back meanwhile; every other line is passed on.
    """
    # Its notes about starting and stopping; the library reads this once.
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")
    if _STARTED:
        profiler.start()
        return
    _STARTED.append(True)
    try:
        stderr = os.dup(2)
    except OSError:  # there is no stderr to keep clean
        profiler.start()
        return
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        try:
            profiler.start()
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
        held.seek(0)
        for line in held:
            if b"registerClient" not in line:
                os.write(2, line)


def _meminfo_available() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None


def _cgroup_available() -> int | None:
    for limit, used in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ):
        try:
            bound = Path(limit).read_text().strip()
            if bound != "max" and int(bound) < 1 << 60:
                return max(int(bound) - int(Path(used).read_text()), 0)
        except (OSError, ValueError):
            continue
    return None

"""How large the cache in front of memory is: what was read lately comes from there, and not from memory."""

import os
from pathlib import Path

import torch

CPUS = Path("/sys/devices/system/cpu")
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def last_cache_bytes(device: torch.device) -> int | None:
    """Bytes of the last cache before memory; on a CPU of all such caches that this process may use. None: not known."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).L2_cache_size)
    usable = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else ()
    found: dict[tuple[int, str], int] = {}
    for cpu in usable:
        for entry in (CPUS / f"cpu{cpu}" / "cache").glob("index*"):
            try:
                level, shared, size = (
                    (entry / name).read_text().strip() for name in ("level", "shared_cpu_list", "size")
                )
                found[int(level), shared] = int(size[:-1]) * _UNITS[size[-1]]
            except (OSError, ValueError, KeyError, IndexError):
                continue
    last = max((level for level, _ in found), default=None)
    return None if last is None else sum(size for (level, _), size in found.items() if level == last)

"""Where a number comes from: device, versions, commit, date, load. No host name, no path, no user.

Torch is imported only where it is needed, so that the command line can name versions quickly.
"""

import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

BUSY = 1.25  # programs that want a core, for each core; a run by itself is at most 1
PACKAGES = ("torch", "triton", "transformers")
REPOSITORY = Path(__file__).resolve().parents[2]


def provenance(device: Any) -> dict[str, Any]:
    """What is known before a run starts.

    Args:
        device: the `torch.device` that the run uses.
    """
    return {
        **device_facts(device),
        **versions(),
        "commit": commit(),
        "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "load_average_1m": load_average(),
    }


def device_facts(device: Any) -> dict[str, Any]:
    """`device` (its product name), `device_kind` ("cpu" or "cuda"), `threads` of torch on the CPU, `cpu_count`."""
    import torch

    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        return {
            "device": properties.name,
            "device_kind": "cuda",
            "compute_capability": f"{properties.major}.{properties.minor}",
            "threads": torch.get_num_threads(),
        }
    return {
        "device": cpu_name(),
        "device_kind": device.type,
        "cpu_count": usable_cpus(),
        "threads": torch.get_num_threads(),
    }


def usable_cpus() -> int:
    """Logical processors that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS or Windows
        return os.cpu_count() or 1


@lru_cache
def cpu_name() -> str:
    """The processor's product name, as far as the system tells."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    if sys.platform == "darwin":
        found = _output("sysctl", "-n", "machdep.cpu.brand_string")
        if found:
            return found
    return platform.processor() or platform.machine()


@lru_cache
def versions() -> dict[str, str | None]:
    """Versions of Python and of the packages that do the work; None for one that is not installed."""
    return {"python": platform.python_version(), **{name: package_version(name) for name in PACKAGES}}


def package_version(name: str) -> str | None:
    """The installed version of a package, or None."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


@lru_cache
def commit() -> str | None:
    """The commit of this code, with "+changes" where files differ from it; None without git."""
    if not (REPOSITORY / ".git").exists():
        return None
    found = _output("git", "-C", str(REPOSITORY), "rev-parse", "--short=12", "HEAD")
    if not found:
        return None
    changed = _output("git", "-C", str(REPOSITORY), "status", "--porcelain", "--untracked-files=no")
    return found + ("+changes" if changed else "")


def load_average() -> float | None:
    """Processes that ran or wanted to run, over the last minute: how busy the machine was with other things."""
    try:
        return round(os.getloadavg()[0], 2)
    except (AttributeError, OSError):  # not on Windows
        return None


def _output(*command: str) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=3, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()

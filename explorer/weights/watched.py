"""A downloader as a process of its own: its bytes are counted in the folder it fills, and it can be ended."""

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

LOOK_EVERY_S = 0.2
OUTPUT_TAIL_BYTES = 20_000


@dataclass(frozen=True)
class Finished:
    """How a process ended.

    Attributes:
        code: its exit status; None if it was ended because it took too long or stood still.
        output: the last of what it printed; for deciding, never for showing.
    """

    code: int | None
    output: str


def run_watched(
    command: Sequence[str],
    folder: Path,
    on_bytes: Callable[[int], None],
    *,
    limit_s: float | None = None,
    stall_s: float = 600.0,
) -> Finished:
    """Run `command` inside `folder` until it ends.

    Args:
        command: program and arguments; no shell.
        folder: where it works, keeps its temporary files, and is watched.
        on_bytes: called with the bytes in `folder` about five times a second; what it raises ends the process.
        limit_s: seconds it may take in all; None for no limit.
        stall_s: seconds without a new byte after which it is ended. Long, because downloaders notice a dead connection
            themselves, and on a slow one may gather megabytes before they write.
    """
    scratch = folder / "tmp"
    scratch.mkdir(exist_ok=True)
    environment = os.environ | {"TMPDIR": str(scratch), "TMP": str(scratch), "TEMP": str(scratch)}
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
        try:
            ended_by_us = _watch(process, folder, on_bytes, limit_s, stall_s)
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
        size = output.seek(0, os.SEEK_END)
        output.seek(max(0, size - OUTPUT_TAIL_BYTES))
        return Finished(None if ended_by_us else process.returncode, output.read().decode(errors="replace"))


def _watch(
    process: subprocess.Popen[bytes],
    folder: Path,
    on_bytes: Callable[[int], None],
    limit_s: float | None,
    stall_s: float,
) -> bool:
    started = moved = time.monotonic()
    last = -1
    while True:
        try:
            process.wait(LOOK_EVERY_S)
        except subprocess.TimeoutExpired:
            pass
        else:
            return False
        now, size = time.monotonic(), folder_bytes(folder)
        if size != last:
            last, moved = size, now
        on_bytes(size)
        if now - moved > stall_s or (limit_s is not None and now - started > limit_s):
            return True


def folder_bytes(folder: Path) -> int:
    """Bytes in all files below `folder`, which may be changing."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(place, name)).st_size
            except OSError:  # gone between listing and asking
                continue
    return total

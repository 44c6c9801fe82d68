"""The weight cache: one folder per model, complete or absent, safe against crashes and against other processes.

    <root>/models/<key>/   config.json, weights, tokenizer, manifest.json   (what readers see; appears by one rename)
    <root>/making/<key>/   what is being downloaded or converted            (only the lock's holder touches it)
    <root>/locks/<key>     held while making/<key> is in use; the system frees it when its holder dies

A folder is believed for its manifest, which is written last and names every file with size, time stamp and sha256.
"""

import errno
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from explorer.errors import ResourceError
from explorer.text import Text
from explorer.weights.manifest import Manifest
from explorer.weights.model_files import OnProgress, WeightProgress

ENVIRONMENT_VARIABLE = "KV_EXPLORER_CACHE"
WAITING = Text("Waiting for another process that is preparing the same weights", "另一个进程正在准备同一份权重，等待中")
UNWRITABLE = Text(
    f"The weight cache cannot be written: make its folder writable, or set {ENVIRONMENT_VARIABLE} to one that is.",
    f"权重缓存目录不可写：请修改目录权限，或把 {ENVIRONMENT_VARIABLE} 设为可写的目录。",
)
WAIT_STEP_S = 0.5
STALE_AFTER_S = 7 * 24 * 3600


def default_root() -> Path:
    """$KV_EXPLORER_CACHE, or this system's folder for caches of one user."""
    chosen = os.environ.get(ENVIRONMENT_VARIABLE)
    if chosen:
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "kv-cache-explorer"


class WeightCache:
    """The models kept under one root folder. A key is a model id that is fit to be a folder name (`key_of`)."""

    def __init__(self, root: Path | None = None):
        self.root = root if root is not None else default_root()

    @staticmethod
    def key_of(name: str) -> str:
        """`org/name@revision` -> `org--name@revision`; ids hold no `--` of their own, so no two ids share a key."""
        return name.replace("/", "--")

    def folder(self, key: str) -> Path:
        """Where a finished model lies, whether it is there or not."""
        return self.root / "models" / key

    def find(self, key: str, *, verify: bool = False) -> Manifest | None:
        """The manifest of a finished model whose files are all as they were written, or None.

        Args:
            key: which model.
            verify: hash every file again; otherwise only those whose time stamp has changed.
        """
        folder = self.folder(key)
        manifest = Manifest.read(folder)
        return manifest if manifest is not None and manifest.holds(folder, verify=verify) else None

    @contextmanager
    def preparing(self, key: str, on_progress: OnProgress) -> Iterator[Path]:
        """Hold the model's lock; gives its work folder, which may hold what an interrupted attempt left.

        Raises:
            ResourceError: the cache folder cannot be written.
        """
        from filelock import FileLock, Timeout

        work = self.root / "making" / key
        try:
            for folder in (self.root / "models", self.root / "locks", work.parent):
                folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.root / "locks" / f"{key}.lock")
            while True:
                try:
                    lock.acquire(timeout=WAIT_STEP_S)
                    break
                except Timeout:
                    on_progress(WeightProgress("wait", 0, 0, WAITING))
        except OSError as error:
            raise ResourceError(UNWRITABLE) from error
        try:
            self._sweep(keep=key)
            work.mkdir(exist_ok=True)
            yield work
        finally:
            lock.release()

    def publish(self, key: str, finished: Path, manifest: Manifest) -> Manifest:
        """Make folder `finished` (inside the work folder) the model's folder; the caller holds the lock.

        Returns:
            The manifest as written, with every file's size and sha256.
        """
        complete = manifest.write(finished)
        folder = self.folder(key)
        if folder.exists():  # damaged, or it would have been used
            damaged = self.root / "making" / key / "damaged"
            shutil.rmtree(damaged, ignore_errors=True)
            folder.rename(damaged)
        sync_folder(finished)
        finished.rename(folder)
        sync_folder(folder.parent)
        shutil.rmtree(self.root / "making" / key, ignore_errors=True)
        return complete

    def _sweep(self, keep: str) -> None:
        """Remove what attempts for other models left a week ago and nobody came back for."""
        from filelock import FileLock, Timeout

        for work in (self.root / "making").iterdir():
            if work.name == keep or time.time() - work.stat().st_mtime < STALE_AFTER_S:
                continue
            try:
                with FileLock(self.root / "locks" / f"{work.name}.lock", timeout=0):
                    shutil.rmtree(work, ignore_errors=True)
            except Timeout:  # in use after all
                continue


def require_room(folder: Path, needed_bytes: int) -> None:
    """Fail before the work and not at its end.

    Raises:
        OSError: the folder's disk has less room than that (ENOSPC, as if it had been tried).
    """
    if shutil.disk_usage(folder).free < needed_bytes:
        raise OSError(errno.ENOSPC, "not enough room")


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` survive a power cut (only POSIX can, and need)."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

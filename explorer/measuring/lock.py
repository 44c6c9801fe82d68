"""One measurement at a time: a first-come queue in this process, and a lock file between processes.

Nothing here blocks. A `Ticket` is taken, asked again and again whether its turn has come, and given back. The queue
holds its tickets weakly: one that was forgotten (a closed generator, a lost job) drops out and cannot stall the rest.
"""

import os
import threading
import weakref
from pathlib import Path
from typing import IO

from explorer.errors import ResourceError
from explorer.text import Text

MOST_WAITING = 64


class DeviceLock:
    """The queue for the device.

    Args:
        path: the lock file shared with other processes, or None for a lock within this process.
    """

    def __init__(self, path: Path | None = None):
        self.path = path
        self._reset()

    def take(self) -> "Ticket":
        """A place at the end of the queue.

        Raises:
            ResourceError: the queue is full.
        """
        if self._pid != os.getpid():
            # A forked child inherits a queue whose owners live in the parent, and maybe a mutex nobody will release.
            self._reset()
        with self._mutex:
            if len(self._living()) >= MOST_WAITING:
                raise ResourceError(
                    Text(
                        f"{MOST_WAITING} measurements are waiting already; try again in a few minutes",
                        f"已有 {MOST_WAITING} 个测量在排队，请过几分钟再试",
                    )
                )
            ticket = Ticket(self)
            self._queue.append(weakref.ref(ticket))
            return ticket

    def jobs(self) -> int:
        """Jobs of this process that hold or await the device."""
        with self._mutex:
            return len(self._living())

    def _reset(self) -> None:
        self.scope = "machine" if self.path is not None else "process"
        self._pid = os.getpid()
        self._mutex = threading.Lock()
        self._queue: list[weakref.ref[Ticket]] = []
        self._holder: weakref.ref[Ticket] | None = None
        self._file: IO[bytes] | None = None

    def _living(self) -> "list[Ticket]":
        if self._holder is not None and self._holder() is None:
            self._let_go()
        self._queue = [ref for ref in self._queue if ref() is not None]
        return [ticket for ref in self._queue if (ticket := ref()) is not None]

    def _ahead(self, ticket: "Ticket") -> int | None:
        with self._mutex:
            queue = self._living()
            return queue.index(ticket) if ticket in queue else None

    def _try(self, ticket: "Ticket") -> bool:
        with self._mutex:
            queue = self._living()
            if not queue or queue[0] is not ticket:
                return False
            if self._holder is None and self._lock_file():
                self._holder = weakref.ref(ticket)
            return self._holds(ticket)

    def _leave(self, ticket: "Ticket") -> None:
        with self._mutex:
            if self._holder is not None and self._holder() is ticket:
                self._let_go()
            self._queue = [ref for ref in self._queue if ref() is not ticket]

    def _holds(self, ticket: "Ticket") -> bool:
        return self._holder is not None and self._holder() is ticket

    def _let_go(self) -> None:
        self._holder = None
        if self._file is not None:
            self._file.close()  # closing the file releases its lock
            self._file = None

    def _lock_file(self) -> bool:
        """Whether no other process measures; where that cannot be known, `scope` says "process"."""
        if self.path is None:
            return True
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = open(self.path, "ab")  # noqa: SIM115 (kept open as long as the lock is held)
        except OSError:
            self.scope = "process"
            return True
        free = _lock(file)
        if free is False:
            file.close()
            return False
        self.scope = "process" if free is None else "machine"
        self._file = file
        return True


class Ticket:
    """A place in the queue; made by `DeviceLock.take`."""

    def __init__(self, lock: DeviceLock):
        self._lock = lock

    @property
    def held(self) -> bool:
        """Whether the device is this ticket's."""
        return self._lock._holds(self)

    def try_acquire(self) -> bool:
        """Whether the device is now this ticket's. Does not wait."""
        return self._lock._try(self)

    def ahead(self) -> int:
        """Jobs before this one, the running one included; 0 if it holds the device or has left.

        While another process measures, the head of this process's queue has 1.
        """
        place = self._lock._ahead(self)
        return 0 if place is None or self.held else max(place, 1)

    def leave(self) -> None:
        """Give the device, or the place in the queue, back. Safe to call twice."""
        self._lock._leave(self)


_SHARED: list[DeviceLock] = []


def device_lock() -> DeviceLock:
    """The lock that all runs of this process share, and through its file all processes that share the cache folder."""
    if not _SHARED:
        from explorer.weights.cache import default_root

        _SHARED.append(DeviceLock(default_root() / "device.lock"))
    return _SHARED[0]


def _lock(file: IO[bytes]) -> bool | None:
    """Lock an open file against other processes; the system drops it when this one ends.

    Returns:
        True: locked. False: another process has it. None: this file system has no locks.
    """
    try:
        import fcntl
    except ImportError:
        return _lock_on_windows(file)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _lock_on_windows(file: IO[bytes]) -> bool:
    import msvcrt

    try:
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    except OSError:
        return False
    return True

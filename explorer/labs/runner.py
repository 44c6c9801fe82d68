"""Runs a lab: waits for the device, watches the clock, hands over rows as they come, and writes the Record.

The lab works in a thread of its own, so that whoever watches (a page, the command line) can leave at any moment. That
thread owns the device lock and gives it back only when the lab has really ended.
"""

import queue
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from explorer.errors import DeadlineExceeded, ResourceError, Stopped
from explorer.labs.base import Lab, Progress
from explorer.labs.bench import Bench
from explorer.measuring import memory, provenance
from explorer.measuring.device import pick_device
from explorer.measuring.faults import understood
from explorer.measuring.lock import DeviceLock, Ticket, device_lock
from explorer.measuring.record import Record, Row
from explorer.text import Text

DEADLINE_S = 120.0
LONGEST_DEADLINE_S = 1800.0
QUEUE_DEADLINE_S = 900.0
GRACE_S = 10.0
POLL_S = 0.05


@dataclass(frozen=True)
class Queued:
    """Waiting for the device. `position`: jobs before this one, the running one included."""

    position: int


@dataclass(frozen=True)
class Started:
    """The device is ours and the lab runs."""


@dataclass(frozen=True)
class RowAdded:
    """One more row of the result."""

    row: Row


@dataclass(frozen=True)
class Finished:
    """The run is complete."""

    record: Record


Event = Queued | Started | Progress | RowAdded | Finished


class Run:
    """One run of one lab, moved on by `poll`, which never blocks.

    Attributes:
        record: what is known so far; `provenance["complete"]` tells whether the run ended by itself.

    Args:
        lab: the lab with its parameters.
        lock: the device's queue.
        model: which model; None for the default one.
        device: "cpu" or "cuda[:n]"; None for a GPU where there is one.
        deadline_s: seconds that the run itself may take, loading the model and waiting not counted.
        queue_deadline_s: seconds that it may wait for its turn.
        stop: set from outside to end it; `stop()` sets it too.
    """

    def __init__(
        self,
        lab: Lab,
        *,
        lock: DeviceLock | None = None,
        model: str | None = None,
        device: str | None = None,
        deadline_s: float = DEADLINE_S,
        queue_deadline_s: float = QUEUE_DEADLINE_S,
        stop: threading.Event | None = None,
    ):
        self.lab = lab
        self.record = Record(lab.name, lab.parameters(), tuple(lab.columns), provenance={"complete": False})
        self.done = False
        self._lock = lock or device_lock()
        self._model, self._device = model, device
        self._deadline_s = min(deadline_s, LONGEST_DEADLINE_S)
        self._queue_ends_at = time.monotonic() + queue_deadline_s
        self._stop = stop or threading.Event()
        self._events: queue.SimpleQueue[Event | BaseException] = queue.SimpleQueue()
        self._ticket: Ticket | None = self._lock.take()
        self._thread: threading.Thread | None = None
        self._bench: Bench | None = None
        self._position = -1

    def poll(self) -> list[Event]:
        """What happened since the last call.

        Raises:
            ExplorerError: the run failed, was stopped or took too long; it is over then.
        """
        if self.done:
            return []
        if self._thread is None:
            return self._wait()
        events: list[Event] = []
        while not self._events.empty():
            event = self._events.get()
            if isinstance(event, BaseException):
                if events:  # hand over what came before it; the failure waits for the next call
                    self._events.put(event)
                    return events
                self.done = True
                raise event
            events.append(event)
            self.done = isinstance(event, Finished)
        self._give_up_on_the_deaf()
        return events

    def stop(self) -> None:
        """End it: leave the queue, or tell the lab, which ends at its next check; `poll` then raises Stopped."""
        self._stop.set()
        if self._ticket is not None:
            self._ticket.leave()
            self._ticket = None

    def join(self, timeout_s: float) -> None:
        """Wait until the lab has ended, after `stop`; at most `timeout_s`."""
        if self._thread is not None:
            self._thread.join(timeout_s)

    def _wait(self) -> list[Event]:
        ticket = self._ticket
        if ticket is None or self._stop.is_set():
            self.stop()
            self.done = True
            raise Stopped(Text("stopped", "已停止"))
        if ticket.try_acquire():
            self._start(ticket)
            return [Started()]
        if time.monotonic() > self._queue_ends_at:
            self.stop()
            self.done = True
            raise DeadlineExceeded(Text("others are still measuring; try again later", "其他人仍在测量，请稍后再试"))
        position = ticket.ahead()
        if position == self._position:
            return []
        self._position = position
        return [Queued(position)]

    def _start(self, ticket: Ticket) -> None:
        thread = threading.Thread(target=self._work, args=(ticket,), name=f"lab {self.lab.name}", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            ticket.leave()
            self.done = True
            raise ResourceError(Text("too many threads here; try again later", "线程过多，请稍后再试")) from None
        self._thread = thread
        self._ticket = None  # the thread owns it now

    def _give_up_on_the_deaf(self) -> None:
        """A lab that never checks cannot be interrupted; its watcher need not wait for it. The lock stays taken."""
        if not self.done and self._bench is not None and self._bench.left_s < -GRACE_S and self._events.empty():
            self._stop.set()
            self.done = True
            raise self._bench.too_late()

    def _work(self, ticket: Ticket) -> None:
        outcome: Event | BaseException
        device: torch.device | None = None
        try:
            device = pick_device(self._device)
            outcome = self._measure(device)
        except BaseException as error:  # whatever it is, the watcher must hear of it
            outcome = understood(error, self.lab.name)
            error.__traceback__ = None  # its frames would keep the lab's tensors alive
        finally:
            memory.free_memory(device)
            ticket.leave()
        self._events.put(outcome)

    def _measure(self, device: torch.device) -> Event:
        before = provenance.provenance(device)
        self._bench = bench = Bench(
            device, model_name=self._model, deadline_s=self._deadline_s, stop=self._stop, emit=self._events.put
        )
        record, names = self.record, [column.name for column in self.lab.columns]
        start, neighbours = time.monotonic(), 0
        record.provenance.update(before)
        rows = self.lab.run(bench)
        try:
            for item in rows:
                neighbours = max(neighbours, self._lock.jobs() - 1)
                if isinstance(item, Progress):
                    self._events.put(item)
                else:
                    _check_row(self.lab.name, item, names)
                    record.rows.append(item)
                    self._events.put(RowAdded(item))
                record.provenance.update(bench.notes)
                bench.check()
        finally:
            close = getattr(rows, "close", None)
            if close is not None:
                close()
        record.summary = self.lab.summarise(record.rows)
        record.provenance |= bench.notes | {
            "seconds": round(time.monotonic() - start, 3),
            "jobs_waiting": neighbours,
            "load_average_end_1m": provenance.load_average(),
            "device_lock": self._lock.scope,
            "complete": True,
        }
        return Finished(record)


def run_lab(lab: Lab, *, poll_s: float = POLL_S, **how: Any) -> Iterator[Event]:
    """Run `lab` and yield what happens; closing the generator stops the run.

    Args:
        lab: the lab with its parameters.
        poll_s: seconds between looks.
        how: as for `Run`: lock, model, device, deadline_s, queue_deadline_s, stop.

    Raises:
        ExplorerError: as `Run.poll`.
    """
    yield from watch(Run(lab, **how), poll_s)


def watch(run: Run, poll_s: float = POLL_S) -> Iterator[Event]:
    """Yield what happens in `run` until it is done; however that ends, the run is told to stop."""
    try:
        while not run.done:
            events = run.poll()
            yield from events
            if not events:
                time.sleep(poll_s)
    finally:
        run.stop()


def _check_row(lab: str, row: Row, names: list[str]) -> None:
    missing, extra = [n for n in names if n not in row], [n for n in row if n not in names]
    assert not missing and not extra, f"lab {lab}: a row lacks {missing} and has undeclared {extra}"

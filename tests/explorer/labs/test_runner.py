import gc
import json
import threading
import time
import weakref

import pytest
import torch

from explorer.errors import DeadlineExceeded, ResourceError, Stopped
from explorer.labs.base import Progress
from explorer.labs.bench import Bench
from explorer.labs.runner import Finished, Queued, RowAdded, Run, Started, run_lab
from explorer.measuring.faults import RunError
from explorer.measuring.lock import DeviceLock
from explorer.measuring.record import Record
from explorer.text import Text
from tests.explorer.labs.toy import ToyLab

CPU = torch.device("cpu")


def until(truth, seconds=5.0):
    ends_at = time.monotonic() + seconds
    while not truth():
        assert time.monotonic() < ends_at, "it did not happen in time"
        time.sleep(0.01)


def test_a_run_from_start_to_record():
    lock = DeviceLock()
    events = list(run_lab(ToyLab(rows=2), lock=lock, device="cpu"))
    kinds = [type(event) for event in events]
    assert kinds == [Started, Progress, RowAdded, Progress, RowAdded, Finished]
    record = events[-1].record
    assert record.rows == [event.row for event in events if isinstance(event, RowAdded)]
    assert record.summary == {"numbers": 3}
    assert record.params == {"rows": 2, "pause_s": 0.0, "mode": "plain", "loud": False, "label": "x"}
    facts = record.provenance
    assert facts["implementation"] == "torch.sum"
    assert (facts["repeats"], facts["warmup"], facts["clock"], facts["complete"]) == (3, 1, "perf_counter", True)
    assert (facts["jobs_waiting"], facts["device_lock"], facts["device_kind"]) == (0, "process", "cpu")
    assert Record.from_json(record.to_json()) == record
    assert set(json.loads(record.to_json())) == {"lab", "params", "columns", "rows", "summary", "provenance"}
    assert lock.jobs() == 0


def test_rows_come_before_the_end():
    lock = DeviceLock()
    events = run_lab(ToyLab(rows=3, pause_s=2), lock=lock, device="cpu")
    first = next(event for event in events if isinstance(event, RowAdded))
    assert first.row["count"] == 1
    assert lock.jobs() == 1, "the run goes on"
    events.close()


def test_the_second_waits_and_is_told_its_place():
    lock = DeviceLock()
    first = Run(ToyLab(pause_s=30), lock=lock, device="cpu")
    assert [type(event) for event in first.poll()] == [Started]
    second, third = Run(ToyLab(rows=1), lock=lock), Run(ToyLab(rows=1), lock=lock)
    assert second.poll() == [Queued(1)]
    assert third.poll() == [Queued(2)]
    assert second.poll() == []
    second.stop()
    assert third.poll() == [Queued(1)]
    first.stop()
    until(lambda: any(isinstance(event, Started) for event in third.poll()))
    seen = []
    until(lambda: seen.extend(third.poll()) or third.done)
    assert isinstance(seen[-1], Finished)
    assert lock.jobs() == 0


@pytest.mark.parametrize("after", [Started, Progress])
def test_closing_the_generator_frees_the_device_at_once(after):
    lock = DeviceLock()
    events = run_lab(ToyLab(rows=1, pause_s=50), lock=lock, device="cpu")
    next(event for event in events if isinstance(event, after))
    start = time.monotonic()
    events.close()
    until(lambda: lock.jobs() == 0)
    assert time.monotonic() - start < 10  # of the 50 that it would take


def test_closing_while_waiting_gives_the_place_up():
    lock = DeviceLock()
    holder = lock.take()
    assert holder.try_acquire()
    waiting = run_lab(ToyLab(), lock=lock)
    assert next(waiting) == Queued(1)
    waiting.close()
    assert lock.jobs() == 1
    holder.leave()
    assert lock.jobs() == 0


@pytest.mark.parametrize("waiting", [True, False])
def test_a_stopped_run_says_so_once(waiting):
    lock = DeviceLock()
    holder = lock.take() if waiting else None
    run = Run(ToyLab(pause_s=50), lock=lock, device="cpu")
    run.poll()
    run.stop()
    run.stop()
    with pytest.raises(Stopped):
        until(lambda: run.poll() and False)
    assert run.done and run.poll() == []
    assert lock.jobs() == (1 if holder else 0)


def test_a_generator_that_was_never_started_takes_no_place():
    lock = DeviceLock()
    run_lab(ToyLab(), lock=lock)
    gc.collect()
    assert lock.jobs() == 0


def test_stop_event():
    lock, stop = DeviceLock(), threading.Event()
    events = run_lab(ToyLab(pause_s=50), lock=lock, device="cpu", stop=stop)
    next(event for event in events if isinstance(event, Progress))
    stop.set()
    with pytest.raises(Stopped):
        list(events)
    assert lock.jobs() == 0


def test_deadline():
    lock = DeviceLock()
    with pytest.raises(DeadlineExceeded, match=r"longer than the 0\.3 s") as caught:
        list(run_lab(ToyLab(pause_s=50), lock=lock, device="cpu", deadline_s=0.3))
    assert "0.3 秒" in caught.value.text.zh
    assert lock.jobs() == 0


def test_a_lab_that_never_checks_is_abandoned_but_keeps_the_lock(monkeypatch):
    monkeypatch.setattr("explorer.labs.runner.GRACE_S", 0.2)
    lock = DeviceLock()
    with pytest.raises(DeadlineExceeded):
        list(run_lab(ToyLab(rows=1, pause_s=2, mode="deaf"), lock=lock, device="cpu", deadline_s=0.1))
    assert lock.jobs() == 1, "the device is still in use, and saying otherwise would spoil the next measurement"
    until(lambda: lock.jobs() == 0)


def test_waiting_has_a_deadline_too():
    lock = DeviceLock()
    holder = lock.take()
    assert holder.try_acquire()
    with pytest.raises(DeadlineExceeded, match="others are still measuring"):
        list(run_lab(ToyLab(), lock=lock, queue_deadline_s=0.1))
    assert lock.jobs() == 1


@pytest.mark.parametrize(("mode", "kind"), [("fault", RunError), ("memory", ResourceError), ("bad-row", RunError)])
def test_faults_become_one_line_without_paths(mode, kind, caplog):
    lock = DeviceLock()
    with pytest.raises(kind) as caught:
        list(run_lab(ToyLab(mode=mode), lock=lock, device="cpu"))
    for line in (caught.value.text.en, caught.value.text.zh):
        assert "\n" not in line and "/" not in line
    if mode == "bad-row":
        assert "undeclared ['surprise']" in caplog.text
    assert lock.jobs() == 0


@pytest.mark.parametrize("ending", ["complete", "closed"])
def test_nothing_is_left_in_memory(ending):
    left = []

    class Holding(ToyLab):
        def run(self, bench):
            tensor = torch.zeros(1 << 20)
            left.append(weakref.ref(tensor))
            in_a_cycle: dict = {"tensor": tensor}
            in_a_cycle["itself"] = in_a_cycle
            for row in super().run(bench):
                yield row
                assert tensor is not None

    lock = DeviceLock()
    events = run_lab(Holding(rows=1, pause_s=0.2), lock=lock, device="cpu")
    next(event for event in events if isinstance(event, Progress))
    if ending == "closed":
        events.close()
    else:
        list(events)
    until(lambda: lock.jobs() == 0)
    assert left[0]() is None


def test_a_partial_record_says_so():
    run = Run(ToyLab(rows=100, pause_s=0.1), lock=DeviceLock(), device="cpu")
    until(lambda: any(isinstance(event, RowAdded) for event in run.poll()))
    run.stop()
    assert run.record.rows
    assert run.record.provenance["complete"] is False


@pytest.mark.parametrize("name", ["tpu", "cuda:99", "meta", "/etc", ""])
def test_a_device_that_is_not_there(name):
    with pytest.raises(ResourceError):
        list(run_lab(ToyLab(), lock=DeviceLock(), device=name))


def test_bench_asks_for_memory_before_it_is_taken():
    bench = Bench(CPU)
    bench.need_bytes(1000, Text("the cache", "缓存"))
    with pytest.raises(ResourceError, match=r"the cache needs 1073741824\.00 GiB"):
        bench.need_bytes(1 << 60, Text("the cache", "缓存"))


def test_bench_notes_every_way_of_timing():
    bench = Bench(CPU)
    bench.time(lambda: None, repeats=3)
    bench.time(lambda: None, repeats=3)
    bench.rivals({"a": lambda: None, "b": lambda: None}, repeats=5)
    assert bench.notes == {"repeats": "3, 5", "warmup": 1, "clock": "perf_counter"}

import gc
import os
import subprocess
import sys
import threading
import time

import pytest

from explorer.errors import ResourceError
from explorer.measuring import lock as locks
from explorer.measuring.lock import DeviceLock


def test_first_come_first_served():
    lock = DeviceLock()
    first, second, third = lock.take(), lock.take(), lock.take()
    assert not second.try_acquire()
    assert first.try_acquire()
    assert (first.ahead(), second.ahead(), third.ahead()) == (0, 1, 2)
    second.leave()
    assert third.ahead() == 1
    assert not third.try_acquire()
    first.leave()
    assert third.try_acquire()
    assert lock.jobs() == 1


def test_leaving_twice_does_not_free_the_next():
    lock = DeviceLock()
    first, second, third = lock.take(), lock.take(), lock.take()
    assert first.try_acquire()
    first.leave()
    assert second.try_acquire()
    first.leave()
    assert second.held
    assert not third.try_acquire()


@pytest.mark.parametrize("held", [False, True])
def test_a_forgotten_ticket_drops_out(held, tmp_path):
    lock = DeviceLock(tmp_path / "device.lock")
    forgotten, waiting = lock.take(), lock.take()
    if held:
        assert forgotten.try_acquire()
    del forgotten
    gc.collect()
    assert waiting.try_acquire()


def test_the_queue_is_bounded(monkeypatch):
    monkeypatch.setattr(locks, "MOST_WAITING", 2)
    lock = DeviceLock()
    kept = [lock.take(), lock.take()]
    with pytest.raises(ResourceError, match="2 measurements are waiting"):
        lock.take()
    kept[0].leave()
    lock.take()


def test_never_two_at_once():
    lock = DeviceLock()
    inside, most, served = [], [], []

    def job(name):
        ticket = lock.take()
        while not ticket.try_acquire():
            time.sleep(0.001)
        inside.append(name)
        most.append(len(inside))
        time.sleep(0.002)
        inside.remove(name)
        served.append(name)
        ticket.leave()

    threads = [threading.Thread(target=job, args=(index,)) for index in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert max(most) == 1
    assert sorted(served) == list(range(20))


OTHER = """
import sys, time
from pathlib import Path
from explorer.measuring.lock import DeviceLock
ticket = DeviceLock(Path(sys.argv[1])).take()
print(ticket.try_acquire(), ticket.ahead(), flush=True)
sys.stdin.readline()
"""


def other_process(path):
    return subprocess.Popen(
        [sys.executable, "-c", OTHER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def test_two_processes(tmp_path):
    path = tmp_path / "cache" / "device.lock"
    ticket = DeviceLock(path).take()
    other = other_process(path)
    try:
        assert other.stdout.readline().split() == ["True", "0"]
        assert not ticket.try_acquire()
        assert ticket.ahead() == 1
        other.kill()  # not even a clean exit is needed
        other.wait(10)
        assert ticket.try_acquire()
        assert ticket._lock.scope == "machine"
        third = other_process(path)
        assert third.stdout.readline().split() == ["False", "1"]
        third.communicate("\n", timeout=10)
    finally:
        other.kill()
        other.communicate()


def test_a_place_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    lock = DeviceLock(tmp_path / "file" / "device.lock")
    assert lock.take().try_acquire()
    lock = DeviceLock(tmp_path / "file" / "device.lock")
    ticket = lock.take()
    assert ticket.try_acquire()
    assert lock.scope == "process"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_starts_with_an_empty_queue():
    lock = DeviceLock()
    held = lock.take()
    assert held.try_acquire()
    lock._mutex.acquire()  # the worst moment to fork
    child = os.fork()
    if child == 0:
        ticket = lock.take()
        os._exit(0 if ticket.try_acquire() else 1)
    lock._mutex.release()
    ends_at = time.monotonic() + 10
    done, status = os.waitpid(child, os.WNOHANG)
    while done == 0 and time.monotonic() < ends_at:
        time.sleep(0.05)
        done, status = os.waitpid(child, os.WNOHANG)
    if done == 0:
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert done == child and os.waitstatus_to_exitcode(status) == 0
    assert held.held

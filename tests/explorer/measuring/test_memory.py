import subprocess
import sys

import pytest
import torch

from explorer.measuring import memory

CPU = torch.device("cpu")


def test_views_are_counted_once():
    whole = torch.zeros(4, 8, dtype=torch.bfloat16)
    other = torch.zeros(3, dtype=torch.float32)
    assert memory.tensor_bytes([whole, whole[1:], whole.t(), other]) == 4 * 8 * 2 + 3 * 4
    assert memory.element_bytes([whole, whole[1:]]) == (4 * 8 + 3 * 8) * 2


def test_a_small_view_costs_its_whole_storage():
    assert memory.tensor_bytes([torch.zeros(1000, dtype=torch.uint8)[:1]]) == 1000


def test_empty_tensors_cost_nothing():
    assert memory.tensor_bytes([torch.zeros(0), torch.zeros(0)]) == 0


@pytest.mark.parametrize("size", [1, 63, 1 << 20, 1_000_003])
def test_cpu_allocator_is_exact(size):
    kept, reading = memory.allocator_delta(lambda: torch.empty(size, dtype=torch.uint8), CPU)
    assert reading.net_bytes == size == memory.tensor_bytes([kept])
    assert reading.peak_bytes == size


def test_cpu_allocator_knows_what_was_given_back():
    def work():
        kept = torch.zeros(1000, dtype=torch.uint8)
        gone = torch.zeros(1 << 20, dtype=torch.uint8)
        del gone
        return kept, (kept + 1).sum()

    kept, reading = memory.allocator_delta(work, CPU)
    assert reading.net_bytes == memory.tensor_bytes(kept) == 1000 + 8
    assert reading.peak_bytes == 1000 + (1 << 20), "both at once, the sum only later"


IN_A_THREAD = """
import threading, torch
from explorer.measuring import memory
make = lambda: torch.empty(77, dtype=torch.uint8)
read = lambda: print(memory.allocator_delta(make, torch.device("cpu"))[1].net_bytes)
for _ in range(2):
    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
"""


def test_a_reading_in_a_thread_is_exact_and_quiet():
    done = subprocess.run([sys.executable, "-c", IN_A_THREAD], capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["77", "77"]
    assert done.stderr == ""


def test_copy_bandwidth_is_remembered(monkeypatch):
    monkeypatch.setattr(memory, "_COPIES", {})
    monkeypatch.setattr(memory, "CPU_COPY_BYTES", 1 << 20)
    first = memory.copy_bandwidth(CPU)
    assert first.moved_bytes == 2 << 20
    assert first.gb_per_s == pytest.approx(first.moved_bytes / first.timing.median_s / 1e9)
    assert memory.copy_bandwidth(CPU) is first


def test_available_bytes_is_believable():
    assert 1 << 20 < memory.available_bytes(CPU) < 1 << 50


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_cuda_allocator():
    device = torch.device("cuda")
    kept, reading = memory.allocator_delta(lambda: torch.empty(1 << 20, dtype=torch.uint8, device=device), device)
    assert reading.net_bytes == 1 << 20 == kept.numel()
    assert reading.peak_bytes >= reading.net_bytes

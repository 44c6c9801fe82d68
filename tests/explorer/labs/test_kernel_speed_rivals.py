"""How FlashInfer and flash-attn are called, against stand-ins that read arguments as their documentation says."""

import sys
from types import ModuleType

import pytest
import torch

from explorer.labs import kernel_speed_attention as attention
from explorer.labs import kernel_speed_latent as latent
from explorer.labs import kernel_speed_rivals as rivals
from explorer.labs import kernel_speed_writes as writes
from explorer.labs.kernel_speed_case import OURS, Case, Shape
from explorer.labs.kernel_speed_rivals import FLASH_ATTN, FLASHINFER
from tests.explorer.labs import fake_rivals

CPU = torch.device("cpu")


@pytest.fixture
def installed(monkeypatch):
    """Both are "found" although there is no GPU."""
    there = {FLASHINFER: fake_rivals.flashinfer(), FLASH_ATTN: fake_rivals.flash_attn()}
    monkeypatch.setattr(rivals, "find", lambda name, device: (there[name], "1.2"))
    for module in (attention, latent):
        monkeypatch.setattr(module, "layers_for", lambda num_bytes: 2)
    monkeypatch.setattr(writes, "layers_for", lambda num_bytes: 1)
    monkeypatch.setattr(attention, "CHUNK", 24)


def shape(block_size=16, batch=3, kv_len=48, dtype=torch.float32):
    return Shape(batch, kv_len, 8, 2, 32, block_size, dtype)


CASES = {
    "decode": (attention.paged_decode, {FLASHINFER, FLASH_ATTN}),
    "chunk": (attention.chunked_prefill, {FLASHINFER, FLASH_ATTN}),
    "prompt": (attention.flash_prefill, {FLASHINFER, FLASH_ATTN}),
    "latent": (latent.mla_decode_case, {FLASHINFER}),
    "write": (writes.kv_write_case, {FLASHINFER}),
}


@torch.inference_mode()
@pytest.mark.parametrize(("make", "expected"), CASES.values(), ids=CASES)
def test_each_rival_gives_our_result(installed, make, expected):
    case = make(shape(), CPU)
    assert {f"{name} 1.2" for name in expected} <= set(case.calls), case.absent
    for name, difference in case.differences().items():
        assert difference < 1e-5, name
    for name, call in case.calls.items():
        for layer in range(case.layers):
            call(layer), name


@torch.inference_mode()
def test_flash_attn_reads_our_pages_where_they_are_large_enough(installed, monkeypatch):
    tables = []
    genuine = fake_rivals.with_kvcache

    def watched(*args, block_table, **how):
        tables.append(block_table)
        return genuine(*args, block_table=block_table, **how)

    library = fake_rivals.flash_attn()
    library.flash_attn_with_kvcache = watched
    there = {FLASHINFER: fake_rivals.flashinfer(), FLASH_ATTN: library}
    monkeypatch.setattr(rivals, "find", lambda name, device: (there[name], "1.2"))
    for block_size, paged in ((16, False), (256, True)):
        tables.clear()
        case = attention.paged_decode(shape(block_size, 2, 512), CPU)
        assert max(case.differences().values()) < 1e-5
        assert tables and all((table is not None) == paged for table in tables)


def test_pages_of_ragged_sequences():
    table = torch.tensor([[7, 3, 99], [5, 99, 99], [1, 2, 4]], dtype=torch.int32)
    pages = rivals.pages_of(table, torch.tensor([20, 16, 33], dtype=torch.int32), 16)
    assert pages.indptr.tolist() == [0, 2, 3, 6]
    assert pages.indices.tolist() == [7, 3, 5, 1, 2, 4]
    assert pages.last_page_len.tolist() == [4, 16, 1]
    assert {tensor.dtype for tensor in pages} == {torch.int32}


def test_a_rival_that_cannot_is_named_and_not_timed():
    case = Case(attention.decode_work(shape()), 1, {OURS: lambda layer: torch.zeros(1)})

    def refuses():
        raise RuntimeError("head_dim 96 is not built\nsecond line")

    def breaks_when_called():
        def call(layer):
            raise AssertionError

        return call

    case.add({"a": refuses, "b": breaks_when_called, "c": lambda: lambda layer: torch.ones(1)})
    assert case.absent == {"a": "RuntimeError: head_dim 96 is not built", "b": "AssertionError"}
    assert list(case.calls) == [OURS, "c"] and case.differences() == {"c": 1.0}


def test_why_a_rival_is_not_here(monkeypatch):
    cuda = torch.device("cuda")
    assert rivals.find(FLASHINFER, CPU) == (None, "needs a CUDA device")
    monkeypatch.setitem(rivals.MODULES, FLASHINFER, ("no_such_library", "no-such-library"))
    assert rivals.find(FLASHINFER, cuda) == (None, "not installed")
    monkeypatch.setitem(sys.modules, "flash_attn", ModuleType("flash_attn"))
    monkeypatch.setattr(rivals, "package_version", {"flash-attn": "2.8.3"}.get)
    module, version = rivals.find(FLASH_ATTN, cuda)
    assert module is sys.modules["flash_attn"] and version == "2.8.3"

    def broken(name):
        raise OSError("libcudart.so.12: cannot open shared object file")

    monkeypatch.setattr(rivals.importlib, "import_module", broken)
    assert rivals.find(FLASH_ATTN, cuda) == (None, "cannot be imported (OSError)")

"""Flash attention: reference, CPU path, plain-torch stream and Triton give the same output and log-sum-exp."""

import math

import pytest
import torch

from kernels import flash_torch
from kernels.flash_attention import flash_attention, flash_attention_reference
from tests.kernels.closeness import assert_close
from tests.kernels.packed_cases import DTYPES, SHAPES, packed


def test_reference_by_hand():
    """Two tokens, one head of one number, scale 1: the second Query's scores are 0 and log 3, so weights 1/4, 3/4."""
    q, k = torch.tensor([5.0, 1.0]).view(2, 1, 1), torch.tensor([0.0, math.log(3)]).view(2, 1, 1)
    v = torch.tensor([8.0, 4.0]).view(2, 1, 1)
    out, lse = flash_attention_reference(q, k, v, torch.tensor([0, 2]), scale=1.0)
    assert out.flatten().tolist() == pytest.approx([8.0, 5.0])
    assert lse.flatten().tolist() == pytest.approx([0.0, math.log(4)])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SHAPES)
def test_every_path_equals_the_reference(run_triton, monkeypatch, name, dtype):
    q, k, v, cu, cu_k, window = packed(name, dtype)
    how = {"cu_seqlens_k": cu_k, "sliding_window": window}
    out, lse = flash_attention_reference(q, k, v, cu, **how)
    results = {
        "CPU path": flash_attention(q, k, v, cu, return_lse=True, **how),
        "Triton": run_triton(flash_attention, q, k, v, cu, return_lse=True, **how)[0],
    }
    assert_close(flash_attention(q, k, v, cu, **how), out, dtype, "CPU path without lse")
    monkeypatch.setattr(flash_torch, "OPERATOR", "one that is not there")
    results["stream"] = flash_attention(q, k, v, cu, return_lse=True, **how)
    for path, (its_out, its_lse) in results.items():
        assert its_out.dtype == dtype and its_lse.dtype == torch.float32
        assert_close(its_out, out, dtype, f"{path}, output")
        assert_close(its_lse, lse, dtype, f"{path}, lse")


@pytest.mark.parametrize(("q_len", "kv_len", "window"), [(700, 700, None), (300, 1500, None), (1400, 1400, 1100)])
def test_many_tiles_on_the_cpu(monkeypatch, q_len, kv_len, window):
    """More Queries and Keys than one call or tile takes, and first tiles that some Queries do not see."""
    torch.manual_seed(1)
    q, k, v = torch.randn(q_len, 2, 16), torch.randn(kv_len, 1, 16), torch.randn(kv_len, 1, 16)
    cu, how = torch.tensor([0, q_len]), {"cu_seqlens_k": torch.tensor([0, kv_len]), "sliding_window": window}
    out, lse = flash_attention_reference(q, k, v, cu, **how)
    for operator in (flash_torch.OPERATOR, "one that is not there"):
        monkeypatch.setattr(flash_torch, "OPERATOR", operator)
        its_out, its_lse = flash_attention(q, k, v, cu, return_lse=True, **how)
        assert_close(its_out, out, torch.float32, operator)
        assert_close(its_lse, lse, torch.float32, operator)


def test_a_late_large_score_rescales(run_triton):
    """The last of 100 Keys has a score 80 above the others: it takes all weight, and nothing overflows."""
    q, k, v = torch.ones(100, 1, 64), torch.zeros(100, 1, 64), torch.randn(100, 1, 64)
    k[99] = 10.0
    cu = torch.tensor([0, 100], dtype=torch.int32)
    for out in (flash_attention(q, k, v, cu), run_triton(flash_attention, q, k, v, cu)[0].cpu()):
        assert torch.allclose(out[99], v[99], atol=1e-6)
        assert torch.allclose(out[98], v[:99].mean(0), atol=1e-5)


def test_memory_holds_no_square(monkeypatch):
    """2,048 Queries in one head: all scores would be 16 MiB; the stream's largest tensor stays below 1 MiB."""
    largest = []

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            largest.extend(x.untyped_storage().nbytes() for x in [result] if isinstance(x, torch.Tensor))
            return result

    monkeypatch.setattr(flash_torch, "OPERATOR", "one that is not there")
    q = torch.randn(2048, 1, 16)
    with Watch():
        flash_attention(q, q, q, torch.tensor([0, 2048]), return_lse=True)
    assert max(largest) <= 1 << 20


@pytest.mark.parametrize("window", [2**31 - 1, 2**40])
def test_windows_wider_than_32_bits_count_as_none(run_triton, window):
    q, k, v, cu, cu_k, _ = packed("fewer queries than keys", torch.float32)
    out, lse = flash_attention_reference(q, k, v, cu, cu_k)
    found, its_lse = run_triton(
        flash_attention, q, k, v, cu, cu_seqlens_k=cu_k, sliding_window=window, return_lse=True
    )[0]  # fmt: skip
    assert_close(found, out, torch.float32)
    assert_close(its_lse, lse, torch.float32)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"k": torch.zeros(4, 2, 8), "v": torch.zeros(4, 2, 8)}, "multiple"),
        ({"v": torch.zeros(4, 1, 8, dtype=torch.float16)}, "dtypes"),
        ({"q": torch.zeros(4, 8, 3).transpose(1, 2)}, "one piece"),
        ({"cu_seqlens": torch.tensor([0, 3])}, "end at 4"),
        ({"cu_seqlens": torch.tensor([0, 5, 4])}, "falls"),
        ({"sliding_window": 0}, "sliding_window=0"),
        ({"cu_seqlens": torch.tensor([1, 4])}, "run from 0"),
        ({"cu_seqlens": torch.tensor([0.0, 4.0])}, "int32 or int64"),
        ({"cu_seqlens": torch.tensor([0, 9, 4, 9])[::2]}, "contiguous"),
        ({"cu_seqlens_k": torch.tensor([0, 9, 4, 9])[::2]}, "contiguous"),
        ({"cu_seqlens_k": torch.tensor([0, 3]), "k": torch.zeros(3, 1, 8), "v": torch.zeros(3, 1, 8)}, "as many Keys"),
    ],
)
def test_what_does_not_fit_is_refused(change, complaint):
    q, kv = torch.zeros(4, 3, 8), torch.zeros(4, 1, 8)
    arguments = {"q": q, "k": kv, "v": kv, "cu_seqlens": torch.tensor([0, 4])} | change
    with pytest.raises(ValueError, match=complaint):
        flash_attention(**arguments)

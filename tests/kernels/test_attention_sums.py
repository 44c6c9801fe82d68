"""Attention that each Key received: reference, CPU path and Triton agree, and nothing of it is lost."""

import pytest
import torch

from kernels import attention_sums as module
from kernels.attention_sums import attention_sums, attention_sums_reference
from kernels.flash_attention import flash_attention, flash_attention_reference
from tests.kernels.closeness import assert_close
from tests.kernels.packed_cases import DTYPES, SHAPES, packed


def test_reference_by_hand():
    """Three equal Keys: Query i gives 1/(i+1) to each that it sees. Sums 1 + 1/2 + 1/3, 1/2 + 1/3, 1/3; two heads."""
    q, k = torch.ones(3, 2, 4), torch.ones(3, 1, 4)
    cu = torch.tensor([0, 3])
    _, lse = flash_attention_reference(q, k, k, cu)
    sums = attention_sums_reference(q, k, lse, cu)
    assert sums[0].tolist() == pytest.approx([2 * 11 / 6, 2 * 5 / 6, 2 * 1 / 3])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SHAPES)
def test_every_path_equals_the_reference(run_triton, name, dtype):
    q, k, v, cu, cu_k, window = packed(name, dtype)
    how = {"cu_seqlens_k": cu_k, "sliding_window": window}
    _, lse = flash_attention_reference(q, k, v, cu, **how)
    expected = attention_sums_reference(q, k, lse, cu, **how)
    assert_close(attention_sums(q, k, lse, cu, **how), expected, dtype, "CPU path")
    assert_close(run_triton(attention_sums, q, k, lse, cu, **how)[0], expected, dtype, "Triton")


@pytest.mark.parametrize("window", [None, 90])
def test_many_tiles_on_the_cpu(monkeypatch, window):
    monkeypatch.setattr(module, "TILE_ROWS", 32)
    monkeypatch.setattr(module, "TILE_KEYS", 48)
    torch.manual_seed(2)
    q, k = torch.randn(150, 6, 16), torch.randn(200, 2, 16)
    cu, how = torch.tensor([0, 150]), {"cu_seqlens_k": torch.tensor([0, 200]), "sliding_window": window}
    _, lse = flash_attention(q, k, k, cu, return_lse=True, **how)
    expected = attention_sums_reference(q, k, lse, cu, **how)
    assert_close(attention_sums(q, k, lse, cu, **how), expected, torch.float32)


def test_each_query_gives_one_in_all_and_each_head_counts():
    """bf16 with large scores: rounding them to bf16 would lose percents of a Query's attention."""
    torch.manual_seed(3)
    q, k = (4 * torch.randn(300, heads, 64).bfloat16() for heads in (9, 3))
    cu = torch.tensor([0, 100, 300])
    _, lse = flash_attention(q, k, k, cu, return_lse=True)
    sums = attention_sums(q, k, lse, cu)
    assert sums[:, :100].sum(1).tolist() == pytest.approx([3 * 100] * 3, rel=1e-3)
    assert sums[:, 100:].sum(1).tolist() == pytest.approx([3 * 200] * 3, rel=1e-3)


def test_an_observation_window_is_the_last_rows_of_the_whole():
    """SnapKV: the last 8 Queries with their own lse; H2O: all. Rows before the window account for the difference."""
    torch.manual_seed(4)
    q, k = torch.randn(40, 4, 32), torch.randn(40, 2, 32)
    whole, first, last = torch.tensor([0, 40]), torch.tensor([0, 32]), torch.tensor([0, 8])
    _, lse = flash_attention(q, k, k, whole, return_lse=True)
    _, last_lse = flash_attention(q[32:], k, k, last, cu_seqlens_k=whole, return_lse=True)
    assert torch.allclose(last_lse, lse[:, 32:], atol=1e-5)
    observed = attention_sums(q[32:], k, last_lse, last, cu_seqlens_k=whole)
    before = attention_sums(q[:32], k[:32], lse[:, :32].contiguous(), first)
    observed[:, :32] += before
    assert_close(observed, attention_sums(q, k, lse, whole), torch.float32)


@pytest.mark.parametrize("window", [2**31 - 1, 2**40])
def test_windows_wider_than_32_bits_count_as_none(run_triton, window):
    q, k, _, cu, cu_k, _ = packed("fewer queries than keys", torch.float32)
    _, lse = flash_attention_reference(q, k, k, cu, cu_k)
    expected = attention_sums_reference(q, k, lse, cu, cu_k)
    found, _ = run_triton(attention_sums, q, k, lse, cu, cu_seqlens_k=cu_k, sliding_window=window)
    assert_close(found, expected, torch.float32)


@pytest.mark.parametrize(
    ("lse", "complaint"),
    [(torch.zeros(4, 2), "heads first"), (torch.zeros(2, 4).half(), "float32"), (torch.zeros(4, 2).t(), "contiguous")],
)
def test_a_wrong_lse_is_refused(lse, complaint):
    with pytest.raises(ValueError, match=complaint):
        attention_sums(torch.zeros(4, 2, 8), torch.zeros(4, 1, 8), lse, torch.tensor([0, 4]))

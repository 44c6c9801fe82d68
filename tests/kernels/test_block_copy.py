"""Blocks are copied in every layer's pools, and pairs that depend on each other are refused."""

import pytest
import torch

from kernels import block_copy as module
from kernels.block_copy import PIECE, block_copy, block_copy_reference


def pools_of(shape, dtype, count=3):
    torch.manual_seed(0)
    return [torch.randn(shape).to(dtype) for _ in range(count)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("shape", [(6, 3, 16, 64), (6, 1, 24, 80), (6, 8, 8, 128), (9, 5, 3, 1)])
def test_copies_all_layers(run_triton, dtype, shape):
    pairs = [(0, 3), (1, 4), (0, 5)]
    start = pools_of(shape, dtype)
    expected, on_cpu = [[pool.clone() for pool in start] for _ in range(2)]
    block_copy_reference(expected, pairs)
    block_copy(on_cpu, pairs)
    _, (by_triton, _) = run_triton(block_copy, start, pairs)
    for i, pool in enumerate(expected):
        assert torch.equal(on_cpu[i], pool), f"CPU path, pool {i}"
        assert torch.equal(by_triton[i].cpu(), pool), f"Triton, pool {i}"


def test_a_block_longer_than_one_piece(run_triton):
    start = pools_of((3, 2, 33, 80), torch.bfloat16, 1)
    assert start[0][0].numel() > PIECE
    _, (by_triton, _) = run_triton(block_copy, [start[0].clone()], [(2, 0)])
    block_copy_reference(start, [(2, 0)])
    assert torch.equal(by_triton[0].cpu(), start[0])


@pytest.mark.parametrize("lead", [1, 8])
def test_pools_cut_out_of_a_larger_tensor(run_triton, monkeypatch, lead):
    """2 and 16 bytes behind an aligned address: of a pool at an odd one, a GPU must not copy 16 bytes at a time."""
    whole = torch.zeros(lead + 6 * 48, dtype=torch.bfloat16)
    whole[lead:] = torch.arange(6 * 48)
    pool = whole[lead:].view(6, 3, 16, 1)
    _, ((by_triton,), _) = run_triton(block_copy, [pool], [(1, 4)])
    assert torch.equal(by_triton[4], pool[1]) and torch.equal(by_triton[:4], pool[:4])
    told = []
    monkeypatch.setattr(module, "can_launch", lambda tensor: True)
    monkeypatch.setattr(module, "launch", lambda *args, **constants: told.append(constants["ALIGNED"]))
    block_copy([torch.zeros_like(pool), pool], [(1, 4)])
    assert told == [lead == 8]


def test_nothing_to_copy():
    (pool,) = pools_of((2, 1, 2, 2), torch.float32, 1)
    before = pool.clone()
    block_copy([pool], [])
    block_copy([], [(0, 1)])
    assert torch.equal(pool, before)


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        ([(0, 6)], "expected 0 to 5"),
        ([(-1, 2)], "expected 0 to 5"),
        ([(5, 2), (2, 3)], "several calls"),
        ([(0, 2), (1, 2)], "several calls"),
        ([(2, 2)], "several calls"),
    ],
)
def test_pairs_that_cannot_happen_at_once_are_refused(pairs, words):
    with pytest.raises(ValueError, match=words):
        block_copy(pools_of((6, 1, 2, 2), torch.float32), pairs)


def test_pools_that_differ_are_refused():
    pools = pools_of((6, 1, 2, 2), torch.float32)
    with pytest.raises(ValueError, match="contiguous"):
        block_copy([*pools, pools[0][:3]], [(0, 1)])
    with pytest.raises(ValueError, match="contiguous"):
        block_copy([pools[0], pools[0].transpose(2, 3)], [(0, 1)])
    with pytest.raises(ValueError, match="on meta"):
        block_copy([pools[0], pools[0].to("meta")], [(0, 1)])

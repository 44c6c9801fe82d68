"""Copy whole blocks inside the pools of all layers: copy-on-write, and moves that close gaps.

When two sequences share a last block and one of them writes, it first gets a copy of its own. When free blocks lie
scattered, blocks are moved together. Both are a list of (source, destination) block ids, the same for every pool.

One program copies a piece of one block of one pool; which pool, a table of addresses says. So any number of layers
is one launch.
Source: Kwon et al. 2023 (vLLM), arXiv:2309.06180, section 4.4; vLLM calls it copy_blocks.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from kernels._triton import AotCase, can_launch, jit, launch, tl

PIECE = 4096  # elements that one program copies: 8 KiB in bf16, 32 bytes in flight for each of 256 threads
NUM_WARPS = 8


def block_copy_reference(pools: Sequence[Tensor], pairs: Sequence[tuple[int, int]]) -> None:
    """What `block_copy` does, block by block."""
    for pool in pools:
        for source, destination in pairs:
            pool[destination] = pool[source]


@jit
def _block_copy_kernel(
    pool_addresses_ptr, like_ptr, pairs_ptr, block_elements, PIECE: tl.constexpr, ALIGNED: tl.constexpr
):  # fmt: skip
    pair = tl.program_id(0)
    pool = tl.program_id(1)
    piece = tl.program_id(2)
    source = tl.load(pairs_ptr + 2 * pair).to(tl.int64)
    destination = tl.load(pairs_ptr + 2 * pair + 1).to(tl.int64)
    base = tl.load(pool_addresses_ptr + pool).to(tl.pointer_type(like_ptr.dtype.element_ty))
    if ALIGNED:  # an address from memory tells the compiler nothing: without this it copies element by element
        base = tl.multiple_of(base, 16)
    offset = piece * PIECE + tl.arange(0, PIECE)
    live = offset < block_elements
    x = tl.load(base + source * block_elements + offset, mask=live, other=0)
    tl.store(base + destination * block_elements + offset, x, mask=live)


def block_copy(pools: Sequence[Tensor], pairs: Sequence[tuple[int, int]]) -> None:
    """Copy blocks within each pool, in place; all copies happen at once.

    Args:
        pools: Keys' and Values' pools of all layers, each [num_blocks, ...] contiguous, all of one shape and dtype.
        pairs: (source, destination) block ids. A destination is no other pair's source or destination, because no
            copy waits for another; a chain of moves takes several calls.

    Raises:
        ValueError: pools that differ, ids outside them, or pairs that depend on each other.
    """
    if not pools or not pairs:
        return
    _check(pools, pairs)
    table = torch.tensor(pairs, dtype=torch.int64)
    if not can_launch(pools[0]):
        source, destination = table.to(pools[0].device).unbind(1)
        for pool in pools:
            pool.index_copy_(0, destination, pool.index_select(0, source))
        return
    device, block_elements = pools[0].device, pools[0][0].numel()
    addresses = torch.tensor([pool.data_ptr() for pool in pools], dtype=torch.int64).to(device)
    grid = (len(pairs), len(pools), -(-block_elements // PIECE))
    aligned = all(pool.data_ptr() % 16 == 0 for pool in pools)  # a pool may be cut out of a larger tensor
    launch(
        _block_copy_kernel, grid, addresses, pools[0], table.to(device), block_elements,
        PIECE=PIECE, ALIGNED=aligned, num_warps=NUM_WARPS,
    )  # fmt: skip


def _check(pools: Sequence[Tensor], pairs: Sequence[tuple[int, int]]) -> None:
    first = pools[0]
    for pool in pools:
        same = pool.shape == first.shape and pool.dtype == first.dtype and pool.device == first.device
        if not same or not pool.is_contiguous():
            raise ValueError(
                f"pools must be contiguous {tuple(first.shape)} {first.dtype} on {first.device}, one is "
                f"{tuple(pool.shape)} {pool.dtype} on {pool.device}"
            )
    sources, destinations = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    wrong = [block for block in (*sources, *destinations) if not 0 <= block < first.shape[0]]
    if wrong:
        raise ValueError(f"block {wrong[0]}: expected 0 to {first.shape[0] - 1}")
    if len(set(destinations)) != len(destinations) or set(destinations) & set(sources):
        raise ValueError("a block is written and also read or written by another pair: copy in several calls")


def _case(kind: str, aligned: bool = True) -> AotCase:
    constants = {"PIECE": PIECE, "ALIGNED": aligned}
    types = {"pool_addresses_ptr": "*i64", "like_ptr": f"*{kind}", "pairs_ptr": "*i64", "block_elements": "i32"}
    label = f"{'any shape' if aligned else 'pools at odd addresses'}, {kind}"
    return AotCase(_block_copy_kernel, label, types, constants, ("block_elements",), NUM_WARPS)


AOT_CASES = (_case("bf16"), _case("fp16"), _case("fp32"), _case("bf16", aligned=False))

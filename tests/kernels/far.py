"""Pools of more than 2^31 elements, made where a kernel runs; only the pages that are touched take memory.

32-bit arithmetic would wrap around at 2^31 and write or read somewhere else.
"""

import functools

import torch

from kernels._triton import INTERPRET
from kernels.attention_sums import attention_sums
from kernels.block_copy import block_copy
from kernels.flash_attention import flash_attention
from kernels.kv_write import kv_write
from kernels.mla_decode import mla_decode
from kernels.paged_attention import paged_attention

HEADS, KV_HEADS, HEAD_DIM, BLOCK_SIZE = 4, 2, 16, 16
BLOCK_ELEMENTS = KV_HEADS * BLOCK_SIZE * HEAD_DIM
FAR = (1 << 31) // BLOCK_ELEMENTS + 5  # its first element lies beyond 2^31


def where_kernels_run(work):
    """Tensors are made on the GPU where there is one, so that no pool is carried there."""

    @functools.wraps(work)
    def there():
        with torch.device("cuda" if torch.cuda.is_available() and not INTERPRET else "cpu"):
            return work()

    return there


@where_kernels_run
def paged_far():
    """Write 20 tokens into block `FAR` and block 1, copy block `FAR`, attend to the copy and block 1, 20 far Queries.

    Returns:
        Attention's output, and what it is on a small pool.
    """
    torch.manual_seed(0)
    k, v, new = (torch.randn(20, heads, HEAD_DIM) for heads in (KV_HEADS, KV_HEADS, HEADS))
    q = torch.empty(20 << 27, dtype=torch.bfloat16).as_strided(new.shape, (1 << 27, HEAD_DIM, 1))
    q.copy_(new)
    starts = torch.tensor([0, 20], dtype=torch.int32)
    token = torch.arange(20)
    found = []
    for far in (FAR, 2):
        keys, values = (torch.empty(far + 2, KV_HEADS, BLOCK_SIZE, HEAD_DIM, dtype=torch.bfloat16) for _ in range(2))
        blocks = torch.tensor([far, 1])
        kv_write(k, v, keys, values, blocks[token // BLOCK_SIZE] * BLOCK_SIZE + token % BLOCK_SIZE)
        block_copy([keys, values], [(far, far + 1)])
        table, kv_lens = torch.tensor([[far + 1, 1]], dtype=torch.int32), torch.tensor([20], dtype=torch.int32)
        queries = q if far == FAR else q.contiguous()
        found.append(paged_attention(queries, keys, values, table, kv_lens, q_starts=starts).out)
    return tuple(found)


@where_kernels_run
def latent_far():
    """One decode step over latents of which 16 lie in a far block; and what is right."""
    torch.manual_seed(0)
    rows, queries = torch.randn(20, 32), (torch.randn(1, HEADS, 16), torch.randn(1, HEADS, 16))
    found = []
    for far in ((1 << 31) // (BLOCK_SIZE * 32) + 1, 2):
        cache = torch.empty(far + 1, BLOCK_SIZE, 32)
        cache[far], cache[1, :4] = rows[:16], rows[16:]
        table, kv_lens = torch.tensor([[far, 1]], dtype=torch.int32), torch.tensor([20], dtype=torch.int32)
        found.append(mla_decode(*queries, cache, table, kv_lens, scale=0.2))
    return tuple(found)


@where_kernels_run
def packed_far():
    """Flash attention, sums and writes of 20 tokens that lie 2^27 elements apart; and of the same side by side."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(20, HEADS, HEAD_DIM) for _ in range(3))
    starts, apart = torch.tensor([0, 18, 20], dtype=torch.int32), []
    room = torch.empty(20 << 27, dtype=torch.bfloat16)
    for i, x in enumerate((q, k, v)):
        apart.append(room.as_strided(x.shape, (1 << 27, HEAD_DIM, 1), i * HEADS * HEAD_DIM))
        apart[-1].copy_(x)
    found, slots = [], torch.arange(20)
    for queries, keys, values in (apart, [x.contiguous() for x in apart]):
        out, lse = flash_attention(queries, keys, values, starts, return_lse=True)
        pools = [torch.zeros(2, HEADS, BLOCK_SIZE, HEAD_DIM, dtype=torch.bfloat16) for _ in range(2)]
        kv_write(keys, values, *pools, slots)
        found.append((out, lse, attention_sums(queries, keys, lse, starts), *pools))
    return tuple(found)

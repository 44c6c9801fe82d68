"""Attention cases of `kernel-speed`: decode and a prompt's last chunk over paged caches, and a prompt alone.

The first rival is torch's `scaled_dot_product_attention` on contiguous tensors: nothing to look up, no block to follow.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention.bias import causal_lower_right

from explorer.estimators.roofline import Work, grouped_attention
from explorer.labs import kernel_speed_rivals as rivals
from explorer.labs.kernel_speed_case import OURS, Call, Case, Kind, Shape, layers_for, scattered, spread_out
from explorer.labs.kernel_speed_rivals import FLASH_ATTN, FLASHINFER
from kernels.flash_attention import flash_attention
from kernels.paged_attention import paged_attention

SDPA = "torch SDPA"
CHUNK = 512  # tokens of a prompt that go in at once, as engines cut it


class PagedCaches:
    """The same random Keys and Values twice: in contiguous rows and in scattered blocks.

    Attributes:
        rows: Keys, Values; each [layers, batch, num_kv_heads, kv_len, head_dim].
        pools: Keys, Values; each [layers, num_blocks, num_kv_heads, block_size, head_dim].
        block_table: int32 [batch, blocks].
        kv_lens: int32 [batch].
    """

    def __init__(self, shape: Shape, device: torch.device, layers: int):
        generator = torch.Generator(device).manual_seed(shape.kv_len + shape.batch)
        self.block_table = scattered(shape, device, generator)
        self.kv_lens = torch.full((shape.batch,), shape.kv_len, dtype=torch.int32, device=device)
        made = []
        size = (shape.batch, shape.num_kv_heads, shape.kv_len, shape.head_dim)
        for _ in range(2):
            rows = torch.randn(size, generator=generator, dtype=shape.dtype, device=device)
            blocks = rows.unflatten(2, (shape.blocks, shape.block_size)).transpose(1, 2).flatten(0, 1)
            pool = torch.empty_like(blocks, memory_format=torch.contiguous_format)
            pool[self.block_table.flatten().long()] = blocks
            made.append((spread_out(rows, layers), spread_out(pool, layers)))
        self.rows = made[0][0], made[1][0]
        self.pools = made[0][1], made[1][1]


def queries(shape: Shape, tokens: int, device: torch.device) -> Tensor:
    """Random Queries [tokens, num_heads, head_dim]."""
    generator = torch.Generator(device).manual_seed(tokens)
    size = (tokens, shape.num_heads, shape.head_dim)
    return torch.randn(size, generator=generator, dtype=shape.dtype, device=device)


def paged_decode(shape: Shape, device: torch.device) -> Case:
    """One new token for each sequence."""
    layers = layers_for(shape.cache_bytes)
    caches, q = PagedCaches(shape, device, layers), queries(shape, shape.batch, device)
    (keys, values), (key_pools, value_pools) = caches.rows, caches.pools
    table, kv_lens = caches.block_table, caches.kv_lens
    starts = torch.arange(shape.batch + 1, dtype=torch.int32, device=device)
    grouped = q.view(shape.batch, shape.num_kv_heads, -1, shape.head_dim)  # a group's heads as if they were positions

    def ours(layer: int) -> Tensor:
        return paged_attention(
            q, key_pools[layer], value_pools[layer], table, kv_lens, q_starts=starts, max_q_len=1,
            max_kv_len=shape.kv_len,
        ).out  # fmt: skip

    def sdpa(layer: int) -> Tensor:
        return F.scaled_dot_product_attention(grouped, keys[layer], values[layer]).view_as(q)

    case = Case(decode_work(shape), layers, {OURS: ours, SDPA: sdpa})
    _add(case, FLASHINFER, device, lambda lib: rivals.flashinfer_decode(lib, q, key_pools, value_pools, table, kv_lens))
    _add(case, FLASH_ATTN, device, lambda lib: _flash_attn(lib, shape, caches, q[:, None]))
    return case


def decode_work(shape: Shape) -> Work:
    """Every Key and Value once, the Queries and the output."""
    return grouped_attention(
        shape.num_heads, shape.num_kv_heads, shape.head_dim, shape.kv_len, shape.batch, shape.dtype.itemsize
    )


def chunked_prefill(shape: Shape, device: torch.device) -> Case:
    """The last `CHUNK` tokens of each prompt, whose earlier tokens are in the cache."""
    caches, q = PagedCaches(shape, device, 1), queries(shape, shape.batch * CHUNK, device)
    (key_pools, value_pools), table, kv_lens = caches.pools, caches.block_table, caches.kv_lens
    starts = torch.arange(shape.batch + 1, dtype=torch.int32, device=device) * CHUNK
    group = shape.num_heads // shape.num_kv_heads
    # torch's fused kernels want a Key for each Query head; the copy is made here and not timed.
    keys, values = (rows[0].repeat_interleave(group, 1) for rows in caches.rows)
    mine = q.view(shape.batch, CHUNK, shape.num_heads, shape.head_dim)
    mask = causal_lower_right(CHUNK, shape.kv_len)

    def ours(layer: int) -> Tensor:
        return paged_attention(
            q, key_pools[layer], value_pools[layer], table, kv_lens, q_starts=starts, max_q_len=CHUNK,
            max_kv_len=shape.kv_len,
        ).out  # fmt: skip

    def sdpa(layer: int) -> Tensor:
        out = F.scaled_dot_product_attention(mine.transpose(1, 2), keys, values, attn_mask=mask)
        return out.transpose(1, 2).flatten(0, 1)

    case = Case(chunk_work(shape), 1, {OURS: ours, SDPA: sdpa})
    _add(
        case, FLASHINFER, device,
        lambda lib: rivals.flashinfer_chunk(lib, q, key_pools, value_pools, table, kv_lens, starts),
    )  # fmt: skip
    _add(case, FLASH_ATTN, device, lambda lib: _flash_attn(lib, shape, caches, mine))
    return case


def chunk_work(shape: Shape) -> Work:
    """Query i of the chunk sees all but the CHUNK - 1 - i last Keys."""
    scores = CHUNK * shape.kv_len - CHUNK * (CHUNK - 1) // 2
    own = 2 * shape.batch * CHUNK * shape.num_heads * shape.head_dim * shape.dtype.itemsize
    return Work(shape.batch * 4 * shape.num_heads * shape.head_dim * scores, shape.cache_bytes + own)


def flash_prefill(shape: Shape, device: torch.device) -> Case:
    """Whole prompts, packed one after the other."""
    tokens = shape.batch * shape.kv_len
    generator = torch.Generator(device).manual_seed(shape.kv_len)
    q, size = queries(shape, tokens, device), (tokens, shape.num_kv_heads, shape.head_dim)
    k, v = (torch.randn(size, generator=generator, dtype=shape.dtype, device=device) for _ in range(2))
    starts = torch.arange(shape.batch + 1, dtype=torch.int32, device=device) * shape.kv_len
    group = shape.num_heads // shape.num_kv_heads
    rows = [x.unflatten(0, (shape.batch, shape.kv_len)).transpose(1, 2) for x in (q, k, v)]
    keys, values = (x.repeat_interleave(group, 1) for x in rows[1:])

    def ours(layer: int) -> Tensor:
        out = flash_attention(q, k, v, starts, max_q_len=shape.kv_len)
        assert isinstance(out, Tensor), "the log-sum-exp was not asked for"
        return out

    def sdpa(layer: int) -> Tensor:
        out = F.scaled_dot_product_attention(rows[0], keys, values, is_causal=True)
        return out.transpose(1, 2).flatten(0, 1)

    case = Case(prefill_work(shape), 1, {OURS: ours, SDPA: sdpa})
    _add(case, FLASHINFER, device, lambda lib: rivals.flashinfer_prefill(lib, q, k, v, starts))
    _add(case, FLASH_ATTN, device, lambda lib: rivals.flash_attn_prefill(lib, q, k, v, starts, shape.kv_len))
    return case


def prefill_work(shape: Shape) -> Work:
    """Each Query sees the Keys up to its own position."""
    scores = shape.kv_len * (shape.kv_len + 1) // 2
    own = 2 * shape.batch * shape.kv_len * shape.num_heads * shape.head_dim * shape.dtype.itemsize
    return Work(shape.batch * 4 * shape.num_heads * shape.head_dim * scores, shape.cache_bytes + own)


def _prefill_bytes(shape: Shape) -> int:
    group = shape.num_heads // shape.num_kv_heads
    return shape.cache_bytes * (2 + 5 * group)  # Keys and Values, their copies for every head, Queries, outputs


def _chunk_bytes(shape: Shape) -> int:
    return shape.cache_bytes * (4 + shape.num_heads // shape.num_kv_heads)  # rows, pools, Keys for every head


def _decode_bytes(shape: Shape) -> int:
    return int((2 * layers_for(shape.cache_bytes) + 1.5) * shape.cache_bytes)  # rows and pools, and making them


def _flash_attn(library: rivals.ModuleType, shape: Shape, caches: PagedCaches, q: Tensor) -> Call:
    """On our pages where they are large enough for flash-attn, else on contiguous rows."""
    if shape.block_size % rivals.PAGE_OF_FLASH_ATTN == 0:
        return rivals.flash_attn_cached(library, q, *caches.pools, caches.kv_lens, caches.block_table)
    return rivals.flash_attn_cached(library, q, *caches.rows, caches.kv_lens, None)


def _add(case: Case, name: str, device: torch.device, prepare: Callable[[rivals.ModuleType], Call]) -> None:
    library, fact = rivals.find(name, device)
    if library is None:
        case.absent[name] = fact
        return
    found = library
    case.add({f"{name} {fact}": lambda: prepare(found)})


PAGED_DECODE = Kind("paged_attention", True, _decode_bytes, lambda shape: decode_work(shape).flops, paged_decode)
CHUNKED_PREFILL = Kind("paged_attention", False, _chunk_bytes, lambda shape: chunk_work(shape).flops, chunked_prefill)
FLASH_PREFILL = Kind("flash_attention", False, _prefill_bytes, lambda shape: prefill_work(shape).flops, flash_prefill)

"""How other libraries are asked for the same attention: FlashInfer and flash-attn, where they are installed on a GPU.

Each function prepares one operation and gives a call that takes a layer. Planning happens before, as engines plan once
for all layers of a step. Pools are ours, [num_blocks, num_kv_heads, block_size, head_dim]: FlashInfer's "HND".
Sources: docs.flashinfer.ai (API of decode, prefill, mla, page; tutorial "KV-Cache Layout"; version 0.6.18);
github.com/Dao-AILab/flash-attention, docstrings of flash_attn_interface.py (version 2.8).
"""

import importlib
from types import ModuleType
from typing import NamedTuple

import torch
from torch import Tensor

from explorer.labs.kernel_speed_case import Call
from explorer.measuring.provenance import package_version

FLASHINFER, FLASH_ATTN = "FlashInfer", "flash-attn"
MODULES = {FLASHINFER: ("flashinfer", "flashinfer-python"), FLASH_ATTN: ("flash_attn", "flash-attn")}
WORKSPACE_BYTES = 128 << 20  # as FlashInfer's documentation recommends
PAGE_OF_FLASH_ATTN = 256  # flash-attn's pages hold a multiple of it


class Pages(NamedTuple):
    """Where sequences lie in a pool, as FlashInfer wants it: rows of a sparse matrix, all int32.

    Attributes:
        indptr: [num_seqs + 1], where each sequence's blocks begin in `indices`.
        indices: block ids of all sequences, one after the other.
        last_page_len: [num_seqs], tokens in each sequence's last block, 1 to `block_size`.
    """

    indptr: Tensor
    indices: Tensor
    last_page_len: Tensor


def pages_of(block_table: Tensor, kv_lens: Tensor, block_size: int) -> Pages:
    """A block table as FlashInfer's pages; entries past a sequence's last block are left out."""
    counts = (kv_lens + block_size - 1) // block_size
    used = torch.arange(block_table.shape[1], device=block_table.device) < counts[:, None]
    indptr = torch.zeros(len(kv_lens) + 1, dtype=torch.int32, device=block_table.device)
    indptr[1:] = counts.cumsum(0)
    return Pages(indptr, block_table[used].int(), ((kv_lens - 1) % block_size + 1).int())


def find(name: str, device: torch.device) -> tuple[ModuleType | None, str]:
    """A rival's module, or None; and its version, or why it is not here."""
    if device.type != "cuda":
        return None, "needs a CUDA device"
    module_name, package = MODULES[name]
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        missing = isinstance(error, ModuleNotFoundError) and error.name == module_name
        return None, "not installed" if missing else f"cannot be imported ({type(error).__name__})"
    except (OSError, RuntimeError) as error:  # installed for another CUDA
        return None, f"cannot be imported ({type(error).__name__})"
    return module, package_version(package) or "unknown version"


def flashinfer_decode(
    module: ModuleType, q: Tensor, key_pools: Tensor, value_pools: Tensor, block_table: Tensor, kv_lens: Tensor
) -> Call:
    """`BatchDecodeWithPagedKVCacheWrapper`: q [num_seqs, num_heads, head_dim], pools [layers, ...].

    On tensor cores, as its documentation advises where many Query heads share a KV head.
    """
    (num_heads, head_dim), (num_kv_heads, block_size) = q.shape[1:], key_pools.shape[2:4]
    wrapper = module.BatchDecodeWithPagedKVCacheWrapper(
        _workspace(q), "HND", use_tensor_cores=num_heads // num_kv_heads >= 4
    )
    wrapper.plan(
        *pages_of(block_table, kv_lens, block_size), num_heads, num_kv_heads, head_dim, block_size,
        q_data_type=q.dtype, kv_data_type=key_pools.dtype,
    )  # fmt: skip
    return lambda layer: wrapper.run(q, (key_pools[layer], value_pools[layer]))


def flashinfer_chunk(
    module: ModuleType, q: Tensor, key_pools: Tensor, value_pools: Tensor, block_table: Tensor, kv_lens: Tensor,
    q_starts: Tensor,
) -> Call:  # fmt: skip
    """`BatchPrefillWithPagedKVCacheWrapper`, causal: q [tokens, num_heads, head_dim], each sequence's last tokens."""
    (num_heads, head_dim), (num_kv_heads, block_size) = q.shape[1:], key_pools.shape[2:4]
    wrapper = module.BatchPrefillWithPagedKVCacheWrapper(_workspace(q), "HND")
    wrapper.plan(
        q_starts, *pages_of(block_table, kv_lens, block_size), num_heads, num_kv_heads, head_dim, block_size,
        causal=True, q_data_type=q.dtype, kv_data_type=key_pools.dtype,
    )  # fmt: skip
    return lambda layer: wrapper.run(q, (key_pools[layer], value_pools[layer]))


def flashinfer_prefill(module: ModuleType, q: Tensor, k: Tensor, v: Tensor, starts: Tensor) -> Call:
    """`BatchPrefillWithRaggedKVCacheWrapper`, causal: packed tokens of all sequences, [tokens, heads, head_dim]."""
    wrapper = module.BatchPrefillWithRaggedKVCacheWrapper(_workspace(q), "NHD")
    wrapper.plan(
        starts, starts, q.shape[1], k.shape[1], q.shape[2], causal=True, q_data_type=q.dtype, kv_data_type=k.dtype
    )
    return lambda layer: wrapper.run(q, k, v)


def flashinfer_mla(
    module: ModuleType, q_latent: Tensor, q_rope: Tensor, caches: Tensor, block_table: Tensor, kv_lens: Tensor,
    scale: float,
) -> Call:  # fmt: skip
    """`mla.BatchMLAPagedAttentionWrapper`: caches [layers, num_blocks, block_size, latent_dim + rope_dim]."""
    num_seqs, num_heads, latent_dim = q_latent.shape
    block_size = caches.shape[2]
    pages = pages_of(block_table, kv_lens, block_size)
    wrapper = module.mla.BatchMLAPagedAttentionWrapper(_workspace(q_latent))
    wrapper.plan(
        torch.arange(num_seqs + 1, dtype=torch.int32, device=q_latent.device), pages.indptr, pages.indices, kv_lens,
        num_heads, latent_dim, q_rope.shape[2], block_size, False, scale, q_latent.dtype, caches.dtype,
    )  # fmt: skip
    return lambda layer: wrapper.run(q_latent, q_rope, caches[layer, ..., :latent_dim], caches[layer, ..., latent_dim:])


def flashinfer_append(
    module: ModuleType, k: Tensor, v: Tensor, key_pools: Tensor, value_pools: Tensor, block_table: Tensor,
    kv_lens: Tensor,
) -> Call:  # fmt: skip
    """`append_paged_kv_cache`: all tokens of all sequences, [tokens, num_kv_heads, head_dim], into their blocks."""
    pages = pages_of(block_table, kv_lens, key_pools.shape[3])
    seqs = torch.arange(len(kv_lens), device=k.device).repeat_interleave(kv_lens).int()
    begins = (kv_lens.cumsum(0) - kv_lens).repeat_interleave(kv_lens)
    positions = (torch.arange(len(k), device=k.device) - begins).int()

    def call(layer: int) -> None:
        module.append_paged_kv_cache(
            k, v, seqs, positions, (key_pools[layer], value_pools[layer]), pages.indices, pages.indptr,
            pages.last_page_len, kv_layout="HND",
        )  # fmt: skip

    return call


def flash_attn_cached(
    module: ModuleType, q: Tensor, keys: Tensor, values: Tensor, kv_lens: Tensor, block_table: Tensor | None
) -> Call:
    """`flash_attn_with_kvcache`, causal, aligned to the last Key.

    Args:
        module: flash_attn.
        q: [num_seqs, q_len, num_heads, head_dim].
        keys: contiguous rows [layers, num_seqs, num_kv_heads, kv_len, head_dim], or pools with a `block_table`. It
            wants tokens before heads and takes any strides as long as the last is 1: a view is enough.
        values: like `keys`.
        kv_lens: int32 [num_seqs].
        block_table: int32 [num_seqs, max_blocks], for blocks of a multiple of 256 tokens; None for rows.
    """

    def call(layer: int) -> Tensor:
        return module.flash_attn_with_kvcache(
            q, keys[layer].transpose(1, 2), values[layer].transpose(1, 2), cache_seqlens=kv_lens,
            block_table=block_table, causal=True,
        ).flatten(0, 1)  # fmt: skip

    return call


def flash_attn_prefill(module: ModuleType, q: Tensor, k: Tensor, v: Tensor, starts: Tensor, longest: int) -> Call:
    """`flash_attn_varlen_func`, causal: packed tokens of all sequences, [tokens, heads, head_dim]."""
    return lambda layer: module.flash_attn_varlen_func(q, k, v, starts, starts, longest, longest, causal=True)


def _workspace(like: Tensor) -> Tensor:
    """FlashInfer's scratch memory; some of its paths want it zeroed before the first use."""
    return torch.zeros(WORKSPACE_BYTES, dtype=torch.uint8, device=like.device)

"""Put new Keys and Values where the block table says: the write half of a paged cache.

    slot_mapping   token -> block_id * block_size + offset, or -1 for a token that is not kept (padding)

One program takes one token, reads its slot, and writes all of its KV heads.
Source: Kwon et al. 2023 (vLLM), arXiv:2309.06180, section 4.3; vLLM calls it reshape_and_cache.
"""

import torch
from torch import Tensor

from kernels._triton import AotCase, can_launch, jit, launch, next_power_of_2, tl


def kv_write_reference(k: Tensor, v: Tensor, key_pool: Tensor, value_pool: Tensor, slot_mapping: Tensor) -> None:
    """What `kv_write` does, token by token."""
    block_size = key_pool.shape[2]
    for token, slot in enumerate(slot_mapping.tolist()):
        if slot >= 0:
            key_pool[slot // block_size, :, slot % block_size] = k[token].to(key_pool.dtype)
            value_pool[slot // block_size, :, slot % block_size] = v[token].to(value_pool.dtype)


@jit
def _kv_write_kernel(
    k_ptr, v_ptr, key_pool_ptr, value_pool_ptr, slot_mapping_ptr, k_stride_token, v_stride_token,
    NUM_KV_HEADS: tl.constexpr, HEADS_PAD: tl.constexpr,
    HEAD_DIM: tl.constexpr, DIM_PAD: tl.constexpr, BLOCK_SIZE: tl.constexpr,
):  # fmt: skip
    token = tl.program_id(0).to(tl.int64)
    slot = tl.load(slot_mapping_ptr + token).to(tl.int64)
    if slot >= 0:
        h = tl.arange(0, HEADS_PAD)[:, None]
        d = tl.arange(0, DIM_PAD)[None, :]
        live = (h < NUM_KV_HEADS) & (d < HEAD_DIM)
        source = h * HEAD_DIM + d  # [HEADS_PAD, DIM_PAD]
        # Pools are [num_blocks, num_kv_heads, block_size, head_dim].
        place = ((slot // BLOCK_SIZE * NUM_KV_HEADS + h) * BLOCK_SIZE + slot % BLOCK_SIZE) * HEAD_DIM + d
        k = tl.load(k_ptr + token * k_stride_token + source, mask=live, other=0.0)
        v = tl.load(v_ptr + token * v_stride_token + source, mask=live, other=0.0)
        tl.store(key_pool_ptr + place, k.to(key_pool_ptr.dtype.element_ty), mask=live)
        tl.store(value_pool_ptr + place, v.to(value_pool_ptr.dtype.element_ty), mask=live)


def kv_write(k: Tensor, v: Tensor, key_pool: Tensor, value_pool: Tensor, slot_mapping: Tensor) -> None:
    """Write each token's Keys and Values into its slot. The pools are changed in place.

    Args:
        k: new Keys, [tokens, num_kv_heads, head_dim]; a token's heads lie in one piece, tokens may be apart.
        v: new Values, like `k`.
        key_pool: [num_blocks, num_kv_heads, block_size, head_dim], contiguous.
        value_pool: like `key_pool`.
        slot_mapping: int32 or int64 [tokens], each slot at most once; -1 leaves the token out.

    Raises:
        ValueError: shapes or layouts that do not fit.
    """
    _check(k, v, key_pool, value_pool, slot_mapping)
    if not can_launch(k):
        # An index of -1 would write into the last slot.
        if slot_mapping.numel() and int(slot_mapping.min()) < 0:
            keep = slot_mapping >= 0
            k, v, slot_mapping = k[keep], v[keep], slot_mapping[keep]
        write_rows(k, v, key_pool, value_pool, rows_of(slot_mapping, *key_pool.shape[1:3]))
        return
    tokens, num_kv_heads, head_dim = k.shape
    if tokens == 0:
        return
    launch(
        _kv_write_kernel, (tokens,), k, v, key_pool, value_pool, slot_mapping, k.stride(0), v.stride(0),
        **_constants(num_kv_heads, head_dim, key_pool.shape[2]), num_warps=_num_warps(num_kv_heads, head_dim),
    )  # fmt: skip


def rows_of(slot_mapping: Tensor, num_kv_heads: int, block_size: int) -> Tensor:
    """Where the slots' heads lie in a pool seen as [num_blocks * num_kv_heads * block_size, head_dim].

    A caller that writes the same slots into many layers' pools works them out once.

    Args:
        slot_mapping: [tokens], none of them -1.
        num_kv_heads: of the pool.
        block_size: of the pool.

    Returns:
        int64 [tokens * num_kv_heads].
    """
    slots = slot_mapping.long()[:, None]
    heads = torch.arange(num_kv_heads, device=slots.device)
    return ((slots // block_size * num_kv_heads + heads) * block_size + slots % block_size).flatten()


def write_rows(k: Tensor, v: Tensor, key_pool: Tensor, value_pool: Tensor, rows: Tensor) -> None:
    """The CPU path of `kv_write`, at rows from `rows_of`: one indexed copy for Keys and one for Values."""
    head_dim = k.shape[-1]
    key_pool.view(-1, head_dim).index_copy_(0, rows, k.reshape(-1, head_dim).to(key_pool.dtype))
    value_pool.view(-1, head_dim).index_copy_(0, rows, v.reshape(-1, head_dim).to(value_pool.dtype))


def _constants(num_kv_heads: int, head_dim: int, block_size: int) -> dict[str, int]:
    return {
        "NUM_KV_HEADS": num_kv_heads,
        "HEADS_PAD": next_power_of_2(num_kv_heads),
        "HEAD_DIM": head_dim,
        "DIM_PAD": next_power_of_2(head_dim),
        "BLOCK_SIZE": block_size,
    }


def _num_warps(num_kv_heads: int, head_dim: int) -> int:
    """So many that 64 heads of 256 and more stay in registers."""
    return min(16, max(4, next_power_of_2(num_kv_heads) * next_power_of_2(head_dim) // 2048))


def _check(k: Tensor, v: Tensor, key_pool: Tensor, value_pool: Tensor, slot_mapping: Tensor) -> None:
    if k.dim() != 3 or k.shape != v.shape:
        raise ValueError(
            f"k {tuple(k.shape)} and v {tuple(v.shape)}: expected the same [tokens, num_kv_heads, head_dim]"
        )
    if key_pool.dim() != 4 or key_pool.shape != value_pool.shape or key_pool.shape[1::2] != k.shape[1:]:
        raise ValueError(
            f"pools {tuple(key_pool.shape)} and {tuple(value_pool.shape)} do not fit k {tuple(k.shape)}: "
            "expected [num_blocks, num_kv_heads, block_size, head_dim]"
        )
    if not (key_pool.is_contiguous() and value_pool.is_contiguous()):
        raise ValueError("key_pool and value_pool must be contiguous: they are written in place")
    for name, x in (("k", k), ("v", v)):
        if x.shape[0] and x[0].stride() != (x.shape[2], 1) and not x[0].is_contiguous():
            raise ValueError(f"{name} has strides {x.stride()}: a token's heads must lie in one piece")
    whole = slot_mapping.dtype in (torch.int32, torch.int64) and slot_mapping.is_contiguous()
    if slot_mapping.shape != k.shape[:1] or not whole:
        raise ValueError(
            f"slot_mapping {tuple(slot_mapping.shape)} {slot_mapping.dtype}, strides {slot_mapping.stride()}: "
            f"expected contiguous int32 or int64 [{k.shape[0]}]"
        )


def _case(num_kv_heads: int, head_dim: int, block_size: int, kind: str) -> AotCase:
    pointers = {f"{name}_ptr": f"*{kind}" for name in ("k", "v", "key_pool", "value_pool")}
    return AotCase(
        kernel=_kv_write_kernel,
        label=f"{num_kv_heads} heads of {head_dim}, block {block_size}, {kind}",
        types=pointers | {"slot_mapping_ptr": "*i64", "k_stride_token": "i32", "v_stride_token": "i32"},
        constants=_constants(num_kv_heads, head_dim, block_size),
        aligned=("k_stride_token", "v_stride_token"),
        num_warps=_num_warps(num_kv_heads, head_dim),
    )


AOT_CASES = (_case(3, 64, 16, "bf16"), _case(8, 128, 16, "bf16"), _case(8, 128, 256, "fp16"), _case(8, 256, 64, "bf16"),
             _case(128, 256, 16, "bf16"), _case(64, 128, 16, "fp32"))  # fmt: skip

"""Causal attention over whole prompts without ever storing the scores (FlashAttention).

Several sequences lie packed one after the other; `cu_seqlens` says where each begins. One program takes BLOCK_M
Queries of one head, walks over the Keys that they see in tiles of BLOCK_N, and keeps three running values per Query:
the largest score so far m, the softmax' denominator z, and the unnormalised output. A larger score rescales the two
others by exp(m - m_new). At the end output / z is exact attention, and m + log z the log-sum-exp of the scores.
Source: Dao et al. 2022, arXiv:2205.14135, algorithm 1; loop order of FlashAttention-2, arXiv:2307.08691, section 3.
"""

import math
from typing import Any

import torch
from torch import Tensor

from kernels._dot import dot
from kernels._triton import AotCase, can_launch, jit, launch, padded, tl
from kernels.flash_torch import attend_sequences
from kernels.packed import check_packed

LOG2_E = math.log2(math.e)  # the GPU has exp2 in hardware, so the scores are taken times log2(e)


def flash_attention_reference(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    cu_seqlens: Tensor,
    cu_seqlens_k: Tensor | None = None,
    sliding_window: int | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    """What `flash_attention` computes with `return_lse`, head by head with all scores in float32."""
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    out, lse = torch.zeros(q.shape), torch.zeros(q.shape[1], q.shape[0])
    group = q.shape[1] // k.shape[1]
    starts, starts_k = cu_seqlens.tolist(), (cu_seqlens if cu_seqlens_k is None else cu_seqlens_k).tolist()
    for s in range(len(starts) - 1):
        rows, cols = slice(starts[s], starts[s + 1]), slice(starts_k[s], starts_k[s + 1])
        q_len, kv_len = rows.stop - rows.start, cols.stop - cols.start
        position = torch.arange(kv_len - q_len, kv_len)[:, None]
        key = torch.arange(kv_len)[None, :]
        seen = (key <= position) & (key > position - (sliding_window or kv_len + 1))
        for h in range(q.shape[1]):
            keys, values = k[cols, h // group].float().cpu(), v[cols, h // group].float().cpu()
            scores = (q[rows, h].float().cpu() @ keys.T * scale).masked_fill(~seen, -math.inf)
            out[rows, h], lse[h, rows] = scores.softmax(1) @ values, scores.logsumexp(1)
    return out.to(q.device), lse.to(q.device)


@jit
def _fold_tiles(
    acc, m, z, q, position, first, last, k_base, v_base, k_stride, v_stride, kv_len, scale_log2, sliding_window,
    HEAD_DIM: tl.constexpr, DIM_PAD: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    WINDOW: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Fold the tiles of Keys [first, last) into the running values; MASKED where some Query does not see them all."""
    d = tl.arange(0, DIM_PAD)
    n = tl.arange(0, BLOCK_N)
    for start in range(first, last, BLOCK_N):
        key = start + n
        live = (key < kv_len)[:, None] & (d < HEAD_DIM)[None, :]
        k = tl.load(k_base + key.to(tl.int64)[:, None] * k_stride + d[None, :], mask=live, other=0.0)
        v = tl.load(v_base + key.to(tl.int64)[:, None] * v_stride + d[None, :], mask=live, other=0.0)
        scores = dot(q, tl.trans(k), tl.zeros([BLOCK_M, BLOCK_N], tl.float32)) * scale_log2
        if MASKED:
            seen = (key[None, :] <= position[:, None]) & (key < kv_len)[None, :]
            if WINDOW:
                seen = seen & (key[None, :] > position[:, None] - sliding_window)
            scores = tl.where(seen, scores, float("-inf"))
        m_new = tl.maximum(m, tl.max(scores, 1))
        # A Query that has seen no Key yet has m = -inf, and inf - inf would be NaN.
        base = tl.where(m_new == float("-inf"), 0.0, m_new)
        p = tl.exp2(scores - base[:, None])
        shrink = tl.exp2(m - base)
        z = z * shrink + tl.sum(p, 1)
        acc = dot(p.to(v.dtype), v, acc * shrink[:, None])
        m = m_new
    return acc, m, z


@jit(do_not_specialize=("total_q", "sliding_window"))
def _flash_attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, cu_q_ptr, cu_k_ptr, q_stride, k_stride, v_stride, total_q, scale_log2,
    sliding_window, NUM_HEADS: tl.constexpr, GROUP: tl.constexpr, HEAD_DIM: tl.constexpr, DIM_PAD: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, WINDOW: tl.constexpr, WITH_LSE: tl.constexpr,
):  # fmt: skip
    # The last rows of a sequence see most Keys: they start first, so that no long program is left to the end.
    first_row = (tl.num_programs(0) - 1 - tl.program_id(0)) * BLOCK_M
    head = tl.program_id(1).to(tl.int64)
    seq = tl.program_id(2)
    q_start = tl.load(cu_q_ptr + seq).to(tl.int64)
    k_start = tl.load(cu_k_ptr + seq).to(tl.int64)
    q_len = (tl.load(cu_q_ptr + seq + 1) - q_start).to(tl.int32)
    kv_len = (tl.load(cu_k_ptr + seq + 1) - k_start).to(tl.int32)
    if first_row >= q_len:
        return
    row = first_row + tl.arange(0, BLOCK_M)
    position = kv_len - q_len + row  # the Queries are the sequence's last ones
    d = tl.arange(0, DIM_PAD)
    live = (row < q_len)[:, None] & (d < HEAD_DIM)[None, :]
    token = (q_start + row)[:, None]
    q = tl.load(q_ptr + token * q_stride + head * HEAD_DIM + d[None, :], mask=live, other=0.0)
    k_base = k_ptr + k_start * k_stride + head // GROUP * HEAD_DIM
    v_base = v_ptr + k_start * v_stride + head // GROUP * HEAD_DIM

    acc = tl.zeros([BLOCK_M, DIM_PAD], tl.float32)
    m = tl.full([BLOCK_M], float("-inf"), tl.float32)
    z = tl.zeros([BLOCK_M], tl.float32)
    first_position = kv_len - q_len + first_row
    last_key = tl.minimum(first_position + BLOCK_M, kv_len)  # one past the last Key that any row sees
    all_see = (first_position + 1) // BLOCK_N * BLOCK_N  # tiles before it end at or before the first row's position
    first_key = 0
    if WINDOW:
        first_key = tl.maximum(first_position - sliding_window + 1, 0) // BLOCK_N * BLOCK_N
        edge = tl.maximum(first_position + BLOCK_M - sliding_window, 0)  # from here on the last row sees every Key
        edge = tl.minimum((edge + BLOCK_N - 1) // BLOCK_N * BLOCK_N, last_key)
        acc, m, z = _fold_tiles(
            acc, m, z, q, position, first_key, edge, k_base, v_base, k_stride, v_stride, kv_len, scale_log2,
            sliding_window, HEAD_DIM, DIM_PAD, BLOCK_M, BLOCK_N, WINDOW, True,
        )  # fmt: skip
        first_key = edge
        all_see = tl.maximum(all_see, edge)
    acc, m, z = _fold_tiles(
        acc, m, z, q, position, first_key, all_see, k_base, v_base, k_stride, v_stride, kv_len, scale_log2,
        sliding_window, HEAD_DIM, DIM_PAD, BLOCK_M, BLOCK_N, WINDOW, False,
    )  # fmt: skip
    acc, m, z = _fold_tiles(
        acc, m, z, q, position, all_see, last_key, k_base, v_base, k_stride, v_stride, kv_len, scale_log2,
        sliding_window, HEAD_DIM, DIM_PAD, BLOCK_M, BLOCK_N, WINDOW, True,
    )  # fmt: skip
    z = tl.where(row < q_len, z, 1.0)
    place = (token * NUM_HEADS + head) * HEAD_DIM + d[None, :]
    tl.store(out_ptr + place, (acc / z[:, None]).to(out_ptr.dtype.element_ty), mask=live)
    if WITH_LSE:
        lse = (m + tl.log2(z)) * 0.6931471805599453  # log 2: back to the natural logarithm
        tl.store(lse_ptr + head * total_q + q_start + row, lse, mask=row < q_len)


def flash_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    cu_seqlens: Tensor,
    *,
    cu_seqlens_k: Tensor | None = None,
    sliding_window: int | None = None,
    scale: float | None = None,
    max_q_len: int | None = None,
    return_lse: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """Causal attention of packed sequences to themselves.

    Args:
        q: Queries, [total_q, num_heads, head_dim], fp16, bf16 or fp32; a token's heads lie in one piece.
        k: Keys, [total_k, num_kv_heads, head_dim], likewise; num_heads is a multiple of num_kv_heads.
        v: Values, like `k`.
        cu_seqlens: int32 or int64 [num_seqs + 1], where each sequence's Queries begin, then their total.
        cu_seqlens_k: the same for Keys where a sequence has more Keys than Queries: its Queries are then its last
            positions. None: as many Keys as Queries.
        sliding_window: Keys that a Query sees at most, itself included; None for all before it.
        scale: factor on the scores; `head_dim ** -0.5` if not given.
        max_q_len: most Queries of any sequence; saves a GPU the wait for `cu_seqlens`.
        return_lse: also return the log-sum-exp.

    Returns:
        [total_q, num_heads, head_dim] like `q`; with `return_lse` also the natural logarithm of each Query's sum of
        exp(score), [num_heads, total_q] float32.

    Raises:
        ValueError: shapes, layouts or lengths that do not fit.
    """
    cu_seqlens_k = cu_seqlens if cu_seqlens_k is None else cu_seqlens_k
    check_packed(q, k, v, cu_seqlens, cu_seqlens_k, sliding_window)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    if not can_launch(q):
        return attend_sequences(q, k, v, cu_seqlens, cu_seqlens_k, sliding_window, scale, return_lse)
    total_q, num_heads, head_dim = q.shape
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    lse = torch.empty(num_heads, total_q, dtype=torch.float32, device=q.device) if return_lse else None
    if max_q_len is None:
        max_q_len = int(cu_seqlens.diff().max())
    how = _tiles(head_dim, q.element_size())
    if max_q_len:
        grid = (-(-max_q_len // how["BLOCK_M"]), num_heads, cu_seqlens.numel() - 1)
        launch(
            _flash_attention_kernel, grid, q, k, v, out, lse, cu_seqlens, cu_seqlens_k, q.stride(0), k.stride(0),
            v.stride(0), total_q, scale * LOG2_E, min(sliding_window or 0, k.shape[0]), NUM_HEADS=num_heads,
            GROUP=num_heads // k.shape[1], HEAD_DIM=head_dim, DIM_PAD=padded(head_dim),
            WINDOW=sliding_window is not None, WITH_LSE=return_lse, **how,
        )  # fmt: skip
    return out if lse is None else (out, lse)


def _tiles(head_dim: int, element_bytes: int) -> dict[str, Any]:
    """Tile sizes that keep every accumulator in registers on sm_80, sm_90 and sm_120 (compiled ahead of time)."""
    if element_bytes == 4:
        rows = 32 if head_dim <= 64 else 16
        return {"BLOCK_M": rows, "BLOCK_N": 32, "num_warps": 4 if head_dim <= 64 else 8, "num_stages": 1}
    if head_dim <= 64:
        return {"BLOCK_M": 128, "BLOCK_N": 64, "num_warps": 8, "num_stages": 3}
    if head_dim <= 128:
        return {"BLOCK_M": 128, "BLOCK_N": 32, "num_warps": 8, "num_stages": 3}
    return {"BLOCK_M": 64, "BLOCK_N": 16, "num_warps": 8, "num_stages": 3}


def _case(num_heads: int, num_kv_heads: int, head_dim: int, kind: str, window: bool = False) -> AotCase:
    how = _tiles(head_dim, 4 if kind == "fp32" else 2)
    types = {f"{name}_ptr": f"*{kind}" for name in ("q", "k", "v", "out")} | {"lse_ptr": "*fp32"}
    types |= {"cu_q_ptr": "*i32", "cu_k_ptr": "*i32", "scale_log2": "fp32", "sliding_window": "i32", "total_q": "i32"}
    constants = {"NUM_HEADS": num_heads, "GROUP": num_heads // num_kv_heads, "HEAD_DIM": head_dim}
    constants |= {"DIM_PAD": padded(head_dim), "WINDOW": window, "WITH_LSE": True}
    strides = ("q_stride", "k_stride", "v_stride")
    return AotCase(
        kernel=_flash_attention_kernel,
        label=f"prefill, {num_heads}/{num_kv_heads} heads of {head_dim}{', window' if window else ''}, {kind}",
        types=types | dict.fromkeys(strides, "i32"),
        constants=constants | {name: how[name] for name in ("BLOCK_M", "BLOCK_N")},
        aligned=strides,
        num_warps=how["num_warps"],
        num_stages=how["num_stages"],
    )


AOT_CASES = (
    _case(9, 3, 64, "bf16"),
    _case(32, 8, 128, "bf16", window=True),
    _case(32, 32, 80, "fp16"),
    _case(32, 32, 96, "bf16"),
    _case(8, 4, 256, "bf16"),
    _case(4, 2, 8, "bf16"),
    _case(9, 3, 64, "fp32"),
    _case(32, 8, 128, "fp32"),
    _case(8, 4, 256, "fp32", window=True),
)

"""How much attention each Key received: the raw material of H2O and SnapKV, without the matrix of probabilities.

A probability is exp(score - lse) of its Query, so with the log-sum-exp that attention gives (`flash_attention`,
`paged_attention`) no second softmax is needed and the probabilities of one tile can be added up and dropped. One
program takes BLOCK_N Keys of one KV head and adds over all Queries that see them, of all heads that share the KV head.
Source: column sums as in Zhang et al. 2023 (H2O), arXiv:2306.14048, algorithm 1 (all Queries), and Li et al. 2024
(SnapKV), arXiv:2404.14469, section 4 (the last Queries). Both papers' code adds per Query head; here a group is added.
"""

import math

import torch
from torch import Tensor

from kernels._dot import dot
from kernels._triton import AotCase, can_launch, jit, launch, padded, tl
from kernels.flash_attention import LOG2_E
from kernels.packed import check_packed, hidden_mask, seen_range

# Queries and Keys of one tile on a CPU: 8 MiB of probabilities at 32 heads. Equal within noise to other tiles of 64-256
# x 512-4096; 2,048 Queries, 9/3 heads of 64: 50 ms, and 185 with the whole matrix (2 cores, bf16).
TILE_ROWS, TILE_KEYS = 128, 512


def attention_sums_reference(
    q: Tensor,
    k: Tensor,
    lse: Tensor,
    cu_seqlens: Tensor,
    cu_seqlens_k: Tensor | None = None,
    sliding_window: int | None = None,
    scale: float | None = None,
) -> Tensor:
    """What `attention_sums` computes, head by head with all probabilities in float32."""
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    sums = torch.zeros(k.shape[1], k.shape[0])
    group = q.shape[1] // k.shape[1]
    starts, starts_k = cu_seqlens.tolist(), (cu_seqlens if cu_seqlens_k is None else cu_seqlens_k).tolist()
    for s in range(len(starts) - 1):
        rows, cols = slice(starts[s], starts[s + 1]), slice(starts_k[s], starts_k[s + 1])
        q_len, kv_len = rows.stop - rows.start, cols.stop - cols.start
        position = torch.arange(kv_len - q_len, kv_len)[:, None]
        key = torch.arange(kv_len)[None, :]
        seen = (key <= position) & (key > position - (sliding_window or kv_len + 1))
        for h in range(q.shape[1]):
            scores = q[rows, h].float().cpu() @ k[cols, h // group].float().cpu().T * scale
            probabilities = (scores - lse[h, rows, None].float().cpu()).exp().masked_fill(~seen, 0.0)
            sums[h // group, cols] += probabilities.sum(0)
    return sums.to(q.device)


@jit(do_not_specialize=("total_q", "total_k", "sliding_window"))
def _attention_sums_kernel(
    q_ptr, k_ptr, lse_ptr, sums_ptr, cu_q_ptr, cu_k_ptr, q_stride, k_stride, total_q, total_k, scale_log2,
    sliding_window, GROUP: tl.constexpr, HEAD_DIM: tl.constexpr, DIM_PAD: tl.constexpr, BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr, WINDOW: tl.constexpr,
):  # fmt: skip
    first_key = tl.program_id(0) * BLOCK_N  # the first Keys are seen by most Queries, and start first
    kv_head = tl.program_id(1).to(tl.int64)
    seq = tl.program_id(2)
    q_start = tl.load(cu_q_ptr + seq).to(tl.int64)
    k_start = tl.load(cu_k_ptr + seq).to(tl.int64)
    q_len = (tl.load(cu_q_ptr + seq + 1) - q_start).to(tl.int32)
    kv_len = (tl.load(cu_k_ptr + seq + 1) - k_start).to(tl.int32)
    if first_key >= kv_len:
        return
    d = tl.arange(0, DIM_PAD)
    key = first_key + tl.arange(0, BLOCK_N)
    k_offset = (k_start + key)[:, None] * k_stride + kv_head * HEAD_DIM + d[None, :]
    k = tl.load(k_ptr + k_offset, mask=(key < kv_len)[:, None] & (d < HEAD_DIM)[None, :], other=0.0)
    k = tl.trans(k)

    offset = kv_len - q_len  # position of the first Query
    first_row = tl.maximum(first_key - offset, 0) // BLOCK_M * BLOCK_M
    last_row = q_len
    if WINDOW:
        last_row = tl.minimum(first_key + BLOCK_N - 1 + sliding_window - offset, q_len)
    sums = tl.zeros([BLOCK_N], tl.float32)
    for g in range(GROUP):
        head = kv_head * GROUP + g
        for start in range(first_row, last_row, BLOCK_M):
            row = start + tl.arange(0, BLOCK_M)
            live = row < q_len
            q_offset = (q_start + row)[:, None] * q_stride + head * HEAD_DIM + d[None, :]
            q = tl.load(q_ptr + q_offset, mask=live[:, None] & (d < HEAD_DIM)[None, :], other=0.0)
            lse = tl.load(lse_ptr + head * total_q + q_start + row, mask=live, other=0.0)
            scores = dot(q, k, tl.zeros([BLOCK_M, BLOCK_N], tl.float32)) * scale_log2
            p = tl.exp2(scores - (lse * 1.4426950408889634)[:, None])  # log2(e): scores are in base 2
            position = offset + row
            seen = live[:, None] & (key[None, :] <= position[:, None])
            if WINDOW:
                seen = seen & (key[None, :] > position[:, None] - sliding_window)
            sums += tl.sum(tl.where(seen, p, 0.0), 0)
    tl.store(sums_ptr + kv_head * total_k + k_start + key, sums, mask=key < kv_len)


def attention_sums(
    q: Tensor,
    k: Tensor,
    lse: Tensor,
    cu_seqlens: Tensor,
    *,
    cu_seqlens_k: Tensor | None = None,
    sliding_window: int | None = None,
    scale: float | None = None,
    max_kv_len: int | None = None,
) -> Tensor:
    """The attention that each Key received from a range of Queries, added over Queries and over its group of heads.

    The Queries are the last ones of their sequence: all of it for H2O, the observation window for SnapKV. For Queries
    in the middle, hand over the Keys up to the last of them; later Keys receive nothing.

    Args:
        q: Queries, [total_q, num_heads, head_dim], fp16, bf16 or fp32; a token's heads lie in one piece.
        k: Keys, [total_k, num_kv_heads, head_dim], likewise.
        lse: log-sum-exp of each Query's scores over all Keys that it sees, natural, [num_heads, total_q] float32.
        cu_seqlens: int32 or int64 [num_seqs + 1], where each sequence's Queries begin, then their total.
        cu_seqlens_k: the same for Keys; None: as many Keys as Queries.
        sliding_window: Keys that a Query sees at most, itself included; None for all before it.
        scale: factor on the scores, as it was for `lse`; `head_dim ** -0.5` if not given.
        max_kv_len: most Keys of any sequence; saves a GPU the wait for `cu_seqlens_k`.

    Returns:
        [num_kv_heads, total_k] float32. Over a sequence's Keys a row adds up to Queries x heads of the group.

    Raises:
        ValueError: shapes, layouts or lengths that do not fit.
    """
    cu_seqlens_k = cu_seqlens if cu_seqlens_k is None else cu_seqlens_k
    check_packed(q, k, k, cu_seqlens, cu_seqlens_k, sliding_window)
    if lse.shape != (q.shape[1], q.shape[0]) or lse.dtype != torch.float32 or not lse.is_contiguous():
        raise ValueError(
            f"lse {tuple(lse.shape)} {lse.dtype}: expected contiguous float32 {(q.shape[1], q.shape[0])}, heads first"
        )
    (total_q, num_heads, head_dim), (total_k, num_kv_heads, _) = q.shape, k.shape
    scale = head_dim**-0.5 if scale is None else scale
    sums = torch.zeros(num_kv_heads, total_k, dtype=torch.float32, device=q.device)
    if not can_launch(q):
        starts, starts_k = cu_seqlens.tolist(), cu_seqlens_k.tolist()
        for s in range(len(starts) - 1):
            rows, cols = slice(starts[s], starts[s + 1]), slice(starts_k[s], starts_k[s + 1])
            _add_sequence(q[rows], k[cols], lse[:, rows], sliding_window, scale, sums[:, cols])
        return sums
    if max_kv_len is None:
        max_kv_len = int(cu_seqlens_k.diff().max())
    if max_kv_len:
        how = _tiles(head_dim, q.element_size())
        grid = (-(-max_kv_len // how["BLOCK_N"]), num_kv_heads, cu_seqlens.numel() - 1)
        launch(
            _attention_sums_kernel, grid, q, k, lse, sums, cu_seqlens, cu_seqlens_k, q.stride(0), k.stride(0), total_q,
            total_k, scale * LOG2_E, min(sliding_window or 0, total_k), GROUP=num_heads // num_kv_heads,
            HEAD_DIM=head_dim, DIM_PAD=padded(head_dim), WINDOW=sliding_window is not None, **how,
        )  # fmt: skip
    return sums


def _add_sequence(q: Tensor, k: Tensor, lse: Tensor, sliding_window: int | None, scale: float, sums: Tensor) -> None:
    """One sequence without Triton, in tiles, added to `sums` [num_kv_heads, kv_len].

    The scores are float32 also for bf16 inputs: rounded to bf16, a score of 20 is off by up to 0.06, its probability
    by 6 %, and no Query's probabilities add up to 1.
    """
    q_len, num_heads, head_dim = q.shape
    kv_len, num_kv_heads = k.shape[:2]
    group = num_heads // num_kv_heads
    keys = k.transpose(0, 1).float().contiguous()  # [num_kv_heads, kv_len, head_dim]
    for first in range(0, q_len, TILE_ROWS):
        last = min(first + TILE_ROWS, q_len)
        mine = q[first:last].view(last - first, num_kv_heads, group, head_dim).permute(1, 2, 0, 3).float()
        mine = (mine * scale).flatten(1, 2)  # [num_kv_heads, group * rows, head_dim]
        its_lse = lse[:, first:last].reshape(num_kv_heads, -1, 1)
        low, high = seen_range(first, last, q_len, kv_len, sliding_window)
        for start in range(low, high, TILE_KEYS):
            stop = min(start + TILE_KEYS, high)
            p = torch.bmm(mine, keys[:, start:stop].transpose(1, 2)).sub_(its_lse)
            if stop > kv_len - q_len + first + 1 or sliding_window is not None:
                mask = hidden_mask(first, last, start, stop, kv_len - q_len, sliding_window, p.device)
                p.view(num_kv_heads, group, last - first, -1).masked_fill_(mask, -math.inf)
            sums[:, start:stop] += p.exp_().sum(1)


def _tiles(head_dim: int, element_bytes: int) -> dict[str, int]:
    """Tile sizes without spills on sm_80, sm_90 and sm_120 (compiled ahead of time)."""
    if element_bytes == 4:
        block = 32 if head_dim <= 128 else 16
        return {"BLOCK_M": block, "BLOCK_N": block, "num_warps": 4, "num_stages": 1}
    block = 64 if head_dim <= 128 else 32
    return {"BLOCK_M": block, "BLOCK_N": block, "num_warps": 4, "num_stages": 2}


def _case(num_heads: int, num_kv_heads: int, head_dim: int, kind: str, window: bool = False) -> AotCase:
    how = _tiles(head_dim, 4 if kind == "fp32" else 2)
    types = {"q_ptr": f"*{kind}", "k_ptr": f"*{kind}", "lse_ptr": "*fp32", "sums_ptr": "*fp32"}
    types |= {"cu_q_ptr": "*i32", "cu_k_ptr": "*i32", "scale_log2": "fp32"}
    integers = ("q_stride", "k_stride", "total_q", "total_k", "sliding_window")
    constants = {"GROUP": num_heads // num_kv_heads, "HEAD_DIM": head_dim, "DIM_PAD": padded(head_dim)}
    return AotCase(
        kernel=_attention_sums_kernel,
        label=f"{num_heads}/{num_kv_heads} heads of {head_dim}{', window' if window else ''}, {kind}",
        types=types | dict.fromkeys(integers, "i32"),
        constants=constants | {"WINDOW": window, "BLOCK_M": how["BLOCK_M"], "BLOCK_N": how["BLOCK_N"]},
        aligned=("q_stride", "k_stride"),
        num_warps=how["num_warps"],
        num_stages=how["num_stages"],
    )


AOT_CASES = (
    _case(9, 3, 64, "bf16"),
    _case(32, 8, 128, "bf16", window=True),
    _case(32, 32, 80, "fp16"),
    _case(8, 4, 256, "bf16"),
    _case(4, 2, 8, "bf16"),
    _case(32, 8, 128, "fp32"),
    _case(8, 4, 256, "fp32"),
)

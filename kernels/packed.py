"""Sequences packed one after the other: `cu_seqlens` says where each begins, and who sees whom.

A sequence may bring fewer Queries than it has Keys; they are its last positions, so the last Query sees every Key.

    kv_len = 7, q_len = 3     Keys     0 1 2 3 4 5 6
                              Query 0  x x x x x . .      position 4
                              Query 1  x x x x x x .
                              Query 2  x x x x x x x
"""

import torch
from torch import Tensor


def check_packed(
    q: Tensor, k: Tensor, v: Tensor, cu_seqlens: Tensor, cu_seqlens_k: Tensor, sliding_window: int | None
) -> None:
    """Raise ValueError if packed Queries, Keys and Values do not fit each other."""
    if q.dim() != 3 or k.dim() != 3 or k.shape != v.shape or q.shape[2] != k.shape[2] or q.shape[1] % k.shape[1]:
        raise ValueError(
            f"q {tuple(q.shape)}, k {tuple(k.shape)}, v {tuple(v.shape)}: expected [tokens, heads, head_dim], "
            "num_heads a multiple of num_kv_heads"
        )
    if not q.dtype == k.dtype == v.dtype or q.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise ValueError(f"dtypes {q.dtype}, {k.dtype}, {v.dtype}: expected one of fp32, fp16, bf16 for all three")
    for name, x in (("q", q), ("k", k), ("v", v)):
        if x.shape[0] and not x[0].is_contiguous():
            raise ValueError(f"{name} has strides {x.stride()}: a token's heads must lie in one piece")
    if sliding_window is not None and sliding_window < 1:
        raise ValueError(f"sliding_window={sliding_window}: at least 1, a Query sees itself")
    _check_starts(q, k, cu_seqlens, cu_seqlens_k)


def _check_starts(q: Tensor, k: Tensor, cu_seqlens: Tensor, cu_seqlens_k: Tensor) -> None:
    if cu_seqlens.dim() != 1 or cu_seqlens.shape != cu_seqlens_k.shape or cu_seqlens.numel() < 2:
        raise ValueError(f"cu_seqlens {tuple(cu_seqlens.shape)}: expected [num_seqs + 1], the same for Keys")
    for starts in (cu_seqlens, cu_seqlens_k):
        if starts.dtype not in (torch.int32, torch.int64) or not starts.is_contiguous():
            raise ValueError(
                f"cu_seqlens {starts.dtype}, strides {starts.stride()}: expected contiguous int32 or int64"
            )
    if cu_seqlens.device.type != "cpu":
        return  # reading them would make the GPU wait
    lens, lens_k = cu_seqlens.diff(), cu_seqlens_k.diff()
    ends = int(cu_seqlens[-1]) == q.shape[0] and int(cu_seqlens_k[-1]) == k.shape[0]
    if not ends or int(cu_seqlens[0]) or int(cu_seqlens_k[0]) or bool((lens < 0).any()):
        raise ValueError(f"cu_seqlens {cu_seqlens.tolist()} does not run from 0, end at {q.shape[0]} Queries or falls")
    if bool((lens_k < lens).any()):
        raise ValueError(f"{lens.tolist()} Queries have {lens_k.tolist()} Keys: expected at least as many Keys")


def seen_range(first: int, last: int, q_len: int, kv_len: int, sliding_window: int | None) -> tuple[int, int]:
    """The Keys [low, high) that some Query of the rows [first, last) sees; the last Query is the last position."""
    high = kv_len - q_len + last
    low = 0 if sliding_window is None else max(kv_len - q_len + first - sliding_window + 1, 0)
    return low, high


def hidden_mask(
    first: int, last: int, low: int, high: int, offset: int, sliding_window: int | None, device: torch.device
) -> Tensor:
    """True where row `first + i` does not see Key `low + j`; `offset` is row 0's position. [rows, keys] bool."""
    position = torch.arange(first + offset, last + offset, device=device)[:, None]
    key = torch.arange(low, high, device=device)[None, :]
    hidden = key > position
    return hidden if sliding_window is None else hidden | (key <= position - sliding_window)

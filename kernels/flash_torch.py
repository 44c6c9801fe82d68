"""FlashAttention's sequences one by one in plain torch: the CPU path of `flash_attention`, and any device's without
Triton.

On a CPU torch has the same algorithm built in, and its operator gives the log-sum-exp too; a KV head is shared with its
group by a stride of 0, so no Key is copied. Elsewhere, or if that operator should vanish, the log-sum-exp comes from
`stream_sequence`: the online softmax in torch, tile by tile, 1.3 to 2 times as slow on 2 cores.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from kernels.packed import hidden_mask, seen_range

ROWS = 256  # Queries of one call where a mask is needed: the mask is ROWS x Keys, never Queries x Keys
TILE_ROWS, TILE_KEYS = 256, 512  # of `stream_sequence`; the fastest of 64-256 x 256-512 for 2,048 Queries, 9/3 of 64


def attend_sequences(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    cu_seqlens: Tensor,
    cu_seqlens_k: Tensor,
    sliding_window: int | None,
    scale: float,
    return_lse: bool,
) -> Tensor | tuple[Tensor, Tensor]:
    """`flash_attention` without Triton; arguments and result as there."""
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    lse = torch.empty(q.shape[1], q.shape[0], dtype=torch.float32, device=q.device)
    starts, starts_k = cu_seqlens.tolist(), cu_seqlens_k.tolist()
    streamed = return_lse and (q.device.type != "cpu" or not hasattr(torch.ops.aten, OPERATOR))
    for i in range(len(starts) - 1):
        rows, cols = slice(starts[i], starts[i + 1]), slice(starts_k[i], starts_k[i + 1])
        if rows.start == rows.stop:
            continue
        if streamed:
            out[rows], lse[:, rows] = stream_sequence(q[rows], k[cols], v[cols], sliding_window, scale)
        else:
            _fused_sequence(q[rows], k[cols], v[cols], sliding_window, scale, out[rows], lse[:, rows], return_lse)
    return (out, lse) if return_lse else out


OPERATOR = "_scaled_dot_product_flash_attention_for_cpu"


def _fused_sequence(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    sliding_window: int | None,
    scale: float,
    out: Tensor,
    lse: Tensor,
    return_lse: bool,
) -> None:
    """One sequence through torch's own fused attention, into `out` and `lse`."""
    q_len, num_heads, head_dim = q.shape
    kv_len, num_kv_heads = k.shape[:2]
    plain = q_len == kv_len and (sliding_window is None or sliding_window >= kv_len)
    step = q_len if plain else ROWS
    for first in range(0, q_len, step):
        last = min(first + step, q_len)
        low, high = seen_range(first, last, q_len, kv_len, sliding_window)
        grouped = q[first:last].view(last - first, num_kv_heads, -1, head_dim).permute(1, 2, 0, 3)
        shape = (num_kv_heads, num_heads // num_kv_heads, high - low, head_dim)
        keys, values = (x[low:high].transpose(0, 1)[:, None].expand(shape) for x in (k, v))
        mask = None
        if not plain:
            hidden = hidden_mask(first, last, low, high, kv_len - q_len, sliding_window, q.device)
            mask = torch.zeros(hidden.shape, dtype=q.dtype, device=q.device).masked_fill_(hidden, -math.inf)
        if return_lse:
            fused = getattr(torch.ops.aten, OPERATOR)
            piece, its_lse = fused(grouped, keys, values, is_causal=plain, attn_mask=mask, scale=scale)
            lse[:, first:last] = its_lse.flatten(0, 1)
        else:
            piece = F.scaled_dot_product_attention(
                grouped, keys, values, attn_mask=mask, is_causal=plain and q_len > 1, scale=scale
            )
        out[first:last].view(last - first, num_kv_heads, -1, head_dim).copy_(piece.permute(2, 0, 1, 3))


def stream_sequence(q: Tensor, k: Tensor, v: Tensor, sliding_window: int | None, scale: float) -> tuple[Tensor, Tensor]:
    """One sequence by the online softmax, tile by tile.

    Args:
        q: [q_len, num_heads, head_dim], the last positions of the sequence.
        k: [kv_len, num_kv_heads, head_dim].
        v: like `k`.
        sliding_window: Keys that a Query sees at most, or None.
        scale: factor on the scores.

    Returns:
        Output like `q`, and log-sum-exp [num_heads, q_len] float32.
    """
    q_len, num_heads, head_dim = q.shape
    kv_len, num_kv_heads = k.shape[:2]
    group = num_heads // num_kv_heads
    # Scores are float32, whatever the inputs: exp would turn their rounding to bf16 into percents.
    keys, values = k.transpose(0, 1).float().contiguous(), v.transpose(0, 1).contiguous()
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    lse = torch.empty(num_heads, q_len, dtype=torch.float32, device=q.device)
    for first in range(0, q_len, TILE_ROWS):
        last = min(first + TILE_ROWS, q_len)
        # A KV head's Queries: its group's heads, each with the same rows.
        mine = q[first:last].view(last - first, num_kv_heads, group, head_dim).permute(1, 2, 0, 3).float()
        mine = (mine * scale).flatten(1, 2)  # [num_kv_heads, group * rows, head_dim]
        m = torch.full((num_kv_heads, mine.shape[1], 1), -math.inf, device=q.device)
        z, acc = torch.zeros_like(m), torch.zeros(mine.shape, dtype=torch.float32, device=q.device)
        low, high = seen_range(first, last, q_len, kv_len, sliding_window)
        # Every row sees a Key of the first tile, because TILE_KEYS >= TILE_ROWS: m is finite from there on.
        for start in range(low, high, TILE_KEYS):
            stop = min(start + TILE_KEYS, high)
            scores = torch.bmm(mine, keys[:, start:stop].transpose(1, 2))
            if stop > kv_len - q_len + first + 1 or sliding_window is not None:
                hidden = hidden_mask(first, last, start, stop, kv_len - q_len, sliding_window, q.device)
                scores.view(num_kv_heads, group, last - first, -1).masked_fill_(hidden, -math.inf)
            m_new = torch.maximum(m, scores.amax(-1, keepdim=True))
            p, shrink = scores.sub_(m_new).exp_(), (m - m_new).exp_()
            z = z * shrink + p.sum(-1, keepdim=True)
            acc = acc.mul_(shrink).add_(torch.bmm(p.to(q.dtype), values[:, start:stop]))
            m = m_new
        piece = (acc / z).view(num_kv_heads, group, last - first, head_dim)
        out[first:last] = piece.permute(2, 0, 1, 3).reshape(last - first, num_heads, head_dim).to(q.dtype)
        lse[:, first:last] = (m + z.log()).view(num_heads, last - first)
    return out, lse

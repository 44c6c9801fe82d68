"""Attention over contiguous Keys and Values in which several Query heads share one KV head (GQA), in plain torch.

The shared head is never expanded. One Query per sequence (decode) reads every Key and Value once, so what matters is
the memory's speed; many Queries (prefill) go through torch's own fused attention.
Source: Ainslie et al. 2023, arXiv:2305.13245.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

# Up to this many Keys in all sequences together, torch's fused CPU kernel beats three separate products, which win
# beyond it (2 cores, bf16, 9/3 heads of 64, 30 layers: 256 Keys 1.2 and 2.7 ms, 1,024 equal, 2,048 8.2 and 6.1 ms).
FUSED_MAX_KEYS = 1024


def decode_attention_reference(q: Tensor, k: Tensor, v: Tensor, kv_lens: Tensor, scale: float) -> Tensor:
    """One Query per sequence, head by head, in float32.

    Args:
        q: Queries, [batch, num_heads, head_dim].
        k: Keys, [batch, num_kv_heads, max_len, head_dim].
        v: Values, like `k`.
        kv_lens: Keys that each Query sees, [batch].
        scale: factor on the scores.

    Returns:
        [batch, num_heads, head_dim] float32.
    """
    out = torch.zeros(q.shape, dtype=torch.float32)
    group = q.shape[1] // k.shape[1]
    for b in range(q.shape[0]):
        for h in range(q.shape[1]):
            keys, values = k[b, h // group, : kv_lens[b]].float(), v[b, h // group, : kv_lens[b]].float()
            out[b, h] = torch.softmax(keys @ q[b, h].float() * scale, dim=0) @ values
    return out


def decode_attention(
    q: Tensor, k: Tensor, v: Tensor, visible: Tensor | None, scale: float, kv_len: int | None = None
) -> Tensor:
    """One Query per sequence.

    On a CPU torch copies Keys and Values that do not lie in one piece before it multiplies them, which takes longer
    than the product. So a caller whose rows are a little longer than needed hands them over whole, with `kv_len`.

    Args:
        q: Queries, [batch, num_heads, head_dim].
        k: Keys, [batch, num_kv_heads, slots, head_dim]; a view into a larger store is fine.
        v: Values, like `k`. What no Query may read must be finite: it is multiplied by zero.
        visible: bool [batch, slots], True where a Key may be read; None if all may.
        scale: factor on the scores.
        kv_len: only the first `kv_len` slots may be read, in every sequence; None for all.

    Returns:
        [batch, num_heads, head_dim].
    """
    batch, num_heads, head_dim = q.shape
    num_kv_heads, slots = k.shape[1], k.shape[2]
    kv_len = slots if kv_len is None else kv_len
    grouped = q.view(batch, num_kv_heads, num_heads // num_kv_heads, head_dim)
    if q.is_cuda or batch * kv_len <= FUSED_MAX_KEYS:
        # A KV head's Queries are laid out as if they were positions: no mask between them, no copy of the Keys.
        mask = None if visible is None else visible[:, None, None, :kv_len]
        k, v = k.narrow(2, 0, kv_len), v.narrow(2, 0, kv_len)
        return F.scaled_dot_product_attention(grouped, k, v, attn_mask=mask, scale=scale).reshape(q.shape)
    grouped = grouped * scale
    # Queries first is 1.1 to 1.4 times as fast where the rows lie in one piece, and 1.7 times as slow where torch has
    # to copy them (2 cores, bf16, 9/3 heads of 64, 1 to 16 sequences of 144 to 2,048 Keys). A single matrix (MQA, one
    # sequence) is 5 times as slow that way in all (32 Queries, 4,096 Keys of 128: 1.14 and 0.23 ms).
    if k.is_contiguous() and batch * num_kv_heads > 1:
        scores = torch.matmul(grouped, k.transpose(2, 3))  # [batch, kv heads, group, slots]
    else:
        scores = torch.matmul(k, grouped.transpose(2, 3)).transpose(2, 3)
    if visible is not None:
        scores.masked_fill_(~visible[:, None, None, :], float("-inf"))
    if kv_len < slots:
        scores.narrow(3, kv_len, slots - kv_len).fill_(float("-inf"))
    return torch.matmul(torch.softmax(scores, dim=-1), v).reshape(q.shape)


def prefill_attention(q: Tensor, k: Tensor, v: Tensor, window: int | None, scale: float) -> Tensor:
    """The last `q_len` positions of one sequence attend to it causally.

    Args:
        q: Queries, [q_len, num_heads, head_dim].
        k: Keys of the whole sequence, [num_kv_heads, kv_len, head_dim], `kv_len >= q_len`.
        v: Values, like `k`.
        window: how many Keys a Query sees at most, itself included; None for all.
        scale: factor on the scores.

    Returns:
        [q_len, num_heads, head_dim].
    """
    q_len, num_heads, _ = q.shape
    kv_len = k.shape[1]
    group = num_heads // k.shape[0]
    queries, keys, values = q.transpose(0, 1)[None], k[None], v[None]
    if group > 1:
        # Many Queries share the cost of one expanded copy; torch's own enable_gqa leaves its fused path on CPU.
        keys, values = keys.repeat_interleave(group, 1), values.repeat_interleave(group, 1)
    if q_len == kv_len and (window is None or window >= kv_len):
        out = F.scaled_dot_product_attention(queries, keys, values, is_causal=q_len > 1, scale=scale)
    else:
        mask = causal_mask(q_len, kv_len, window, q.device)
        out = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask, scale=scale)
    return out[0].transpose(0, 1)


def causal_mask(q_len: int, kv_len: int, window: int | None, device: torch.device) -> Tensor:
    """True where Query `i` (the i-th of the last `q_len`) may read Key `j`, [q_len, kv_len] bool."""
    row = torch.arange(kv_len - q_len, kv_len, device=device)[:, None]
    column = torch.arange(kv_len, device=device)[None, :]
    seen = column <= row
    return seen if window is None else seen & (column > row - window)

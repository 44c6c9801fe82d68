"""The two ways to decode with Multi-head Latent Attention: absorb the projections, or expand the cache.

    expanded   k_nope = W_uk c and v = W_uv c for every token and head, then ordinary attention: what the model's
               formulas say. Each step multiplies the whole context by two large matrices.
    absorbed   W_uk goes into the Query and W_uv behind the sum, once per step: the same product, associated the
               other way. Attention itself then runs over rows of latent_dim + rope_dim numbers.

Both read the same paged cache of latents and give the same result up to rounding.
Source: DeepSeek-V2 2024, arXiv:2405.04434, section 2.1.2 and appendix C.
"""

import torch
from torch import Tensor

from kernels.mla_decode import mla_decode
from kernels.mla_torch import check_latents, gather_latents


def mla_decode_absorbed(
    q_nope: Tensor,
    q_rope: Tensor,
    latent_cache: Tensor,
    block_table: Tensor,
    kv_lens: Tensor,
    w_uk: Tensor,
    w_uv: Tensor,
    scale: float | None = None,
) -> Tensor:
    """One decode step, projections absorbed.

    Args:
        q_nope: the Queries' part without RoPE, [num_seqs, num_heads, nope_dim].
        q_rope: the Queries' part with RoPE, [num_seqs, num_heads, rope_dim].
        latent_cache: [num_blocks, block_size, latent_dim + rope_dim], contiguous.
        block_table: block ids, [num_seqs, max_blocks].
        kv_lens: tokens that each Query sees, [num_seqs].
        w_uk: from latent to Keys, [num_heads, nope_dim, latent_dim].
        w_uv: from latent to Values, [num_heads, v_dim, latent_dim].
        scale: factor on the scores; (nope_dim + rope_dim) ** -0.5 if not given.

    Returns:
        [num_seqs, num_heads, v_dim], dtype of `q_nope`.

    Raises:
        ValueError: shapes that do not fit.
    """
    scale = _check(q_nope, q_rope, w_uk, w_uv, scale)
    q_latent = torch.bmm(q_nope.transpose(0, 1), w_uk).transpose(0, 1)  # [num_seqs, num_heads, latent_dim]
    out = mla_decode(q_latent, q_rope, latent_cache, block_table, kv_lens, scale=scale)
    assert isinstance(out, Tensor)
    return torch.bmm(out.transpose(0, 1), w_uv.transpose(1, 2)).transpose(0, 1)


def mla_decode_expanded(
    q_nope: Tensor,
    q_rope: Tensor,
    latent_cache: Tensor,
    block_table: Tensor,
    kv_lens: Tensor,
    w_uk: Tensor,
    w_uv: Tensor,
    scale: float | None = None,
) -> Tensor:
    """One decode step, every head's Keys and Values expanded from the latents first; as `mla_decode_absorbed`.

    Sequence by sequence: each expansion is a large product by itself. Keys and Values are made with the tokens along
    the last axis, so that the small products that follow read them in one piece (the fastest of four orders tried).
    """
    scale = _check(q_nope, q_rope, w_uk, w_uv, scale)
    (num_heads, nope_dim, latent_dim), v_dim = w_uk.shape, w_uv.shape[1]
    check_latents(q_nope.new_empty(*q_nope.shape[:2], latent_dim), q_rope, latent_cache, block_table, kv_lens)
    out = q_nope.new_empty(*q_nope.shape[:2], v_dim)
    for s, kv_len in enumerate(kv_lens.tolist()):
        rows = gather_latents(latent_cache, block_table[s : s + 1], [kv_len])[0]
        latents = rows[:, :latent_dim].t()  # [latent_dim, kv_len]
        keys = torch.mm(w_uk.view(-1, latent_dim), latents).view(num_heads, nope_dim, kv_len)
        values = torch.mm(w_uv.view(-1, latent_dim), latents).view(num_heads, v_dim, kv_len)
        scores = torch.bmm(q_nope[s][:, None], keys)[:, 0] + torch.mm(q_rope[s], rows[:, latent_dim:].t())
        weights = (scores.float() * scale).softmax(1).to(values.dtype)
        out[s] = torch.bmm(values, weights[..., None])[..., 0]
    return out


def _check(q_nope: Tensor, q_rope: Tensor, w_uk: Tensor, w_uv: Tensor, scale: float | None) -> float:
    num_heads, nope_dim = q_nope.shape[-2:]
    fits = w_uk.shape[:2] == (num_heads, nope_dim) and w_uv.shape[::2] == w_uk.shape[::2]
    if not fits or not (w_uk.is_contiguous() and w_uv.is_contiguous()):
        raise ValueError(
            f"w_uk {tuple(w_uk.shape)}, w_uv {tuple(w_uv.shape)}: expected contiguous [{num_heads}, {nope_dim}, "
            f"latent_dim] and [{num_heads}, v_dim, latent_dim] for q_nope {tuple(q_nope.shape)}"
        )
    return (nope_dim + q_rope.shape[-1]) ** -0.5 if scale is None else scale

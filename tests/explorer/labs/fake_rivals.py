"""Stand-ins for FlashInfer and flash-attn that do what their documentation says, in plain torch on a CPU.

They read every argument as documented (page layout, indptr, last_page_len, HND or NHD, alignment of the causal mask),
so a wrong argument gives a wrong result, and what is not documented is refused.
"""

from types import ModuleType, SimpleNamespace

import torch


def attend(q, k, v, causal, scale=None):
    """One sequence in float32: q [q_len, heads, dim], k and v [kv_len, kv_heads, dim]; mask aligned to the last Key."""
    group, (q_len, _, dim), kv_len = q.shape[1] // k.shape[1], q.shape, k.shape[0]
    k, v = (x.float().repeat_interleave(group, 1) for x in (k, v))
    scores = torch.einsum("qhd,khd->hqk", q.float(), k) * (dim**-0.5 if scale is None else scale)
    if causal:
        late = torch.arange(kv_len)[None, :] > torch.arange(kv_len - q_len, kv_len)[:, None]
        scores = scores.masked_fill(late, -torch.inf)
    return torch.einsum("hqk,khd->qhd", scores.softmax(-1), v).to(q.dtype)


def int32(*tensors):
    for tensor in tensors:
        assert tensor.dtype == torch.int32, "arrays of int64 can cause indexing errors"


class Paged:
    """What the two wrappers over pages share."""

    def __init__(self, float_workspace_buffer, kv_layout="NHD", use_tensor_cores=False):
        assert float_workspace_buffer.dtype == torch.uint8 and float_workspace_buffer.numel() == 128 << 20
        assert not float_workspace_buffer.any(), "must be zero before its first use"
        assert kv_layout in ("HND", "NHD")
        self.layout, self.tensor_cores, self.planned = kv_layout, use_tensor_cores, None

    def tokens(self, cache, seq):
        """A sequence's Keys or Values, [kv_len, kv_heads, dim]."""
        indptr, indices, last_page_len, page_size = self.planned[:4]
        assert 1 <= int(last_page_len[seq]) <= page_size
        pages = cache[indices[int(indptr[seq]) : int(indptr[seq + 1])].long()]
        if self.layout == "HND":
            pages = pages.transpose(1, 2)
        assert pages.shape[1] == page_size
        return pages.flatten(0, 1)[: (len(pages) - 1) * page_size + int(last_page_len[seq])]


class Decode(Paged):
    def plan(self, indptr, indices, last_page_len, num_qo_heads, num_kv_heads, head_dim, page_size, *, q_data_type,
             kv_data_type):  # fmt: skip
        int32(indptr, indices, last_page_len)
        assert len(indices) == int(indptr[-1])
        self.planned = indptr, indices, last_page_len, page_size
        self.shape, self.dtypes = (num_qo_heads, num_kv_heads, head_dim), (q_data_type, kv_data_type)

    def run(self, q, paged_kv_cache):
        keys, values = paged_kv_cache
        assert (q.shape[1], keys.shape[1], q.shape[2]) == self.shape and (q.dtype, keys.dtype) == self.dtypes
        each = [attend(q[i : i + 1], self.tokens(keys, i), self.tokens(values, i), False) for i in range(len(q))]
        return torch.cat(each)


class Chunk(Paged):
    def plan(self, qo_indptr, paged_kv_indptr, paged_kv_indices, paged_kv_last_page_len, num_qo_heads, num_kv_heads,
             head_dim_qk, page_size, *, causal, q_data_type, kv_data_type):  # fmt: skip
        int32(qo_indptr, paged_kv_indptr, paged_kv_indices, paged_kv_last_page_len)
        self.planned = paged_kv_indptr, paged_kv_indices, paged_kv_last_page_len, page_size
        self.starts, self.causal, self.shape = qo_indptr.tolist(), causal, (num_qo_heads, num_kv_heads, head_dim_qk)

    def run(self, q, paged_kv_cache):
        keys, values = paged_kv_cache
        assert (q.shape[1], keys.shape[1], q.shape[2]) == self.shape
        parts = zip(self.starts, self.starts[1:], strict=False)
        return torch.cat([
            attend(q[a:b], self.tokens(keys, i), self.tokens(values, i), self.causal) for i, (a, b) in enumerate(parts)
        ])  # fmt: skip


class Ragged(Paged):
    def plan(self, qo_indptr, kv_indptr, num_qo_heads, num_kv_heads, head_dim_qk, *, causal, q_data_type, kv_data_type):
        int32(qo_indptr, kv_indptr)
        self.starts, self.starts_k, self.causal = qo_indptr.tolist(), kv_indptr.tolist(), causal

    def run(self, q, k, v):
        assert self.layout == "NHD"
        return varlen(q, k, v, self.starts, self.starts_k, self.causal)


class Latent(Paged):
    def plan(self, qo_indptr, kv_indptr, kv_indices, kv_len_arr, num_heads, head_dim_ckv, head_dim_kpe, page_size,
             causal, sm_scale, q_data_type, kv_data_type):  # fmt: skip
        int32(qo_indptr, kv_indptr, kv_indices, kv_len_arr)
        assert qo_indptr.tolist() == list(range(len(kv_len_arr) + 1)) and (head_dim_ckv, head_dim_kpe) == (512, 64)
        self.planned = kv_indptr, kv_indices, (kv_len_arr - 1) % page_size + 1, page_size
        self.scale, self.layout = sm_scale, "NHD"

    def run(self, q_nope, q_pe, ckv_cache, kpe_cache):
        assert ckv_cache.shape[2] == 512 and kpe_cache.shape[2] == 64
        q, outs = torch.cat((q_nope, q_pe), 2), []
        for i in range(len(q)):
            latents, rope = self.tokens(ckv_cache, i), self.tokens(kpe_cache, i)
            outs.append(
                attend(q[i : i + 1], torch.cat((latents, rope), 1)[:, None], latents[:, None], False, self.scale)
            )
        return torch.cat(outs)


def varlen(q, k, v, starts, starts_k, causal):
    each = zip(starts, starts[1:], starts_k, starts_k[1:], strict=False)
    return torch.cat([attend(q[a:b], k[c:d], v[c:d], causal) for a, b, c, d in each])


def append(append_key, append_value, batch_indices, positions, paged_kv_cache, kv_indices, kv_indptr, kv_last_page_len,
           kv_layout="NHD"):  # fmt: skip
    int32(batch_indices, positions, kv_indices, kv_indptr, kv_last_page_len)
    for token, (seq, position) in enumerate(zip(batch_indices.tolist(), positions.tolist(), strict=True)):
        for cache, new in zip(paged_kv_cache, (append_key, append_value), strict=True):
            tokens_first = cache.transpose(1, 2) if kv_layout == "HND" else cache
            page, offset = divmod(position, tokens_first.shape[1])
            tokens_first[int(kv_indices[int(kv_indptr[seq]) + page]), offset] = new[token]


def flashinfer():
    module = ModuleType("flashinfer")
    module.BatchDecodeWithPagedKVCacheWrapper, module.BatchPrefillWithPagedKVCacheWrapper = Decode, Chunk
    module.BatchPrefillWithRaggedKVCacheWrapper, module.append_paged_kv_cache = Ragged, append

    def latent(float_workspace_buffer):
        return Latent(float_workspace_buffer)

    module.mla = SimpleNamespace(BatchMLAPagedAttentionWrapper=latent)
    return module


def with_kvcache(q, k_cache, v_cache, *, cache_seqlens, block_table, causal):
    """Caches have tokens before heads, and the last stride is 1; pages hold a multiple of 256 tokens."""
    assert q.dim() == 4 and k_cache.stride(-1) == v_cache.stride(-1) == 1
    int32(cache_seqlens)
    outs = []
    for seq, kv_len in enumerate(cache_seqlens.tolist()):
        keys, values = k_cache, v_cache
        if block_table is not None:
            assert k_cache.shape[1] % 256 == 0, "page_block_size must be a multiple of 256"
            int32(block_table)
            keys, values = (cache[block_table[seq].long()].flatten(0, 1)[None] for cache in (k_cache, v_cache))
        row = 0 if block_table is not None else seq
        outs.append(attend(q[seq], keys[row, :kv_len], values[row, :kv_len], causal))
    return torch.stack(outs)


def flash_attn():
    module = ModuleType("flash_attn")
    module.flash_attn_with_kvcache = with_kvcache

    def flash_attn_varlen_func(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, *, causal):
        int32(cu_seqlens_q, cu_seqlens_k)
        assert max_seqlen_q == int(cu_seqlens_q.diff().max()) and max_seqlen_k == int(cu_seqlens_k.diff().max())
        return varlen(q, k, v, cu_seqlens_q.tolist(), cu_seqlens_k.tolist(), causal)

    module.flash_attn_varlen_func = flash_attn_varlen_func
    return module

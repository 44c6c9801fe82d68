"""Attention over a paged KV cache: decode, prefill in chunks, and both in one ragged batch.

A sequence's Keys and Values lie in blocks anywhere in a pool; its row of the block table says where. One program takes
a few Queries of one sequence with all the heads that share one KV head, as the rows of one tile, and walks the blocks
with an online softmax. A decode step has few such programs; then the context is cut into splits that run side by side
and `merge_states` joins them, so that one long request still fills the GPU.
Source: Kwon et al. 2023 (PagedAttention), arXiv:2309.06180, section 4.1; Dao 2023 (FlashAttention-2),
arXiv:2307.08691; Dao et al. 2023, "Flash-Decoding"; sinks as in gpt-oss, soft cap as in Gemma 2.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from kernels._dot import dot
from kernels._triton import AotCase, can_launch, jit, launch, tl
from kernels.merge_states import merge_states
from kernels.paged_attention_checks import check_lengths, check_options, check_tensors
from kernels.paged_attention_cpu import Scoring, attend_step, plan_step
from kernels.paged_attention_plan import Layout
from kernels.paged_attention_tiles import DECODE_ROWS, constants_for, launch_options, splits_for

MAX_WINDOW = 1 << 30  # a wider one hides nothing and would not fit into the kernel's 32-bit positions


class Attended(NamedTuple):
    """What attention gives.

    Attributes:
        out: [tokens, num_heads, head_dim], the Queries' dtype.
        lse: natural logarithm of each softmax denominator, a sink included, [tokens, num_heads] float32; None unless
            it was asked for.
    """

    out: Tensor
    lse: Tensor | None


def paged_attention_reference(
    q: Tensor, key_pool: Tensor, value_pool: Tensor, block_table: Tensor, kv_lens: Tensor, q_starts: Tensor,
    scale: float, window: int | None = None, softcap: float | None = None, sinks: Tensor | None = None,
) -> Attended:  # fmt: skip
    """What `paged_attention` computes, Query by Query and head by head, in float32."""
    out, lse = torch.zeros(q.shape, dtype=torch.float32), torch.zeros(q.shape[:2], dtype=torch.float32)
    group, block_size = q.shape[1] // key_pool.shape[1], key_pool.shape[2]
    for seq, kv_len in enumerate(kv_lens.tolist()):
        start, stop = int(q_starts[seq]), int(q_starts[seq + 1])
        for token in range(start, stop):
            position = kv_len - stop + token
            first = 0 if window is None else max(0, position - window + 1)
            seen = range(first, position + 1)
            blocks = torch.tensor([int(block_table[seq, p // block_size]) for p in seen])
            offsets = torch.tensor([p % block_size for p in seen])
            for head in range(q.shape[1]):
                k = key_pool[blocks, head // group, offsets].float()  # [seen, head_dim]
                v = value_pool[blocks, head // group, offsets].float()
                scores = k @ q[token, head].float() * scale
                if softcap is not None:
                    scores = softcap * torch.tanh(scores / softcap)
                sink = scores.new_empty(0) if sinks is None else sinks[head : head + 1].float()
                lse[token, head] = torch.logsumexp(torch.cat((scores, sink)), 0)
                out[token, head] = torch.exp(scores - lse[token, head]) @ v
    return Attended(out, lse)


# Tokens, table width and splits change from step to step: none of them may be part of the compiled code.
@jit(do_not_specialize=("num_tokens", "table_stride", "num_splits"))
def _paged_attention_kernel(
    q_ptr, key_pool_ptr, value_pool_ptr, out_ptr, lse_ptr, sinks_ptr, block_table_ptr, q_starts_ptr, kv_lens_ptr,
    scale, num_tokens, q_stride_token, table_stride, num_splits,
    NUM_KV_HEADS: tl.constexpr, GROUP: tl.constexpr, HEAD_DIM: tl.constexpr, DIM_PAD: tl.constexpr,
    BLOCK_SIZE: tl.constexpr, ROWS: tl.constexpr, TILE_K: tl.constexpr,
    WINDOW: tl.constexpr, SOFTCAP: tl.constexpr, HAS_SINKS: tl.constexpr, STORE_LSE: tl.constexpr,
):  # fmt: skip
    tile = tl.program_id(0)
    kv_head = tl.program_id(1) % NUM_KV_HEADS
    split = tl.program_id(1) // NUM_KV_HEADS
    seq = tl.program_id(2)
    queries: tl.constexpr = ROWS // GROUP  # rows are (Query, head of the group) pairs
    log2e: tl.constexpr = 1.4426950408889634

    q_start = tl.load(q_starts_ptr + seq)
    q_len = tl.load(q_starts_ptr + seq + 1) - q_start
    kv_len = tl.load(kv_lens_ptr + seq)
    first = tile * queries
    if first >= q_len:
        return

    row = tl.arange(0, ROWS)
    i = first + row // GROUP
    head = kv_head * GROUP + row % GROUP
    live_row = (row < queries * GROUP) & (i < q_len)
    position = kv_len - q_len + i
    d = tl.arange(0, DIM_PAD)
    live_d = d < HEAD_DIM
    token = (q_start + i).to(tl.int64)
    q = tl.load(
        q_ptr + (token * q_stride_token + head * HEAD_DIM)[:, None] + d[None, :],
        mask=live_row[:, None] & live_d[None, :], other=0.0,
    )  # fmt: skip

    # This program's Keys: those that the tile may see, cut into `num_splits` runs of whole tiles.
    begin = 0
    end = kv_len - q_len + tl.minimum(first + queries, q_len)
    if WINDOW > 0:
        begin = tl.maximum(0, kv_len - q_len + first - WINDOW + 1) // TILE_K * TILE_K
    run = tl.cdiv(tl.cdiv(end - begin, TILE_K), num_splits) * TILE_K
    begin = begin + split * run
    end = tl.minimum(end, begin + run)

    m = tl.full([ROWS], float("-inf"), tl.float32)  # running maximum, in units of log2
    z = tl.zeros([ROWS], tl.float32)  # running denominator
    acc = tl.zeros([ROWS, DIM_PAD], tl.float32)
    if HAS_SINKS and split == 0:  # a sink is a Key with a score and no Value: one split counts it
        m = tl.load(sinks_ptr + head, mask=live_row, other=0.0).to(tl.float32) * log2e
        z += 1.0
    for start in range(begin, end, TILE_K):
        t = start + tl.arange(0, TILE_K)
        here = t < end
        block = tl.load(block_table_ptr + seq.to(tl.int64) * table_stride + t // BLOCK_SIZE, mask=here, other=0)
        slot = (block.to(tl.int64) * NUM_KV_HEADS + kv_head) * BLOCK_SIZE + t % BLOCK_SIZE
        place = slot[:, None] * HEAD_DIM + d[None, :]
        live = here[:, None] & live_d[None, :]
        k = tl.load(key_pool_ptr + place, mask=live, other=0.0)  # [TILE_K, DIM_PAD]
        s = dot(q, tl.trans(k), tl.zeros([ROWS, TILE_K], tl.float32)) * scale
        if SOFTCAP > 0:
            s = SOFTCAP * (1.0 - 2.0 / (tl.exp(s * (2.0 / SOFTCAP)) + 1.0))  # tanh
        seen = here[None, :] & (t[None, :] <= position[:, None])
        if WINDOW > 0:
            seen = seen & (t[None, :] > position[:, None] - WINDOW)
        s = tl.where(seen, s * log2e, float("-inf"))
        m_new = tl.maximum(m, tl.max(s, 1))
        m_safe = tl.where(m_new == float("-inf"), 0.0, m_new)  # a row that has seen nothing yet
        alpha = tl.exp2(m - m_safe)
        p = tl.exp2(s - m_safe[:, None])
        z = z * alpha + tl.sum(p, 1)
        v = tl.load(value_pool_ptr + place, mask=live, other=0.0)
        acc = dot(p.to(v.dtype), v, acc * alpha[:, None])
        m = m_new

    place_out = (split * num_tokens + q_start + i).to(tl.int64) * (NUM_KV_HEADS * GROUP) + head
    out = acc / tl.where(z == 0.0, 1.0, z)[:, None]
    live_out = live_row[:, None] & live_d[None, :]
    tl.store(out_ptr + place_out[:, None] * HEAD_DIM + d[None, :], out.to(out_ptr.dtype.element_ty), mask=live_out)
    if STORE_LSE:
        tl.store(lse_ptr + place_out, (m + tl.log2(z)) / log2e, mask=live_row)


def paged_attention(
    q: Tensor, key_pool: Tensor, value_pool: Tensor, block_table: Tensor, kv_lens: Tensor, *,
    q_starts: Tensor | None = None, scale: float | None = None, window: int | None = None,
    softcap: float | None = None, sinks: Tensor | None = None, max_q_len: int | None = None,
    max_kv_len: int | None = None, num_splits: int | None = None, return_lse: bool = False,
) -> Attended:  # fmt: skip
    """Each sequence's newest tokens attend, causally, to everything that its blocks hold.

    The tokens' own Keys and Values must have been written before.

    Args:
        q: Queries of all sequences packed, [tokens, num_heads, head_dim]; a token's heads lie in one piece.
        key_pool: [num_blocks, num_kv_heads, block_size, head_dim], contiguous. What no sequence owns is not read.
        value_pool: like `key_pool`.
        block_table: int32 [num_seqs, max_blocks]; entries past a sequence's last block are not read.
        kv_lens: int32 [num_seqs], tokens of each sequence, this step's included; each at least its new tokens.
        q_starts: int32 [num_seqs + 1], where each sequence's Queries begin in `q`, and where the last one's end; None
            for decode, one Query for each sequence.
        scale: factor on the scores; `head_dim ** -0.5` if None.
        window: Keys that a Query sees at most, itself included; None for all.
        softcap: scores become `softcap * tanh(score / softcap)`; None for none.
        sinks: [num_heads], a logit for each head that takes part in the softmax and has no Value; None for none.
        max_q_len: the most new tokens of one sequence, or more. A GPU waits to read it if it is None beside `q_starts`.
        max_kv_len: the longest sequence, or more; what the table can hold if None. Chooses the number of splits.
        num_splits: how many programs share one sequence's context; chosen if None, 1 where there are many Queries.
        return_lse: also give the softmax denominators' logarithms.

    Raises:
        ValueError: shapes, types or layouts that do not fit.
    """
    if q_starts is None:
        q_starts, max_q_len = torch.arange(q.shape[0] + 1, dtype=torch.int32, device=q.device), 1
    check_tensors(q, key_pool, value_pool, block_table, kv_lens, q_starts)
    check_options(q, window, softcap, sinks, num_splits)
    check_lengths(q, block_table, kv_lens, q_starts, key_pool.shape[2])
    scale = q.shape[2] ** -0.5 if scale is None else scale
    if not can_launch(q):
        layout = Layout(key_pool.shape[2], q.shape[1], key_pool.shape[1])
        scoring = Scoring(scale, softcap, sinks, return_lse)
        plan = plan_step(
            block_table.tolist(), kv_lens.tolist(), q_starts.tolist(), layout, window, scoring.is_plain
        )  # fmt: skip
        return Attended(*attend_step(q, key_pool, value_pool, plan, scoring))
    return _launch(
        q, key_pool, value_pool, block_table, kv_lens, q_starts, scale, window, softcap, sinks, max_q_len, max_kv_len,
        num_splits, return_lse,
    )  # fmt: skip


def _launch(
    q: Tensor, key_pool: Tensor, value_pool: Tensor, block_table: Tensor, kv_lens: Tensor, q_starts: Tensor,
    scale: float, window: int | None, softcap: float | None, sinks: Tensor | None, max_q_len: int | None,
    max_kv_len: int | None, num_splits: int | None, return_lse: bool,
) -> Attended:  # fmt: skip
    tokens, num_heads, head_dim = q.shape
    num_seqs, num_kv_heads, block_size = block_table.shape[0], key_pool.shape[1], key_pool.shape[2]
    if max_q_len is None:
        max_q_len = int(q_starts.diff().max()) if num_seqs else 1
    # A few new tokens, as when drafts are verified, fit into the tile of a decode step and need its splits as much.
    is_decode = max_q_len <= max(1, DECODE_ROWS // (num_heads // num_kv_heads))
    if num_splits is None:
        longest = min(max_kv_len or block_table.shape[1] * block_size, window or 1 << 62)
        num_splits = splits_for(num_seqs * num_kv_heads, longest, _num_sms(q)) if is_decode and tokens else 1
    out = torch.empty(tokens, num_heads, head_dim, dtype=q.dtype, device=q.device)
    parts = out[None]
    if num_splits > 1:
        parts = torch.empty(num_splits, tokens, num_heads, head_dim, dtype=torch.float32, device=q.device)
    lses = torch.empty(num_splits, tokens, num_heads, dtype=torch.float32, device=q.device)
    constants = constants_for(num_heads // num_kv_heads, head_dim, q.element_size(), is_decode)
    tiles = -(-max_q_len // (constants["ROWS"] // constants["GROUP"]))
    if tokens:
        launch(
            _paged_attention_kernel, (tiles, num_kv_heads * num_splits, num_seqs),
            q, key_pool, value_pool, parts, lses, sinks, block_table, q_starts, kv_lens,
            scale, tokens, q.stride(0), block_table.stride(0), num_splits,
            NUM_KV_HEADS=num_kv_heads, BLOCK_SIZE=block_size, WINDOW=min(window or 0, MAX_WINDOW),
            SOFTCAP=softcap or 0.0, HAS_SINKS=sinks is not None, STORE_LSE=return_lse or num_splits > 1,
            **constants, **launch_options(head_dim, constants["ROWS"], is_decode),
        )  # fmt: skip
    if num_splits == 1:
        return Attended(out, lses[0] if return_lse else None)
    out, lse = merge_states(parts, lses, q.dtype)
    return Attended(out, lse if return_lse else None)


def _num_sms(q: Tensor) -> int:
    # The interpreter has none; a few let it run splits as a GPU does.
    return torch.cuda.get_device_properties(q.device).multi_processor_count if q.is_cuda else 4


def _case(heads: str, block_size: int, kind: str, step: str = "decode", **options: Any) -> AotCase:
    """`heads` is query/KV/dim; `options` are constants of the kernel that differ from the plain case."""
    num_heads, num_kv_heads, head_dim = map(int, heads.split("/"))
    is_decode = step == "decode"
    constants = {"WINDOW": 0, "SOFTCAP": 0.0, "HAS_SINKS": False} | options
    types = {f"{name}_ptr": f"*{kind}" for name in ("q", "key_pool", "value_pool", "sinks")}
    types["out_ptr"] = "*fp32" if is_decode else f"*{kind}"  # a decode step is split
    types |= {"lse_ptr": "*fp32"} | {f"{name}_ptr": "*i32" for name in ("block_table", "q_starts", "kv_lens")}
    types |= {"scale": "fp32"} | dict.fromkeys(("num_tokens", "q_stride_token", "table_stride", "num_splits"), "i32")
    if not constants["HAS_SINKS"]:
        constants["sinks_ptr"] = None
    constants |= {"NUM_KV_HEADS": num_kv_heads, "BLOCK_SIZE": block_size, "STORE_LSE": is_decode}
    constants |= constants_for(num_heads // num_kv_heads, head_dim, 4 if kind == "fp32" else 2, is_decode)
    label = ", ".join([f"{step} {heads}, block {block_size}, {kind}", *(f"{k}={v}" for k, v in options.items())])
    how = launch_options(head_dim, constants["ROWS"], is_decode)
    return AotCase(_paged_attention_kernel, label, types, constants, ("q_stride_token",), **how)


SMOLLM2, LLAMA_8B, LLAMA_70B, GPT_OSS = "9/3/64", "32/8/128", "64/8/128", "64/8/64"
AOT_CASES = (
    *(_case(SMOLLM2, block, "bf16") for block in (16, 32, 64, 256)),
    *(_case(LLAMA_8B, block, "bf16") for block in (16, 32, 64, 256)),
    *(_case(LLAMA_70B, block, "fp16") for block in (16, 256)),
    *(_case(heads, 16, "bf16", "prefill") for heads in (SMOLLM2, LLAMA_8B, LLAMA_70B)),
    _case(LLAMA_8B, 16, "fp16", "prefill"),
    _case("16/8/80", 24, "bf16"), _case("16/8/96", 16, "bf16"), _case("8/4/256", 16, "bf16", WINDOW=1024),
    _case("16/8/80", 24, "bf16", "prefill"), _case("16/8/96", 16, "bf16", "prefill"),
    _case("8/4/256", 16, "bf16", "prefill", SOFTCAP=50.0), _case(SMOLLM2, 16, "fp32"),
    _case(LLAMA_8B, 16, "fp32", "prefill"),
    _case("71/1/64", 16, "bf16"), _case("71/1/64", 16, "bf16", "prefill"), _case("128/1/128", 16, "bf16"),
    _case("4/2/8", 8, "bf16"), _case("4/2/8", 8, "bf16", "prefill"),
    _case(GPT_OSS, 16, "bf16", HAS_SINKS=True, WINDOW=128), _case(GPT_OSS, 16, "bf16", "prefill", HAS_SINKS=True),
)  # fmt: skip

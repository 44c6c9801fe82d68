"""`paged_attention` on a CPU, in torch: decode on blocks where they lie, prefill on a sequence's blocks put together.

Decode: one product of every block with its sequence's Query, a softmax in reading order, one product of every block
with its weights, and a sum over blocks (see `paged_attention_plan`). No KV head is expanded.
Prefill has many Queries for each Key, so one copy of the Keys is cheap beside the products.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from kernels.grouped_attention import causal_mask, prefill_attention
from kernels.paged_attention_plan import DecodePlan, plan_decode

QUERIES_AT_ONCE = 64  # bounds the scores in memory where torch's fused prefill cannot be used
# Sequences so uneven that padding would quadruple the scores are planned in two halves.
MAX_PADDING = 4


def attend_on_cpu(
    q: Tensor, key_pool: Tensor, value_pool: Tensor, block_table: Tensor, kv_lens: Tensor, q_starts: Tensor, *,
    scale: float, window: int | None, softcap: float | None, sinks: Tensor | None, return_lse: bool,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """See `paged_attention`; arguments are checked there."""
    out, lse = torch.empty_like(q, memory_format=torch.contiguous_format), None
    if return_lse:
        lse = torch.empty(q.shape[:2], dtype=torch.float32)
    starts, lens, table = q_starts.tolist(), kv_lens.tolist(), block_table.tolist()
    decoding = [i for i in range(len(lens)) if starts[i + 1] - starts[i] == 1]
    for group in _even_groups(decoding, lens):
        rows = torch.tensor([starts[i] for i in group])
        plan = plan_decode([table[i] for i in group], [lens[i] for i in group], key_pool.shape[2], q.shape[1], window)
        part = decode_blocks(
            q[rows], key_pool, value_pool, plan, scale=scale, softcap=softcap, sinks=sinks, return_lse=return_lse
        )
        _put(out, lse, rows, part)
    for i, kv_len in enumerate(lens):
        rows = torch.arange(starts[i], starts[i + 1])
        if len(rows) > 1:
            keys, values = (read_sequence(pool, table[i], kv_len) for pool in (key_pool, value_pool))
            queries = q[starts[i] : starts[i + 1]]
            if softcap is None and sinks is None and not return_lse:
                _put(out, lse, rows, (prefill_attention(queries, keys, values, window, scale), None))
            else:
                _put(out, lse, rows, _prefill_with_options(queries, keys, values, window, scale, softcap, sinks))
    return out, lse


def decode_blocks(
    q: Tensor, key_pool: Tensor, value_pool: Tensor, plan: DecodePlan, *,
    scale: float, softcap: float | None = None, sinks: Tensor | None = None, return_lse: bool = False,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """One Query for each sequence.

    Args:
        q: [num_seqs, num_heads, head_dim].
        key_pool: [num_blocks, num_kv_heads, block_size, head_dim].
        value_pool: like `key_pool`.
        plan: the step's.
        scale: factor on the scores.
        softcap: see `paged_attention`.
        sinks: likewise.
        return_lse: likewise.

    Returns:
        Output like `q`, and LSE [num_seqs, num_heads] or None.
    """
    num_seqs, num_heads, head_dim = q.shape
    num_kv_heads, block_size = key_pool.shape[1:3]
    group, rows = num_heads // num_kv_heads, plan.rows
    queries = (q * scale).reshape(num_seqs, -1).index_select(0, plan.owner).view(-1, group, head_dim)
    scores = _product(queries, key_pool, plan, transposed=True).view(-1, block_size)
    scores = scores.index_select(0, plan.to_reading).view(num_seqs, num_heads, -1)
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    if plan.hidden is not None:
        scores = scores.masked_fill_(plan.hidden, float("-inf"))
    weights = torch.softmax(scores, -1).view(-1, block_size)
    weights = weights.index_select(0, plan.to_pool).view(-1, group, block_size)
    parts = _product(weights, value_pool, plan, transposed=False).view(rows, num_heads * head_dim)
    if plan.tails is not None:
        # A weight of zero does not silence a NaN: unfilled slots are blanked in a copy of the last blocks.
        where, blocks, unfilled = plan.tails
        values = value_pool.index_select(0, blocks).masked_fill_(unfilled, 0.0).view(-1, block_size, head_dim)
        last = weights.view(rows, -1).index_select(0, where).view(-1, group, block_size)
        parts.index_copy_(0, where, torch.bmm(last, values).view(len(where), -1))
    out = F.embedding_bag(plan.bags[0], parts, plan.bags[1], mode="sum").view(q.shape)
    if sinks is None and not return_lse:
        return out, None
    return with_sinks(out, torch.logsumexp(scores.float(), -1), sinks)


def with_sinks(out: Tensor, lse: Tensor, sinks: Tensor | None) -> tuple[Tensor, Tensor]:
    """Let each head's sink take its share: output and LSE as if it had been in the softmax."""
    if sinks is None:
        return out, lse
    both = torch.logaddexp(lse, sinks.float())
    return out * (lse - both).exp()[..., None].to(out.dtype), both


def read_sequence(pool: Tensor, table: list[int], kv_len: int) -> Tensor:
    """One sequence's Keys or Values in order, [num_kv_heads, kv_len, head_dim]."""
    blocks = torch.tensor(table[: -(-kv_len // pool.shape[2])])
    return pool.index_select(0, blocks).transpose(0, 1).flatten(1, 2).narrow(1, 0, kv_len)


def _product(rows: Tensor, pool: Tensor, plan: DecodePlan, transposed: bool) -> Tensor:
    """Each block of the plan times its rows: [rows * num_kv_heads, group, ...]."""
    num_kv_heads, block_size, head_dim = pool.shape[1:]
    if not plan.segments:
        blocks = pool.index_select(0, plan.copied).view(-1, block_size, head_dim)
        return torch.bmm(rows, blocks.transpose(1, 2) if transposed else blocks)
    flat = pool.view(-1, block_size, head_dim)
    flat = flat.transpose(1, 2) if transposed else flat
    if len(plan.segments) == 1:
        first, stop = plan.segments[0]
        return torch.bmm(rows, flat[first * num_kv_heads : stop * num_kv_heads])
    out, done = rows.new_empty(rows.shape[0], rows.shape[1], flat.shape[2]), 0
    for first, stop in plan.segments:
        part = slice(done, done + (stop - first) * num_kv_heads)
        torch.bmm(rows[part], flat[first * num_kv_heads : stop * num_kv_heads], out=out[part])
        done = part.stop
    return out


def _prefill_with_options(
    q: Tensor, k: Tensor, v: Tensor, window: int | None, scale: float, softcap: float | None, sinks: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Causal prefill of one sequence in float32, some Queries at a time; a KV head's Queries form one matrix."""
    q_len, num_heads, head_dim = q.shape
    num_kv_heads, kv_len = k.shape[:2]
    hidden = ~causal_mask(q_len, kv_len, window, q.device)
    keys, values, outs, lses = k.float().transpose(1, 2), v.float(), [], []
    for start in range(0, q_len, QUERIES_AT_ONCE):
        some = q[start : start + QUERIES_AT_ONCE].float() * scale
        count = some.shape[0]
        rows = some.view(count, num_kv_heads, -1, head_dim).permute(1, 2, 0, 3).reshape(num_kv_heads, -1, head_dim)
        scores = torch.bmm(rows, keys)
        if softcap is not None:
            scores = softcap * torch.tanh(scores / softcap)
        scores = scores.view(num_kv_heads, -1, count, kv_len)
        scores = scores.masked_fill_(hidden[start : start + count], float("-inf"))
        lse = torch.logsumexp(scores, -1)
        out = torch.bmm((scores - lse[..., None]).exp_().flatten(1, 2), values)
        outs.append(out.view(num_heads, count, head_dim).transpose(0, 1))
        lses.append(lse.view(num_heads, count).transpose(0, 1))
    return with_sinks(torch.cat(outs), torch.cat(lses), sinks)


def _even_groups(seqs: list[int], kv_lens: list[int]) -> list[list[int]]:
    """Sequences that are worth padding to one length, in groups."""
    if not seqs:
        return []
    lens = [kv_lens[i] for i in seqs]
    if len(seqs) * max(lens) <= MAX_PADDING * sum(lens):
        return [seqs]
    ordered = sorted(seqs, key=lambda i: kv_lens[i])
    half = len(ordered) // 2
    return _even_groups(ordered[:half], kv_lens) + _even_groups(ordered[half:], kv_lens)


def _put(out: Tensor, lse: Tensor | None, rows: Tensor, part: tuple[Tensor, Tensor | None]) -> None:
    out.index_copy_(0, rows, part[0].to(out.dtype))
    if lse is not None and part[1] is not None:
        lse.index_copy_(0, rows, part[1])

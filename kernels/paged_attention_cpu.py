"""`paged_attention` on a CPU, in torch: decode on blocks where they lie, prefill on a sequence's blocks put together.

Decode: one product of every block with its sequence's Query, a softmax in reading order, one product of every block
with its weights, and a sum over blocks (see `paged_attention_plan`). No KV head is expanded.
One short sequence alone, and prefill, which has many Queries for each Key, are better off with a copy in order.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from kernels.grouped_attention import FUSED_MAX_KEYS, causal_mask, decode_attention, prefill_attention
from kernels.paged_attention_plan import DecodePlan, Layout, plan_decode, similar_groups

QUERIES_AT_ONCE = 64  # bounds the scores in memory where torch's fused prefill cannot be used


@dataclass(frozen=True)
class Scoring:
    """How scores come about and what is wanted; see `paged_attention`."""

    scale: float
    softcap: float | None = None
    sinks: Tensor | None = None
    return_lse: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether the kernels for contiguous Keys can do it."""
        return self.softcap is None and self.sinks is None and not self.return_lse


@dataclass(frozen=True)
class Copied:
    """One sequence that is read through a copy in order.

    Attributes:
        tokens: its Queries on the packed axis.
        rows: int64 [num_kv_heads, blocks], its pieces (see `Layout.rows_in_order`).
        kv_len: its Keys.
    """

    tokens: slice
    rows: Tensor
    kv_len: int


@dataclass(frozen=True)
class StepPlan:
    """One step of all its sequences, for every layer with the same window.

    Attributes:
        layout: the pool's.
        window: Keys that a Query sees at most; None for all.
        decodes: int64 tokens (None: all, in order) and the plan of the sequences that they belong to.
        copied: sequences that are read through a copy.
    """

    layout: Layout
    window: int | None
    decodes: tuple[tuple[Tensor | None, DecodePlan], ...]
    copied: tuple[Copied, ...]


def plan_step(
    tables: Sequence[Sequence[int]], kv_lens: Sequence[int], q_starts: Sequence[int], layout: Layout, window: int | None
) -> StepPlan:
    """Plan a step.

    Args:
        tables: each sequence's block ids in order; more than its Keys need are ignored.
        kv_lens: tokens of each sequence, this step's included.
        q_starts: where each sequence's Queries begin on the packed axis, and where the last one's end.
        layout: the pool's.
        window: Keys that a Query sees at most; None for all.
    """
    seqs = range(len(kv_lens))
    decoding = [i for i in seqs if q_starts[i + 1] - q_starts[i] == 1]
    if len(decoding) == 1 and kv_lens[decoding[0]] <= FUSED_MAX_KEYS:
        decoding = []
    decodes = []
    for group in similar_groups(decoding, tables, kv_lens, layout):
        tokens = None if group == list(seqs) else torch.tensor([q_starts[i] for i in group])
        plan = plan_decode([tables[i] for i in group], [kv_lens[i] for i in group], layout, window)
        decodes.append((tokens, plan))
    copied = [
        Copied(
            slice(q_starts[i], q_starts[i + 1]),
            layout.rows_in_order(tables[i][: -(-kv_lens[i] // layout.block_size)]),
            kv_lens[i],
        )
        for i in seqs
        if q_starts[i + 1] > q_starts[i] and i not in set(decoding)
    ]
    return StepPlan(layout, window, tuple(decodes), tuple(copied))


def attend_step(
    q: Tensor, key_pool: Tensor, value_pool: Tensor, plan: StepPlan, scoring: Scoring
) -> tuple[Tensor, Tensor | None]:
    """Run one layer's attention of a planned step.

    Returns:
        Output [tokens, num_heads, head_dim], and LSE [tokens, num_heads] float32 or None.
    """
    if len(plan.decodes) == 1 and plan.decodes[0][0] is None:
        whole = decode_blocks(q, key_pool, value_pool, plan.decodes[0][1], scoring)
        return whole[0], whole[1] if scoring.return_lse else None
    out = torch.empty_like(q, memory_format=torch.contiguous_format)
    lse = torch.empty(q.shape[:2], dtype=torch.float32) if scoring.return_lse else None
    for tokens, part in plan.decodes:
        assert tokens is not None, "a plan for all sequences is the only one"
        _put(out, lse, tokens, decode_blocks(q[tokens], key_pool, value_pool, part, scoring))
    for each in plan.copied:
        piece = plan.layout.block_size * q.shape[2]
        keys, values = (
            pool.view(-1, piece).index_select(0, each.rows.flatten()).view(*pool.shape[1:2], -1, q.shape[2])
            for pool in (key_pool, value_pool)
        )
        keys, values = keys.narrow(1, 0, each.kv_len), values.narrow(1, 0, each.kv_len)
        attend = _attend_plainly if scoring.is_plain else _attend_with_options
        _put(out, lse, each.tokens, attend(q[each.tokens], keys, values, plan.window, scoring))
    return out, lse


def decode_blocks(
    q: Tensor, key_pool: Tensor, value_pool: Tensor, plan: DecodePlan, scoring: Scoring
) -> tuple[Tensor, Tensor | None]:
    """One Query for each sequence of the plan, [num_seqs, num_heads, head_dim]; output and LSE likewise."""
    num_seqs, num_heads, head_dim = q.shape
    num_kv_heads, read_size = key_pool.shape[1:3]
    if plan.copied is not None:
        key_pool, value_pool = (
            pool.view(-1, plan.piece_size * head_dim).index_select(0, plan.copied).view(-1, *pool.shape[1:])
            for pool in (key_pool, value_pool)
        )
    group, rows = num_heads // num_kv_heads, plan.owner.shape[0]
    queries = (q * scoring.scale).reshape(num_seqs, -1).index_select(0, plan.owner).view(-1, group, head_dim)
    scores = _product(queries, key_pool.view(-1, read_size, head_dim).transpose(1, 2), plan, num_kv_heads)
    scores = scores.view(-1, read_size).index_select(0, plan.to_reading).view(num_seqs, num_heads, -1)
    if scoring.softcap is not None:
        scores = scoring.softcap * torch.tanh(scores / scoring.softcap)
    if plan.hidden is not None:
        scores.view(-1).index_fill_(0, plan.hidden, float("-inf"))
    weights = torch.softmax(scores, -1).view(-1, read_size).index_select(0, plan.to_pool).view(-1, group, read_size)
    parts = _product(weights, value_pool.view(-1, read_size, head_dim), plan, num_kv_heads).view(rows, -1)
    if plan.tails is not None:
        # A weight of zero does not silence a NaN, so unfilled slots of the last blocks are not even read.
        where, slots = plan.tails
        values = value_pool.view(-1, head_dim).index_select(0, slots).view(-1, read_size, head_dim)
        last = weights.view(rows, -1).index_select(0, where).view(-1, group, read_size)
        parts.index_copy_(0, where, torch.bmm(last, values).view(len(where), -1))
    out = F.embedding_bag(plan.bags[0], parts, plan.bags[1], mode="sum").view(q.shape)
    if scoring.sinks is None and not scoring.return_lse:
        return out, None
    return _with_sinks(out, torch.logsumexp(scores.float(), -1), scoring.sinks)


def _product(rows: Tensor, blocks: Tensor, plan: DecodePlan, num_kv_heads: int) -> Tensor:
    """The plan's blocks, [blocks * num_kv_heads, ...], times their rows, [rows * num_kv_heads, group, ...]."""
    if len(plan.segments) == 1:
        first, stop = plan.segments[0]
        return torch.bmm(rows, blocks.narrow(0, first * num_kv_heads, (stop - first) * num_kv_heads))
    out, done = rows.new_empty(rows.shape[0], rows.shape[1], blocks.shape[2]), 0
    for first, stop in plan.segments:
        part = slice(done, done + (stop - first) * num_kv_heads)
        torch.bmm(rows[part], blocks[first * num_kv_heads : stop * num_kv_heads], out=out[part])
        done = part.stop
    return out


def _attend_plainly(
    q: Tensor, k: Tensor, v: Tensor, window: int | None, scoring: Scoring
) -> tuple[Tensor, Tensor | None]:
    """One sequence, through the kernels for contiguous Keys."""
    if q.shape[0] > 1:
        return prefill_attention(q, k, v, window, scoring.scale), None
    first = 0 if window is None else max(0, k.shape[1] - window)
    return decode_attention(q, k[None, :, first:], v[None, :, first:], None, scoring.scale), None


def _attend_with_options(
    q: Tensor, k: Tensor, v: Tensor, window: int | None, scoring: Scoring
) -> tuple[Tensor, Tensor | None]:
    """One sequence in float32, some Queries at a time; a KV head's Queries form one matrix."""
    q_len, num_heads, head_dim = q.shape
    num_kv_heads, kv_len = k.shape[:2]
    hidden = ~causal_mask(q_len, kv_len, window, q.device)
    keys, values, outs, lses = k.float().transpose(1, 2), v.float(), [], []
    for start in range(0, q_len, QUERIES_AT_ONCE):
        some = q[start : start + QUERIES_AT_ONCE].float() * scoring.scale
        count = some.shape[0]
        rows = some.view(count, num_kv_heads, -1, head_dim).permute(1, 2, 0, 3).reshape(num_kv_heads, -1, head_dim)
        scores = torch.bmm(rows, keys)
        if scoring.softcap is not None:
            scores = scoring.softcap * torch.tanh(scores / scoring.softcap)
        scores = scores.view(num_kv_heads, -1, count, kv_len)
        scores = scores.masked_fill_(hidden[start : start + count], float("-inf"))
        lse = torch.logsumexp(scores, -1)
        out = torch.bmm((scores - lse[..., None]).exp_().flatten(1, 2), values)
        outs.append(out.view(num_heads, count, head_dim).transpose(0, 1))
        lses.append(lse.view(num_heads, count).transpose(0, 1))
    return _with_sinks(torch.cat(outs), torch.cat(lses), scoring.sinks)


def _with_sinks(out: Tensor, lse: Tensor, sinks: Tensor | None) -> tuple[Tensor, Tensor]:
    """Let each head's sink take its share: output and LSE as if it had been in the softmax."""
    if sinks is None:
        return out, lse
    both = torch.logaddexp(lse, sinks.float())
    return out * (lse - both).exp()[..., None].to(out.dtype), both


def _put(out: Tensor, lse: Tensor | None, tokens: Tensor | slice, part: tuple[Tensor, Tensor | None]) -> None:
    out[tokens] = part[0].to(out.dtype)
    if lse is not None and part[1] is not None:
        lse[tokens] = part[1]

"""`paged_attention` on a CPU, in torch: decode on blocks where they lie, prefill on a sequence's blocks put together.

Decode: one product of every block with its sequence's Query, a softmax in reading order, one product of every block
with its weights, and a sum over blocks (see `paged_attention_plan`). No KV head is expanded.
One short sequence alone, and prefill, which has many Queries for each Key, are better off with a copy in order.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from kernels.grouped_attention import FUSED_MAX_KEYS, causal_mask, decode_attention, prefill_attention
from kernels.paged_attention_plan import Gathered, InPlace, Layout, gather_decode, plan_decode, similar_groups

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
class Prefill:
    """One sequence's new tokens.

    Attributes:
        tokens: its Queries on the packed axis.
        rows: int64 [num_kv_heads * blocks], its pieces in order (see `Layout.piece_rows`).
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
        prefills: the other sequences.
    """

    layout: Layout
    window: int | None
    decodes: tuple[tuple[Tensor | None, InPlace | Gathered], ...]
    prefills: tuple[Prefill, ...]


def plan_step(
    tables: Sequence[Sequence[int]],
    kv_lens: Sequence[int],
    q_starts: Sequence[int],
    layout: Layout,
    window: int | None,
    scoring_is_plain: bool = True,
) -> StepPlan:
    """Plan a step.

    Args:
        tables: each sequence's block ids in order; more than its Keys need are ignored.
        kv_lens: tokens of each sequence, this step's included.
        q_starts: where each sequence's Queries begin on the packed axis, and where the last one's end.
        layout: the pool's.
        window: Keys that a Query sees at most; None for all.
        scoring_is_plain: see `Scoring.is_plain`.
    """
    seqs = range(len(kv_lens))
    q_lens = [q_starts[i + 1] - q_starts[i] for i in seqs]
    decodes = []
    for group in similar_groups([i for i in seqs if q_lens[i] == 1], tables, kv_lens, layout):
        tokens = None if group == list(seqs) else torch.tensor([q_starts[i] for i in group])
        short = len(group) == 1 and kv_lens[group[0]] <= FUSED_MAX_KEYS
        make = gather_decode if short and scoring_is_plain else plan_decode
        decodes.append((tokens, make([tables[i] for i in group], [kv_lens[i] for i in group], layout, window)))
    prefills = []
    for i in seqs:
        if q_lens[i] > 1:
            ids = torch.tensor(tables[i][: -(-kv_lens[i] // layout.block_size)])
            prefills.append(Prefill(slice(q_starts[i], q_starts[i + 1]), layout.piece_rows(ids).flatten(), kv_lens[i]))
    return StepPlan(layout, window, tuple(decodes), tuple(prefills))


def attend_step(
    q: Tensor, key_pool: Tensor, value_pool: Tensor, plan: StepPlan, scoring: Scoring
) -> tuple[Tensor, Tensor | None]:
    """Run one layer's attention of a planned step.

    Returns:
        Output [tokens, num_heads, head_dim], and LSE [tokens, num_heads] float32 or None.
    """
    if len(plan.decodes) == 1 and plan.decodes[0][0] is None:
        whole = _decode(q, key_pool, value_pool, plan, plan.decodes[0][1], scoring)
        return whole[0], whole[1] if scoring.return_lse else None
    out = torch.empty_like(q, memory_format=torch.contiguous_format)
    lse = torch.empty(q.shape[:2], dtype=torch.float32) if scoring.return_lse else None
    for tokens, part in plan.decodes:
        assert tokens is not None, "a plan for all sequences is the only one"
        _put(out, lse, tokens, _decode(q[tokens], key_pool, value_pool, plan, part, scoring))
    for each in plan.prefills:
        keys, values = (_copied(pool, each.rows, plan.layout, 1)[0] for pool in (key_pool, value_pool))
        keys, values = keys.narrow(1, 0, each.kv_len), values.narrow(1, 0, each.kv_len)
        if scoring.is_plain:
            out[each.tokens] = prefill_attention(q[each.tokens], keys, values, plan.window, scoring.scale)
        else:
            _put(out, lse, each.tokens, _prefill_with_options(q[each.tokens], keys, values, plan.window, scoring))
    return out, lse


def _decode(
    q: Tensor, key_pool: Tensor, value_pool: Tensor, step: StepPlan, plan: InPlace | Gathered, scoring: Scoring
) -> tuple[Tensor, Tensor | None]:
    """One Query for each sequence of the plan, [num_seqs, num_heads, head_dim]; output and LSE likewise."""
    if isinstance(plan, InPlace):
        return decode_in_place(q, key_pool, value_pool, plan, scoring)
    keys, values = (_copied(pool, plan.rows, step.layout, plan.num_seqs) for pool in (key_pool, value_pool))
    if plan.visible is not None:
        for copy in (keys, values):  # neither a mask nor a weight of zero silences a NaN
            copy.view(-1, q.shape[2]).index_fill_(0, plan.unseen, 0.0)
    if scoring.is_plain:
        return decode_attention(q, keys, values, plan.visible, scoring.scale), None
    num_kv_heads = keys.shape[1]
    queries = (q * scoring.scale).view(len(q), num_kv_heads, -1, q.shape[2])
    scores = torch.matmul(queries, keys.transpose(2, 3)).view(len(q), q.shape[1], -1)
    weights, lse = _softmax(scores, None if plan.visible is None else ~plan.visible[:, None], scoring)
    out = torch.matmul(weights.view(len(q), num_kv_heads, -1, keys.shape[2]), values).view(q.shape)
    return _with_sinks(out, lse, scoring.sinks)


def decode_in_place(
    q: Tensor, key_pool: Tensor, value_pool: Tensor, plan: InPlace, scoring: Scoring
) -> tuple[Tensor, Tensor | None]:
    """One Query for each sequence of the plan, [num_seqs, num_heads, head_dim]; output and LSE likewise."""
    num_seqs, num_heads, head_dim = q.shape
    num_kv_heads, read_size = key_pool.shape[1:3]
    group = num_heads // num_kv_heads
    queries = (q * scoring.scale).view(num_seqs, -1)
    if plan.owner is not None:
        queries = queries.index_select(0, plan.owner)
    keys, values = (pool.view(-1, read_size, head_dim) for pool in (key_pool, value_pool))
    scores = _product(queries.view(-1, group, head_dim), keys.transpose(1, 2), plan, num_kv_heads).view(-1, read_size)
    if plan.orders is not None:
        scores = scores.index_select(0, plan.orders[0])
    scores = scores.view(-1 if plan.orders is None else num_seqs, num_heads, read_size if plan.orders is None else -1)
    if scoring.is_plain and plan.hidden is None:
        weights, lse = torch.softmax(scores, -1), None
    else:
        weights, lse = _softmax(scores, plan.hidden, scoring)
    weights = weights.view(-1, read_size)
    if plan.orders is not None:
        weights = weights.index_select(0, plan.orders[1])
    weights = weights.view(-1, group, read_size)
    parts = _product(weights, values, plan, num_kv_heads).view(-1, num_heads * head_dim)
    if plan.partial is not None:
        _silence(parts, weights, value_pool, plan.partial)
    if plan.orders is not None:
        parts = torch.embedding_bag(parts, *plan.bags, False, 0, False, None, False)[0]
    elif plan.owner is not None:
        parts = parts.index_select(0, plan.bags[0])
        lse = None if lse is None else lse.index_select(0, plan.bags[0])
    return _with_sinks(parts.view(q.shape), lse, scoring.sinks)


def _silence(parts: Tensor, weights: Tensor, value_pool: Tensor, partial: tuple[Tensor, Tensor, Tensor]) -> None:
    """A weight of zero does not silence a NaN in a slot that is not seen: then such slots are blanked in a copy."""
    rows, places, hidden = partial
    if math.isfinite(parts.index_select(0, rows).sum().item()):
        return
    group, read_size = weights.shape[1:]
    values = value_pool.index_select(0, places).masked_fill_(hidden, 0.0).view(-1, read_size, value_pool.shape[3])
    seen = weights.view(len(parts), -1).index_select(0, rows).view(-1, group, read_size)
    parts.index_copy_(0, rows, torch.bmm(seen, values).view(len(rows), -1))


def _softmax(scores: Tensor, hidden: Tensor | None, scoring: Scoring) -> tuple[Tensor, Tensor | None]:
    """Weights over the last axis, and the logarithm of their denominators where it is wanted."""
    if scoring.softcap is not None:
        scores = scoring.softcap * torch.tanh(scores / scoring.softcap)
    if hidden is not None:
        scores = scores.masked_fill_(hidden, float("-inf"))
    lse = torch.logsumexp(scores.float(), -1) if scoring.return_lse or scoring.sinks is not None else None
    return torch.softmax(scores, -1), lse


def _copied(pool: Tensor, rows: Tensor, layout: Layout, num_seqs: int) -> Tensor:
    """Pieces put together in order, [num_seqs, num_kv_heads, slots, head_dim]."""
    num_kv_heads, head_dim = pool.shape[1], pool.shape[3]
    pieces = pool.view(-1, layout.block_size * head_dim).index_select(0, rows)
    return pieces.view(num_seqs, num_kv_heads, -1, head_dim)


def _product(rows: Tensor, blocks: Tensor, plan: InPlace, num_kv_heads: int) -> Tensor:
    """The plan's blocks, [blocks * num_kv_heads, ...], times their rows, [rows * num_kv_heads, group, ...]."""
    if len(plan.segments) == 1:
        first, stop = plan.segments[0]
        return torch.bmm(rows, blocks[first * num_kv_heads : stop * num_kv_heads])
    out, done = rows.new_empty(rows.shape[0], rows.shape[1], blocks.shape[2]), 0
    for first, stop in plan.segments:
        part = slice(done, done + (stop - first) * num_kv_heads)
        torch.bmm(rows[part], blocks[first * num_kv_heads : stop * num_kv_heads], out=out[part])
        done = part.stop
    return out


def _prefill_with_options(
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


def _with_sinks(out: Tensor, lse: Tensor | None, sinks: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Let each head's sink take its share: output and LSE as if it had been in the softmax."""
    if sinks is None or lse is None:
        return out, lse
    both = torch.logaddexp(lse, sinks.float())
    return out * (lse - both).exp()[..., None].to(out.dtype), both


def _put(out: Tensor, lse: Tensor | None, tokens: Tensor | slice, part: tuple[Tensor, Tensor | None]) -> None:
    out[tokens] = part[0].to(out.dtype)
    if lse is not None and part[1] is not None:
        lse[tokens] = part[1]

"""How a CPU reads a paged cache in one decode step: which blocks meet which Query, worked out once for all layers.

Copying scattered blocks together costs as much as multiplying them. So Keys and Values stay where they lie, and the
small things travel: every block gets its sequence's Query, the scores are sorted into reading order for the softmax,
and its weights back into the pool's order.

    pool            . . 8 1 . 6 3     blocks from the first to the last owned one: a segment, one product
    pool order      scores of one block after the other, as they lie
    reading order   [sequence, head, block, slot]: what the softmax runs over

Blocks of nobody inside a segment are multiplied too, and what comes out is dropped. Segments split at long gaps.

Each step of this costs some microseconds whatever its size, so a pool may join neighbouring blocks of the block table
("pieces") into one large block of its own. Which slots of it a sequence sees, a mask says. Where that wastes too much,
and where sequences share a block, pieces are copied together after all.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

# Plans are made in numpy: torch hands even such small work to all its threads and waits for the slowest of them (a plan
# for 8 sequences of 128 blocks, 32 heads: 0.55 ms; in torch 0.96 on one thread, 9.9 on two cores that others use too).
Numbers = NDArray[Any]

# A gap of fewer of the pool's blocks is read over: one more segment costs about as much.
MAX_GAP = 2
MAX_SEGMENTS = 16
# Multiplying a slot of nobody costs as much as one that is seen; copying first costs two and a half (2 cores, bf16).
MAX_READ_PER_SEEN = 2.0
# Sequences so uneven that padding would more than quadruple the scores are planned in two halves.
MAX_PADDING = 4


@dataclass(frozen=True)
class Layout:
    """How a pool lies in memory: [num_blocks / pieces, num_kv_heads, pieces * block_size, head_dim].

    Attributes:
        block_size: slots of one entry of a block table.
        num_heads: Query heads.
        num_kv_heads: KV heads.
        pieces: entries of a block table in one block of the pool; id b is piece b % pieces of block b // pieces.
    """

    block_size: int
    num_heads: int
    num_kv_heads: int
    pieces: int = 1

    @property
    def read_size(self) -> int:
        """Slots of one block of the pool."""
        return self.block_size * self.pieces

    def piece_rows(self, ids: Tensor) -> Tensor:
        """Pieces as rows of a pool seen as [-1, block_size * head_dim], head by head: [..., n] to [..., heads, n]."""
        heads = torch.arange(self.num_kv_heads)[:, None]
        ids = ids[..., None, :]
        return (ids // self.pieces * self.num_kv_heads + heads) * self.pieces + ids % self.pieces


@dataclass(frozen=True)
class InPlace:
    """One decode step of some sequences on the pool as it lies, for every layer with the same window.

    Attributes:
        segments: (first, last + 1) blocks of the pool that are multiplied, in rising order.
        owner: int64 [rows], for each of these blocks the sequence whose Query it meets; None if they come in order, one
            of each.
        orders: int64 [num_seqs * num_heads * longest], blocks' scores in pool order, sorted into reading order, and
            int64 [rows * num_heads], the way back; None if every sequence sees one block, whose scores stay in place.
        hidden: bool, slots that the Query does not see: [num_seqs, 1, longest * read_size], without `orders`
            [rows, 1, read_size]; None if none.
        bags: int64, rows of each sequence one after the other, and where each sequence begins: for the sum over blocks.
        partial: blocks with hidden slots: their rows, their places in the pool, bool [blocks, 1, read_size, 1] of the
            hidden slots; None if there are none.
    """

    segments: tuple[tuple[int, int], ...]
    owner: Tensor | None
    orders: tuple[Tensor, Tensor] | None
    hidden: Tensor | None
    bags: tuple[Tensor, Tensor]
    partial: tuple[Tensor, Tensor, Tensor] | None


@dataclass(frozen=True)
class Gathered:
    """One decode step of some sequences through a copy of their pieces, in order and padded to one length.

    Attributes:
        rows: int64 [num_seqs * num_kv_heads * longest], pieces as `Layout.piece_rows` numbers them.
        num_seqs: sequences.
        visible: bool [num_seqs, longest * block_size], slots that the sequence's Query sees; None if all.
        unseen: int64, the other slots of the copy seen as [-1, head_dim].
    """

    rows: Tensor
    num_seqs: int
    visible: Tensor | None
    unseen: Tensor


@dataclass(frozen=True)
class _Read:
    """The pieces that a step reads, one after the other: int64 [pieces] each, and bool [pieces, block_size].

    Attributes:
        ids: of the block table.
        owner: sequence.
        place: which of its sequence's pieces that are read.
        seen: which of its slots the Query sees.
    """

    ids: Numbers
    owner: Numbers
    place: Numbers
    seen: Numbers


def plan_decode(
    tables: Sequence[Sequence[int]], kv_lens: Sequence[int], layout: Layout, window: int | None
) -> InPlace | Gathered:
    """Plan one decode step.

    Args:
        tables: each sequence's block ids in order; more than its Keys need are ignored.
        kv_lens: Keys of each sequence, at least 1.
        layout: the pool's.
        window: Keys that a Query sees at most; None for all.
    """
    read = _read(tables, kv_lens, layout.block_size, window)
    num_blocks, num_seqs = int(read.ids.max()) // layout.pieces + 1, len(tables)
    # One pair for each block of the pool and each sequence that sees something of it, sorted by sequence.
    pairs, pair_of = np.unique(read.owner * num_blocks + read.ids // layout.pieces, return_inverse=True)
    owners, blocks = pairs // num_blocks, pairs % num_blocks
    segments = _segments(blocks, int(read.seen.sum()) / layout.read_size)
    if not segments:
        return _gathered(read, num_seqs, layout)
    rows, total = _rows(blocks, segments)
    counts = np.bincount(owners, minlength=num_seqs)
    starts = counts.cumsum() - counts
    seen: Numbers = np.zeros((len(pairs), layout.pieces, layout.block_size), dtype=bool)
    seen[pair_of, read.ids % layout.pieces] = read.seen
    seen = seen.reshape(len(pairs), -1)
    place = np.arange(len(pairs)) - starts[owners]  # which block of its sequence
    longest, orders = int(counts.max()), None
    if longest > 1:
        orders = _orders(rows, owners, place, counts, total, layout.num_heads)
    hidden, partial = None, None
    whole = seen.all(1)
    if not whole.all() or int(counts.min()) < longest:
        unseen = np.ones((total if orders is None else num_seqs, longest, layout.read_size), dtype=bool)
        unseen[(rows, 0) if orders is None else (owners, place)] = ~seen
        hidden = torch.from_numpy(unseen.reshape(len(unseen), 1, -1))
        which = np.flatnonzero(~whole)
        cut = ~seen[which].reshape(-1, 1, layout.read_size, 1)
        partial = torch.from_numpy(rows[which]), torch.from_numpy(blocks[which]), torch.from_numpy(cut)
    owner = np.zeros(total, dtype=np.int64)
    owner[rows] = owners
    one_each = total == num_seqs and bool((owner == np.arange(total)).all())
    bags = torch.from_numpy(rows), torch.from_numpy(starts)
    return InPlace(segments, None if one_each else torch.from_numpy(owner), orders, hidden, bags, partial)


def gather_decode(
    tables: Sequence[Sequence[int]], kv_lens: Sequence[int], layout: Layout, window: int | None
) -> Gathered:
    """Plan one decode step through a copy; arguments as for `plan_decode`."""
    return _gathered(_read(tables, kv_lens, layout.block_size, window), len(tables), layout)


def similar_groups(
    seqs: Sequence[int], tables: Sequence[Sequence[int]], kv_lens: Sequence[int], layout: Layout
) -> list[list[int]]:
    """Sequences that are worth one plan: none shares a block of the pool or all may, and of not too uneven lengths."""
    used = {i: {b // layout.pieces for b in tables[i][: -(-kv_lens[i] // layout.block_size)]} for i in seqs}
    held = Counter(chain.from_iterable(used.values()))
    shared = {block for block, count in held.items() if count > 1}
    sharing = {i for i in seqs if not shared.isdisjoint(used[i])} if shared else set()
    return _even([i for i in seqs if i not in sharing], kv_lens) + _even([i for i in seqs if i in sharing], kv_lens)


def _even(seqs: list[int], kv_lens: Sequence[int]) -> list[list[int]]:
    if not seqs:
        return []
    lens = [kv_lens[i] for i in seqs]
    if len(seqs) * max(lens) <= MAX_PADDING * sum(lens):
        return [seqs]
    rising = sorted(seqs, key=lambda i: kv_lens[i])
    half = len(rising) // 2
    return _even(rising[:half], kv_lens) + _even(rising[half:], kv_lens)


def _read(tables: Sequence[Sequence[int]], kv_lens: Sequence[int], block_size: int, window: int | None) -> _Read:
    firsts = [0 if window is None else max(0, n - window) // block_size for n in kv_lens]
    parts = [table[first : -(-n // block_size)] for table, first, n in zip(tables, firsts, kv_lens, strict=True)]
    counts = np.array([len(part) for part in parts])
    owner = np.arange(len(parts)).repeat(counts)
    place = np.arange(len(owner)) - (counts.cumsum() - counts)[owner]
    position = (place + np.array(firsts)[owner])[:, None] * block_size + np.arange(block_size)
    end = np.array(kv_lens)[owner, None]
    seen = position < end
    if window is not None:
        seen &= position >= end - window
    ids = np.fromiter(chain.from_iterable(parts), dtype=np.int64, count=len(owner))
    return _Read(ids, owner, place, seen)


def _segments(blocks: Numbers, seen: float) -> tuple[tuple[int, int], ...]:
    """Ranges of the pool to read in place; none if copying is cheaper or a block belongs to two sequences."""
    ordered = np.sort(blocks)
    steps = np.diff(ordered)
    if (steps == 0).any():
        return ()
    cuts = np.flatnonzero(steps > MAX_GAP)
    first = [int(ordered[0]), *ordered[cuts + 1].tolist()]
    last = [*ordered[cuts].tolist(), int(ordered[-1])]
    total = sum(b - a + 1 for a, b in zip(first, last, strict=True))
    if len(first) > MAX_SEGMENTS or total > MAX_READ_PER_SEEN * seen:
        return ()
    return tuple((a, b + 1) for a, b in zip(first, last, strict=True))


def _rows(blocks: Numbers, segments: tuple[tuple[int, int], ...]) -> tuple[Numbers, int]:
    """Each block's row when the segments are put one after the other, and the number of rows."""
    firsts = np.array([first for first, _ in segments])
    lengths = np.array([stop - first for first, stop in segments])
    inside = np.searchsorted(firsts, blocks, side="right") - 1
    return blocks - firsts[inside] + (lengths.cumsum() - lengths)[inside], int(lengths.sum())


def _orders(
    rows: Numbers, owners: Numbers, place: Numbers, counts: Numbers, total: int, num_heads: int
) -> tuple[Tensor, Tensor]:
    """Between pool order [row, head] and reading order [sequence, head, block]; shorter sequences are padded."""
    longest, head = int(counts.max()), np.arange(num_heads)
    padded = np.zeros((len(counts), longest), dtype=np.int64)
    padded[owners, place] = rows
    to_reading = (padded[:, None, :] * num_heads + head[:, None]).reshape(-1)
    to_pool = np.zeros((total, num_heads), dtype=np.int64)
    to_pool[rows] = (owners[:, None] * num_heads + head) * longest + place[:, None]
    return torch.from_numpy(to_reading), torch.from_numpy(to_pool.reshape(-1))


def _gathered(read: _Read, num_seqs: int, layout: Layout) -> Gathered:
    longest = int(read.place.max()) + 1
    ids = np.full((num_seqs, longest), read.ids[0])
    ids[read.owner, read.place] = read.ids
    seen = np.zeros((num_seqs, longest, layout.block_size), dtype=bool)
    seen[read.owner, read.place] = read.seen
    visible = seen.reshape(num_seqs, -1)
    rows = layout.piece_rows(torch.from_numpy(ids)).flatten()
    if visible.all():
        return Gathered(rows, num_seqs, None, rows.new_empty(0))
    unseen = np.flatnonzero(np.broadcast_to(~visible[:, None], (num_seqs, layout.num_kv_heads, visible.shape[1])))
    return Gathered(rows, num_seqs, torch.from_numpy(visible), torch.from_numpy(unseen))

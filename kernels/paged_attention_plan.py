"""How a CPU reads a paged cache in one step: which blocks meet which Query, worked out once for all layers.

Copying scattered blocks together costs as much as multiplying them. So in a decode step Keys and Values stay where
they lie, and the small things travel: every block gets its sequence's Query, the scores are sorted into reading order
for the softmax, and its weights back into the pool's order.

    pool            . . 8 1 . 6 3     blocks from the first to the last owned one: a segment, one product
    pool order      scores of one block after the other, as they lie
    reading order   [sequence, head, block, slot]: what the softmax runs over

Blocks of nobody inside a segment are multiplied too, and what comes out is dropped. Segments split at long gaps.

A pool may join several neighbouring blocks of the block table into one of its own ("pieces"), because a product of 16
Keys costs nearly as much as one of 64. A sequence whose pieces do not lie in order in their block is read through a
copy, as are blocks that belong to two sequences.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

# A gap of fewer blocks is read over: one more segment costs about as much (2 cores, blocks of 64).
MAX_GAP = 4
MAX_SEGMENTS = 16
# Reading a block of nobody costs one block; copying an owned one costs two and a half. With more waste, copy.
MAX_READ_PER_OWNED = 2.0
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

    def rows_in_order(self, table: Sequence[int]) -> Tensor:
        """A sequence's pieces as rows of a pool seen as [-1, block_size * head_dim], by head: [num_kv_heads, n]."""
        blocks, heads = torch.tensor(table), torch.arange(self.num_kv_heads)[:, None]
        return (blocks // self.pieces * self.num_kv_heads + heads) * self.pieces + blocks % self.pieces


@dataclass(frozen=True)
class DecodePlan:
    """One decode step of some sequences, for every layer with the same window.

    Attributes:
        piece_size: slots of one entry of a block table.
        copied: int64, pieces to copy together first (rows of the pool seen as [-1, block_size * head_dim]); None if
            the pool is read in place.
        segments: (first, last + 1) blocks that are multiplied, in rising order.
        owner: int64 [rows], for each block in pool order the sequence whose Query it meets.
        to_reading: int64 [num_seqs * num_heads * longest], blocks' scores in pool order, sorted into reading order.
        to_pool: int64 [rows * num_heads], the way back.
        hidden: int64, slots that the sequence's Query does not see, in the flat scores in reading order; None if none.
        bags: int32, rows of each sequence one after the other, and where each sequence begins: for the sum over blocks.
        tails: for last blocks with unfilled slots: their rows in pool order, and int64 [tails * num_kv_heads *
            read_size], what to read for each slot of the pool (or the copy) seen as [-1, head_dim]: itself, or the last
            filled one in place of an unfilled one; None if all are full.
    """

    piece_size: int
    copied: Tensor | None
    segments: tuple[tuple[int, int], ...]
    owner: Tensor
    to_reading: Tensor
    to_pool: Tensor
    hidden: Tensor | None
    bags: tuple[Tensor, Tensor]
    tails: tuple[Tensor, Tensor] | None


def plan_decode(
    tables: Sequence[Sequence[int]], kv_lens: Sequence[int], layout: Layout, window: int | None
) -> DecodePlan:
    """Plan one decode step.

    Args:
        tables: each sequence's block ids in order; more than its Keys need are ignored.
        kv_lens: Keys of each sequence, at least 1.
        layout: the pool's.
        window: Keys that a Query sees at most; None for all.
    """
    size, pieces = layout.read_size, layout.pieces
    firsts = [0 if window is None else max(0, n - window) // size for n in kv_lens]
    stops = [-(-n // size) for n in kv_lens]
    read = [list(t[f * pieces : s * pieces]) for t, f, s in zip(tables, firsts, stops, strict=True)]
    counts = torch.tensor([s - f for f, s in zip(firsts, stops, strict=True)])
    owners, starts = torch.arange(len(read)).repeat_interleave(counts), counts.cumsum(0) - counts
    segments: tuple[tuple[int, int], ...] = ()
    if all(in_order(table, pieces) for table in read):
        blocks = torch.tensor([block // pieces for table in read for block in table[::pieces]])
        segments = _segments(blocks)
    copied = None
    if not segments:
        blocks, copied, segments = torch.arange(len(owners)), _pieces_to_copy(read, layout), ((0, len(owners)),)
    rows, total = _rows(blocks, segments)
    owner = torch.zeros(total, dtype=torch.int64)
    owner[rows] = owners
    last = starts + counts - 1
    return DecodePlan(
        layout.block_size,
        copied,
        segments,
        owner,
        *_orders(rows, owners, starts, counts, total, layout.num_heads),
        _hidden(firsts, kv_lens, int(counts.max()), layout, window),
        (rows.to(torch.int32), starts.to(torch.int32)),
        _tails(rows[last], blocks[last], kv_lens, layout),
    )


def in_order(table: Sequence[int], pieces: int) -> bool:
    """Whether each run of `pieces` entries is one block of the pool, piece by piece; the last run may be shorter."""
    return pieces == 1 or (
        all(block == table[i - i % pieces] + i % pieces for i, block in enumerate(table))
        and all(block % pieces == 0 for block in table[::pieces])
    )


def similar_groups(
    seqs: Sequence[int], tables: Sequence[Sequence[int]], kv_lens: Sequence[int], layout: Layout
) -> list[list[int]]:
    """Sequences that are worth one plan: all in order or none, and not so uneven that padding is most of the scores."""
    ordered = [i for i in seqs if in_order(tables[i][: -(-kv_lens[i] // layout.block_size)], layout.pieces)]
    others = [i for i in seqs if i not in set(ordered)]
    return _even(ordered, kv_lens) + _even(others, kv_lens)


def _even(seqs: list[int], kv_lens: Sequence[int]) -> list[list[int]]:
    if not seqs:
        return []
    lens = [kv_lens[i] for i in seqs]
    if len(seqs) * max(lens) <= MAX_PADDING * sum(lens):
        return [seqs]
    rising = sorted(seqs, key=lambda i: kv_lens[i])
    half = len(rising) // 2
    return _even(rising[:half], kv_lens) + _even(rising[half:], kv_lens)


def _segments(blocks: Tensor) -> tuple[tuple[int, int], ...]:
    """Ranges of the pool to read in place; none if copying is cheaper or a block belongs to two sequences."""
    ordered = blocks.sort().values
    steps = ordered.diff()
    if bool((steps == 0).any()):
        return ()
    cuts = (steps > MAX_GAP).nonzero().flatten()
    first = ordered[torch.cat((cuts.new_zeros(1), cuts + 1))].tolist()
    last = ordered[torch.cat((cuts, cuts.new_full((1,), len(ordered) - 1)))].tolist()
    total = sum(b - a + 1 for a, b in zip(first, last, strict=True))
    if len(first) > MAX_SEGMENTS or total > MAX_READ_PER_OWNED * len(blocks):
        return ()
    return tuple((a, b + 1) for a, b in zip(first, last, strict=True))


def _pieces_to_copy(read: Sequence[list[int]], layout: Layout) -> Tensor:
    """Rows that, put one after the other, are whole blocks of the sequences in order."""
    pieces = layout.pieces
    padded = [block for table in read for block in table + table[-1:] * (-len(table) % pieces)]
    rows = layout.rows_in_order(padded).view(layout.num_kv_heads, -1, pieces)
    return rows.transpose(0, 1).flatten()


def _rows(blocks: Tensor, segments: tuple[tuple[int, int], ...]) -> tuple[Tensor, int]:
    """Each block's row when the segments are put one after the other, and the number of rows."""
    firsts = torch.tensor([first for first, _ in segments])
    lengths = torch.tensor([stop - first for first, stop in segments])
    inside = torch.searchsorted(firsts, blocks, right=True) - 1
    return blocks - firsts[inside] + (lengths.cumsum(0) - lengths)[inside], int(lengths.sum())


def _orders(
    rows: Tensor, owners: Tensor, starts: Tensor, counts: Tensor, total: int, num_heads: int
) -> tuple[Tensor, Tensor]:
    """Between pool order [row, head] and reading order [sequence, head, block]; shorter sequences are padded."""
    longest, head = int(counts.max()), torch.arange(num_heads)
    place = torch.arange(len(rows)) - starts[owners]  # which block of its sequence
    padded = torch.zeros(len(counts), longest, dtype=torch.int64)
    padded[owners, place] = rows
    to_reading = (padded[:, None, :] * num_heads + head[:, None]).flatten()
    to_pool = torch.zeros(total, num_heads, dtype=torch.int64)
    to_pool[rows] = (owners[:, None] * num_heads + head) * longest + place[:, None]
    return to_reading, to_pool.flatten()


def _hidden(
    firsts: Sequence[int], kv_lens: Sequence[int], longest: int, layout: Layout, window: int | None
) -> Tensor | None:
    lens, start = torch.tensor(kv_lens)[:, None], torch.tensor(firsts)[:, None] * layout.read_size
    position = start + torch.arange(longest * layout.read_size)
    hidden = position >= lens
    if window is not None:
        hidden |= position < lens - window
    found = hidden[:, None].expand(-1, layout.num_heads, -1).flatten().nonzero().flatten()
    return found if len(found) else None


def _tails(rows: Tensor, places: Tensor, kv_lens: Sequence[int], layout: Layout) -> tuple[Tensor, Tensor] | None:
    filled = torch.tensor([(n - 1) % layout.read_size + 1 for n in kv_lens])
    which = (filled < layout.read_size).nonzero().flatten()
    if not len(which):
        return None
    slot = torch.minimum(torch.arange(layout.read_size), filled[which, None, None] - 1)
    block_and_head = places[which, None, None] * layout.num_kv_heads + torch.arange(layout.num_kv_heads)[:, None]
    return rows[which], (block_and_head * layout.read_size + slot).flatten()

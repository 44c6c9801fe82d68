"""How a CPU reads the blocks of a decode step where they lie: which rows go where, worked out once for all layers.

Copying scattered blocks together costs as much as multiplying them. So Keys and Values stay, and the small things
travel: every block gets its sequence's Query, the scores are sorted into reading order for the softmax and back.

    pool         . . 8 1 . 6 3        only blocks 2..6 of this picture are read: one segment
    pool order   scores of one block after the other, as they lie
    reading order   [sequence, head, block, slot]: what the softmax runs over

Blocks of nobody between a batch's blocks are multiplied too and their results are dropped; where gaps are long or the
blocks are few and far between, segments split or the blocks are copied after all.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

# A gap of fewer blocks is read over: a product on a further segment costs about as much (2 cores, blocks of 16).
MAX_GAP = 16
# Reading a block of nobody costs one block; copying an owned one costs two and a half. With more waste, copy.
MAX_READ_PER_OWNED = 2.0
MAX_SEGMENTS = 16


@dataclass(frozen=True)
class DecodePlan:
    """One decode step's reading, for every layer with the same window.

    Attributes:
        segments: (first, last + 1) block ids that are multiplied in place, in rising order; empty if blocks are copied.
        copied: int64 [rows], the blocks to copy together if there are no segments.
        owner: int64 [rows], for each block in pool order the sequence whose Query it meets.
        to_reading: int64 [num_seqs * num_heads * max_blocks], rows of scores in pool order, sorted into reading order.
        to_pool: int64 [rows * num_heads], the way back.
        hidden: bool [num_seqs, 1, max_blocks * block_size], slots that the sequence's Query does not see, or None.
        bags: int32, rows of each sequence one after the other, and where each begins: for the sum over blocks.
        tails: the last blocks that have unfilled slots: rows in pool order, block ids, and bool [tails, 1, block_size,
            1] of those slots; None if every last block is full.
    """

    segments: tuple[tuple[int, int], ...]
    copied: Tensor
    owner: Tensor
    to_reading: Tensor
    to_pool: Tensor
    hidden: Tensor | None
    bags: tuple[Tensor, Tensor]
    tails: tuple[Tensor, Tensor, Tensor] | None

    @property
    def rows(self) -> int:
        """Blocks that are multiplied."""
        return self.owner.shape[0]


def plan_decode(
    tables: Sequence[Sequence[int]], kv_lens: Sequence[int], block_size: int, num_heads: int, window: int | None
) -> DecodePlan:
    """Plan one decode step.

    Args:
        tables: each sequence's block ids in order; more than its Keys need are ignored.
        kv_lens: Keys of each sequence, at least 1.
        block_size: slots in a block.
        num_heads: Query heads.
        window: Keys that a Query sees at most; None for all.
    """
    firsts = [0 if window is None else max(0, n - window) // block_size for n in kv_lens]
    read = [list(table[f : -(-n // block_size)]) for table, f, n in zip(tables, firsts, kv_lens, strict=True)]
    blocks = torch.tensor([block for table in read for block in table])
    counts = torch.tensor([len(table) for table in read])
    owners = torch.arange(len(read)).repeat_interleave(counts)
    segments = _segments(blocks)
    if segments:
        bases = torch.tensor([first for first, _ in segments])
        ends = torch.tensor([stop - first for first, stop in segments]).cumsum(0)
        inside = torch.searchsorted(bases, blocks, right=True) - 1
        rows = blocks - bases[inside] + (ends - (ends.diff(prepend=ends.new_zeros(1))))[inside]
        total = int(ends[-1])
    else:
        rows, total = torch.arange(len(blocks)), len(blocks)
    owner = torch.zeros(total, dtype=torch.int64)
    owner[rows] = owners
    starts = counts.cumsum(0) - counts
    to_reading, to_pool = _orders(rows, owners, starts, counts, total, num_heads)
    offsets = starts.to(torch.int32)
    return DecodePlan(
        segments=segments,
        copied=blocks if not segments else blocks[:0],
        owner=owner,
        to_reading=to_reading,
        to_pool=to_pool,
        hidden=_hidden(firsts, kv_lens, int(counts.max()), block_size, window),
        bags=(rows.to(torch.int32), offsets),
        tails=_tails(read, rows, starts, counts, kv_lens, block_size),
    )


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


def _orders(
    rows: Tensor, owners: Tensor, starts: Tensor, counts: Tensor, total: int, num_heads: int
) -> tuple[Tensor, Tensor]:
    """Between pool order [row, head] and reading order [sequence, head, block]; shorter sequences are padded."""
    num_seqs, longest, head = len(counts), int(counts.max()), torch.arange(num_heads)
    place = torch.arange(len(rows)) - starts[owners]  # which block of its sequence
    padded = torch.zeros(num_seqs, longest, dtype=torch.int64)
    padded[owners, place] = rows
    to_reading = (padded[:, None, :] * num_heads + head[:, None]).flatten()
    to_pool = torch.zeros(total, num_heads, dtype=torch.int64)
    to_pool[rows] = (owners[:, None] * num_heads + head) * longest + place[:, None]
    return to_reading, to_pool.flatten()


def _hidden(
    firsts: Sequence[int], kv_lens: Sequence[int], longest: int, block_size: int, window: int | None
) -> Tensor | None:
    lens, start = torch.tensor(kv_lens)[:, None], torch.tensor(firsts)[:, None] * block_size
    position = start + torch.arange(longest * block_size)
    hidden = position >= lens
    if window is not None:
        hidden |= position < lens - window
    return hidden[:, None] if bool(hidden.any()) else None


def _tails(
    read: Sequence[Sequence[int]], rows: Tensor, starts: Tensor, counts: Tensor, kv_lens: Sequence[int], block_size: int
) -> tuple[Tensor, Tensor, Tensor] | None:
    filled = torch.tensor([(n - 1) % block_size + 1 for n in kv_lens])
    which = (filled < block_size).nonzero().flatten()
    if not len(which):
        return None
    last = torch.tensor([table[-1] for table in read])[which]
    unfilled = torch.arange(block_size) >= filled[which, None]
    return rows[(starts + counts - 1)[which]], last, unfilled[:, None, :, None]

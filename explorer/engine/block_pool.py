"""Who owns which block: block tables, reference counts and the list of free blocks. No tensor is touched here.

    block table of A   8 1 6          three logical blocks, anywhere in the pool
    block table of B   8 3            begins as A does: block 8 is shared, its reference count is 2

A sequence gets a block when its next token does not fit into the ones it has. A fork shares all blocks of its parent.
Full blocks stay shared for good; whoever writes into a shared block that is not full gets a copy of it first
(copy-on-write), so the last holder writes in place.
Source: Kwon et al. 2023 (vLLM), arXiv:2309.06180, sections 4.2 to 4.4.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from explorer.errors import InputError, ResourceError


class BlockPool:
    """Fixed-size blocks, given out one by one and taken back.

    Args:
        num_blocks: blocks in the pool.
        block_size: tokens in a block.
        order: block ids in the order in which they are first given out; lowest first if None. What comes back later
            is given out first.
        run: blocks are best used in aligned runs of so many neighbours: a sequence gets the neighbour of its last
            block while that is free, then a run of its own, then any. 1 for no preference.

    Attributes:
        tables: each sequence's blocks, in order.
        num_tokens: each sequence's tokens.
        ref_counts: for each block, the tables that it is in.
        free_blocks: blocks of nobody; the last one is given out next.

    Raises:
        InputError: a pool without blocks or with an impossible block size.
    """

    def __init__(self, num_blocks: int, block_size: int = 16, order: Sequence[int] | None = None, run: int = 1):
        if num_blocks < 1 or not 1 <= block_size <= 1024:
            raise InputError(
                f"num_blocks={num_blocks}, block_size={block_size}: expected at least 1 block of 1 to 1024 tokens",
                f"num_blocks={num_blocks},block_size={block_size}：应至少有 1 个 block，每个 1 到 1024 个 token",
            )
        ids = list(range(num_blocks)) if order is None else list(order)
        if sorted(ids) != list(range(num_blocks)):
            raise InputError(
                f"order: expected each of 0 to {num_blocks - 1} once", f"order：0 到 {num_blocks - 1} 应各出现一次"
            )
        self.num_blocks, self.block_size, self.run = num_blocks, block_size, run
        self.free_blocks = ids[::-1]
        self.tables: dict[int, list[int]] = {}
        self.num_tokens: dict[int, int] = {}
        self.ref_counts = [0] * num_blocks

    @property
    def num_free(self) -> int:
        """Blocks of nobody."""
        return len(self.free_blocks)

    @property
    def num_used(self) -> int:
        """Blocks that are in at least one table; a shared one counts once."""
        return sum(count > 0 for count in self.ref_counts)

    @property
    def num_shared(self) -> int:
        """Blocks that are in more than one table."""
        return sum(count > 1 for count in self.ref_counts)

    @property
    def unfilled_slots(self) -> int:
        """Slots of used blocks in which no token lies: the tails of last blocks; a shared tail counts once."""
        filled: dict[int, int] = {}
        for seq_id, table in self.tables.items():
            for i, block in enumerate(table):
                inside = min(self.block_size, self.num_tokens[seq_id] - i * self.block_size)
                filled[block] = max(filled.get(block, 0), inside)
        return self.num_used * self.block_size - sum(filled.values())

    def missing(self, wants: Mapping[int, int]) -> int:
        """Free blocks that `append(wants)` would take, copies included."""
        held = Counter[int]()  # copies that the sequences before have made of a shared block
        count = 0
        for seq_id, new in wants.items():
            table, have = self.tables.get(seq_id, []), self.num_tokens.get(seq_id, 0)
            count += -(-(have + new) // self.block_size) - len(table)
            if new and have % self.block_size and self.ref_counts[table[-1]] - held[table[-1]] > 1:
                held[table[-1]] += 1
                count += 1
        return count

    def append(self, wants: Mapping[int, int]) -> list[tuple[int, int]]:
        """Make room for new tokens of several sequences, in this order; unknown ids start new sequences.

        Args:
            wants: new tokens by sequence, each at least 0.

        Returns:
            (source, destination) blocks to copy before the tokens are written; sources may be written to right after.

        Raises:
            ResourceError: there are not enough free blocks; nothing has changed then.
        """
        need = self.missing(wants)
        if need > self.num_free:
            raise ResourceError(
                f"{need} blocks are needed and {self.num_free} are free; free a sequence first",
                f"需要 {need} 个 block，但只剩 {self.num_free} 个；请先释放一个序列",
            )
        copies = []
        for seq_id, new in wants.items():
            table, have = self.tables.setdefault(seq_id, []), self.num_tokens.get(seq_id, 0)
            if new and have % self.block_size and self.ref_counts[table[-1]] > 1:
                copies.append(self._split(table))
            count = -(-(have + new) // self.block_size) - len(table)
            table.extend(self._take(table[-1] if table else None, count))
            self.num_tokens[seq_id] = have + new
        return copies

    def fork(self, parent: int, child: int) -> None:
        """Start `child` as a second holder of everything that `parent` has.

        Raises:
            InputError: there is no such parent, or the child exists.
        """
        if parent not in self.tables or child in self.tables:
            raise InputError(
                f"fork({parent}, {child}): expected a sequence that exists and an id that does not",
                f"fork({parent}, {child})：前者应已存在，后者应尚未使用",
            )
        self.tables[child] = list(self.tables[parent])
        self.num_tokens[child] = self.num_tokens[parent]
        for block in self.tables[child]:
            self.ref_counts[block] += 1

    def free(self, seq_id: int) -> None:
        """Forget a sequence; blocks that nobody else holds become free. Unknown ids are let pass."""
        self.num_tokens.pop(seq_id, None)
        self._release(self.tables.pop(seq_id, []))

    def truncate(self, seq_id: int, num_tokens: int) -> None:
        """Keep the first `num_tokens` tokens of a sequence; blocks behind them are given back.

        Raises:
            InputError: the sequence has fewer.
        """
        have = self.num_tokens.get(seq_id, 0)
        if not 0 <= num_tokens <= have:
            raise InputError(f"kv_len={num_tokens}: expected 0 to {have}", f"kv_len={num_tokens}：应为 0 到 {have}")
        if seq_id in self.tables:
            table, keep = self.tables[seq_id], -(-num_tokens // self.block_size)
            self._release(table[keep:])
            del table[keep:]
            self.num_tokens[seq_id] = num_tokens

    def check_invariants(self) -> None:
        """Every block is free once or held as often as its reference count says, and tables fit their tokens.

        Raises:
            AssertionError: something was lost or held twice.
        """
        held = Counter(block for table in self.tables.values() for block in table)
        assert [held[block] for block in range(self.num_blocks)] == self.ref_counts, "a reference count is wrong"
        assert sorted([*self.free_blocks, *held]) == list(range(self.num_blocks)), "a block is lost or held twice"
        for seq_id, table in self.tables.items():
            want = -(-self.num_tokens[seq_id] // self.block_size)
            assert len(table) == want == len(set(table)), f"sequence {seq_id}: its table does not fit its tokens"

    def _split(self, table: list[int]) -> tuple[int, int]:
        """Give the table a block of its own instead of its shared last one."""
        source = table[-1]
        (destination,) = self._take(table[-2] if len(table) > 1 else None, 1)
        self.ref_counts[source] -= 1
        table[-1] = destination
        return source, destination

    def _take(self, last: int | None, count: int) -> list[int]:
        """`count` free blocks to follow block `last`."""
        if count <= 0:
            return []
        taken = [self.free_blocks.pop() for _ in range(count)] if self.run == 1 else self._neighbours(last, count)
        for block in taken:
            self.ref_counts[block] = 1
        return taken

    def _neighbours(self, last: int | None, count: int) -> list[int]:
        taken: list[int] = []
        for _ in range(count):
            following = -1 if last is None or (last + 1) % self.run == 0 else last + 1
            last = following if 0 <= following < self.num_blocks and not self.ref_counts[following] else self._whole()
            # The rests of runs that were begun lie near the end, where a search is short.
            at = len(self.free_blocks) - 1
            while self.free_blocks[at] != last:
                at -= 1
            del self.free_blocks[at]
            self.ref_counts[last] = 1
            taken.append(last)
        return taken

    def _whole(self) -> int:
        """The first free block that begins a run of free ones; the first free one if there is none."""
        for block in reversed(self.free_blocks):
            fits = block % self.run == 0 and block + self.run <= self.num_blocks
            if fits and not any(self.ref_counts[block : block + self.run]):
                return block
        return self.free_blocks[-1]

    def _release(self, blocks: Sequence[int]) -> None:
        """One holder less for each block; the first of those that become free is given out next."""
        for block in reversed(blocks):
            self.ref_counts[block] -= 1
            if self.ref_counts[block] == 0:
                self.free_blocks.append(block)

"""The other way to keep a cache: one contiguous piece for each request, as long as the request may ever become.

    |AAAAaaaa--------|BBb-----|........|CCCCCCcc|.....|
     used, reserved, internal   hole              hole

The allocator cannot know when a request will end, so it reserves for the longest answer that is allowed. What that
costs has three names: slots that will still be filled (reserved), slots that never will because the request ends
earlier (internal), and holes between requests that are too small for the next one (external).
Source: Kwon et al. 2023 (vLLM), arXiv:2309.06180, section 3.1.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from explorer.errors import InputError, ResourceError


@dataclass(frozen=True)
class Row:
    """One request's place.

    Attributes:
        first: its first slot.
        length: slots reserved for it.
    """

    first: int
    length: int


@dataclass(frozen=True)
class Waste:
    """Where all slots of a pool went; the five add up to it.

    Attributes:
        used: hold a token.
        reserved: will hold one before their request ends.
        internal: reserved, and never filled.
        external: free, in holes too small for one more request.
        free: the other free slots.
    """

    used: int
    reserved: int
    internal: int
    external: int
    free: int


class ReservationPool:
    """Slots reserved in one piece for each request, in the first hole that is large enough.

    Args:
        num_slots: tokens that fit in all.

    Attributes:
        rows: each request's place.
        num_tokens: tokens that each request has.

    Raises:
        InputError: a pool without slots.
    """

    def __init__(self, num_slots: int):
        if num_slots < 1:
            raise InputError(f"num_slots={num_slots}: expected at least 1", f"num_slots={num_slots}：应至少为 1")
        self.num_slots = num_slots
        self.rows: dict[int, Row] = {}
        self.num_tokens: dict[int, int] = {}

    def holes(self) -> list[tuple[int, int]]:
        """(first slot, length) of every free piece, in order."""
        found, at = [], 0
        for row in sorted(self.rows.values(), key=lambda row: row.first):
            if row.first > at:
                found.append((at, row.first - at))
            at = row.first + row.length
        return [*found, (at, self.num_slots - at)] if at < self.num_slots else found

    def reserve(self, seq_id: int, max_tokens: int) -> Row:
        """Find room for a new request.

        Args:
            seq_id: an id that is not in use.
            max_tokens: tokens that it may become.

        Raises:
            InputError: the id is in use or the length makes no sense.
            ResourceError: no hole is large enough; nothing has changed then.
        """
        if seq_id in self.rows or max_tokens < 1:
            raise InputError(
                f"reserve({seq_id}, {max_tokens}): expected a new id and at least 1 token",
                f"reserve({seq_id}, {max_tokens})：编号应尚未使用，且至少 1 个 token",
            )
        holes = self.holes()
        for first, length in holes:
            if length >= max_tokens:
                self.rows[seq_id] = Row(first, max_tokens)
                self.num_tokens[seq_id] = 0
                return self.rows[seq_id]
        free, largest = sum(length for _, length in holes), max((length for _, length in holes), default=0)
        raise ResourceError(
            f"{max_tokens:,} slots in one piece are needed; {free:,} are free, the largest hole has {largest:,}",
            f"需要连续的 {max_tokens:,} 个槽位；空闲共 {free:,} 个，最大的空洞只有 {largest:,} 个",
        )

    def append(self, seq_id: int, new_tokens: int) -> None:
        """Fill the request's next slots.

        Raises:
            InputError: there is no such request.
            ResourceError: its reservation ends before; nothing has changed then.
        """
        if seq_id not in self.rows or new_tokens < 0:
            raise InputError(
                f"append({seq_id}, {new_tokens}): expected a request that has a place, and 0 tokens or more",
                f"append({seq_id}, {new_tokens})：请求应已有位置，token 数应不小于 0",
            )
        length = self.rows[seq_id].length
        if self.num_tokens[seq_id] + new_tokens > length:
            raise ResourceError(
                f"request {seq_id} has {length:,} slots; {self.num_tokens[seq_id] + new_tokens:,} were asked for",
                f"请求 {seq_id} 只有 {length:,} 个槽位；需要 {self.num_tokens[seq_id] + new_tokens:,} 个",
            )
        self.num_tokens[seq_id] += new_tokens

    def free(self, seq_id: int) -> None:
        """Give a request's piece back. Unknown ids are let pass."""
        self.rows.pop(seq_id, None)
        self.num_tokens.pop(seq_id, None)

    def check_invariants(self) -> None:
        """No two pieces overlap, none reaches beyond the pool, no request has more tokens than slots.

        Raises:
            AssertionError: one of them does.
        """
        at = 0
        for seq_id, row in sorted(self.rows.items(), key=lambda item: item[1].first):
            assert row.first >= at, f"request {seq_id} overlaps the one before it"
            assert 0 <= self.num_tokens[seq_id] <= row.length, f"request {seq_id} has more tokens than slots"
            at = row.first + row.length
        assert at <= self.num_slots, "a piece reaches beyond the pool"


def waste(pool: ReservationPool, final_tokens: Mapping[int, int], max_tokens: int) -> Waste:
    """Sort all slots of a pool.

    Args:
        pool: as it is now.
        final_tokens: for each request the tokens it will have when it ends, which only hindsight knows.
        max_tokens: slots that the next request would need in one piece.
    """
    used = sum(pool.num_tokens.values())
    will = sum(max(final_tokens[seq_id], have) for seq_id, have in pool.num_tokens.items())
    length = sum(row.length for row in pool.rows.values())
    holes = [length for _, length in pool.holes()]
    external = sum(hole for hole in holes if hole < max_tokens)
    return Waste(used, will - used, length - will, external, sum(holes) - external)

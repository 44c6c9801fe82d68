"""The same queue of requests served from the same memory, once with contiguous reservation and once with blocks.

Time goes in steps: a step admits waiting requests in order while there is room, gives every running request one more
token, and takes back the room of those that have ended. No arithmetic of a model is done here; what is tested is room.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from explorer.engine.block_pool import BlockPool
from explorer.engine.reservation import ReservationPool, Waste, waste
from explorer.errors import ResourceError
from explorer.labs._requests import Request


@dataclass(frozen=True)
class Moment:
    """Memory after one step, before ended requests leave.

    Attributes:
        used: slots that hold a token.
        taken: slots that no other request could get.
        running: requests being served.
        waiting: requests in the queue.
        waste: contiguous reservation: where all slots went; None for blocks.
        preempted: requests sent back to the queue so far, for want of a block.
    """

    used: int
    taken: int
    running: int
    waiting: int
    waste: Waste | None = None
    preempted: int = 0


def serve_contiguous(requests: Sequence[Request], num_slots: int, reserved: Sequence[int]) -> Iterator[Moment]:
    """Every request gets its slots in one piece, first fit. A hole is too small if the next in the queue does not fit.

    Args:
        requests: in the order in which they wait.
        num_slots: the memory, in tokens.
        reserved: slots for each request, at least its final length and at most `num_slots`.
    """
    pool, waiting = ReservationPool(num_slots), deque(range(len(requests)))
    final = {i: request.final for i, request in enumerate(requests)}
    while waiting or pool.rows:
        for seq_id in pool.num_tokens:
            pool.append(seq_id, 1)
        while waiting:
            try:
                pool.reserve(waiting[0], reserved[waiting[0]])
            except ResourceError:
                break
            pool.append(waiting[0], requests[waiting.popleft()].prompt)
        found = waste(pool, {i: final[i] for i in pool.rows}, reserved[waiting[0]] if waiting else 1)
        yield Moment(found.used, sum(row.length for row in pool.rows.values()), len(pool.rows), len(waiting), found)
        for seq_id in [i for i, have in pool.num_tokens.items() if have >= final[i]]:
            pool.free(seq_id)


def serve_paged(requests: Sequence[Request], num_blocks: int, block_size: int) -> Iterator[Moment]:
    """Every request gets blocks as it grows; if none is left, the youngest is sent back and starts again later.

    Args:
        requests: in the order in which they wait; each fits into the whole pool.
        num_blocks: the memory, in blocks.
        block_size: tokens in a block.
    """
    pool, waiting, preempted = BlockPool(num_blocks, block_size), deque(range(len(requests))), 0
    final = {i: request.final for i, request in enumerate(requests)}
    grown: dict[int, int] = {}  # tokens that a request sent back must be given at once: its prompt and what it had said
    while waiting or pool.tables:
        while pool.missing(dict.fromkeys(pool.tables, 1)) > pool.num_free:
            youngest = max(pool.tables)
            grown[youngest] = pool.num_tokens[youngest]
            pool.free(youngest)
            waiting.appendleft(youngest)
            preempted += 1
        pool.append(dict.fromkeys(pool.tables, 1))
        while waiting:
            first = waiting[0]
            try:
                pool.append({first: grown.get(first, requests[first].prompt)})
            except ResourceError:
                break
            waiting.popleft()
        used, taken = sum(pool.num_tokens.values()), pool.num_used * block_size
        yield Moment(used, taken, len(pool.tables), len(waiting), None, preempted)
        for seq_id in [i for i, have in pool.num_tokens.items() if have >= final[i]]:
            pool.free(seq_id)

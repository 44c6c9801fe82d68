"""Two servers that get the same requests: one keeps their caches in blocks, the other each in one reserved piece.

Both serve who came first. A request that finds no room waits in line and starts when room appears; nobody overtakes.
What happened is told as events, plain lists that the browser turns into sentences.
"""

from dataclasses import dataclass, field
from typing import Any, Protocol

from explorer.engine.block_pool import BlockPool
from explorer.engine.reservation import ReservationPool
from explorer.errors import ResourceError

Event = list[Any]


@dataclass(frozen=True)
class Request:
    """What is known of a request, by hindsight.

    Attributes:
        limit: tokens that it may become; the server knows.
        final: tokens that it will have when it stops by itself; the server does not know.
    """

    limit: int
    final: int


class Room(Protocol):
    """Memory that takes requests in: blocks, or pieces."""

    def num_tokens(self) -> dict[int, int]:
        """Tokens of each running request."""

    def start(self, request: int, tokens: int, limit: int) -> Event:
        """Take a request in and tell what it got; ResourceError if there is no room."""

    def grow(self, request: int, tokens: int) -> list[Event]:
        """Add tokens to a running request; ResourceError if there is no room."""

    def release(self, request: int) -> int:
        """Give back what a request holds; how much became free."""


class Blocks:
    """A block pool as room."""

    def __init__(self, pool: BlockPool) -> None:
        self.pool = pool
        self.copies: list[tuple[int, int]] = []

    def num_tokens(self) -> dict[int, int]:
        """Tokens of each running request."""
        return self.pool.num_tokens

    def start(self, request: int, tokens: int, limit: int) -> Event:
        """Blocks for the prompt, none for what may follow."""
        del limit
        self.pool.append({request: tokens})
        return ["got", request, tokens, list(self.pool.tables[request])]

    def grow(self, request: int, tokens: int) -> list[Event]:
        """New blocks where the last one is full, a copy where it is shared."""
        before = len(self.pool.tables[request])
        copies = self.pool.append({request: tokens})
        self.copies += copies
        told: list[Event] = [["copy", request, source, target] for source, target in copies]
        fresh = self.pool.tables[request][before:]
        return [*told, ["more", request, fresh]] if fresh else told

    def release(self, request: int) -> int:
        """Blocks that nobody else holds go back."""
        before = self.pool.num_free
        self.pool.free(request)
        return self.pool.num_free - before


class Pieces:
    """A reservation pool as room."""

    def __init__(self, pool: ReservationPool) -> None:
        self.pool = pool

    def num_tokens(self) -> dict[int, int]:
        """Tokens of each running request."""
        return self.pool.num_tokens

    def start(self, request: int, tokens: int, limit: int) -> Event:
        """A piece for the longest that it may become."""
        row = self.pool.reserve(request, limit)
        self.pool.append(request, tokens)
        return ["got", request, tokens, [row.first, row.first + row.length - 1]]

    def grow(self, request: int, tokens: int) -> list[Event]:
        """Always fits: the piece was reserved."""
        self.pool.append(request, tokens)
        return []

    def release(self, request: int) -> int:
        """The whole piece goes back."""
        length = self.pool.rows[request].length
        self.pool.free(request)
        return length


@dataclass
class Server:
    """One of the two.

    Attributes:
        room: its memory.
        requests: all requests, shared by both servers.
        waiting: tokens of each request that waits for room, first come first.
        events: what happened during the last action.
        generated: tokens decoded so far.
        ended: requests that reached their end by themselves.
    """

    room: Room
    requests: dict[int, Request]
    waiting: dict[int, int] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    generated: int = 0
    ended: int = 0

    def holds(self, request: int) -> bool:
        """Whether it runs or waits here."""
        return request in self.room.num_tokens() or request in self.waiting

    def tokens(self, request: int) -> int | None:
        """Tokens of a request that runs or waits here."""
        return self.room.num_tokens().get(request, self.waiting.get(request))

    def arrive(self, request: int, tokens: int) -> None:
        """Start a request, or put it at the end of the line."""
        self.waiting[request] = tokens
        self._admit()
        if request in self.waiting:
            self.events.append(["wait", request, tokens])

    def decode(self, request: int, tokens: int) -> None:
        """Add tokens to a running request, up to its end; none if not all of them find room."""
        have = self.room.num_tokens().get(request)
        if have is None:
            return
        tokens = min(tokens, self.requests[request].final - have)
        try:
            self.events += self.room.grow(request, tokens)
        except ResourceError:
            self.events.append(["full", request])
            return
        self.generated += tokens

    def settle(self) -> None:
        """End the requests that have reached their end and let waiting ones in."""
        for request, have in list(self.room.num_tokens().items()):
            if have >= self.requests[request].final:
                self.events.append(["end", request, self.room.release(request)])
                self.ended += 1
        self._admit()

    def finish(self, request: int) -> None:
        """End a request early, or take it out of the line."""
        if request in self.room.num_tokens():
            self.events.append(["stop", request, self.room.release(request)])
        elif self.waiting.pop(request, None) is not None:
            self.events.append(["leave", request])
        self._admit()

    def _admit(self) -> None:
        for request, tokens in list(self.waiting.items()):
            try:
                told = self.room.start(request, tokens, self.requests[request].limit)
            except ResourceError:
                return
            del self.waiting[request]
            self.events.append(told)

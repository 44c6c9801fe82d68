"""Replays what a reader did on both allocators, from nothing: the server keeps no state of any visitor.

`play({"actions": [...], "from": i, "to": k})` answers with the states after the first i, i + 1, ... k actions.
"""

import logging
from collections.abc import Callable
from typing import Any

from explorer.engine.block_pool import BlockPool
from explorer.engine.reservation import ReservationPool, waste
from explorer.errors import ExplorerError, InputError
from explorer.specs.limits import short
from explorer.text import Lang, Text
from pages.paged_attention_actions import LIMITS, Action, read_actions
from pages.paged_attention_schemes import Blocks, Pieces, Request, Server

NUM_BLOCKS, BLOCK_SIZE = 12, 16
# A takes 8 and 1, B takes 0 and 3, A then takes 6; the rest in no order, as in a pool that has been used for a while.
ORDER = (8, 1, 0, 3, 6, 10, 4, 11, 2, 9, 5, 7)
SCRIPT: list[list[Any]] = [["new", 28, 64, 45], ["new", 24, 48, 30], ["grow", 0, 6]]
MAX_LIVE = 12  # requests that run or wait at once; a branch costs no block, so blocks alone would set no bound
MAX_STATES = 64  # in one answer

BROKEN = Text("This could not be replayed; the log says why.", "无法重放；原因见日志。")
_log = logging.getLogger(__name__)
State = dict[str, Any]


class Play:
    """Both servers and all requests; `do` takes one action."""

    def __init__(self) -> None:
        self.requests: dict[int, Request] = {}
        self.pool, self.pieces = BlockPool(NUM_BLOCKS, BLOCK_SIZE, ORDER), ReservationPool(NUM_BLOCKS * BLOCK_SIZE)
        self.blocks = Blocks(self.pool)
        self.paged, self.reserved = Server(self.blocks, self.requests), Server(Pieces(self.pieces), self.requests)
        self.refused: str | None = None

    def do(self, action: Action) -> None:
        """One action on both servers; one that makes no sense any more is refused and changes nothing."""
        self.blocks.copies = []
        for server in (self.paged, self.reserved):
            server.events = []
        self.refused = self._refusal(action)
        if action.kind in ("new", "fork"):
            self._give_birth(action)
        if self.refused:
            return
        if action.kind == "step":
            for server in (self.paged, self.reserved):
                for request in list(server.room.num_tokens()):
                    server.decode(request, 1)
                server.settle()
        elif action.kind == "grow":
            for server in (self.paged, self.reserved):
                server.decode(action.request, action.tokens)
                server.settle()
        elif action.kind == "finish":
            self.paged.finish(action.request)
            self.reserved.finish(action.request)
        self.pool.check_invariants()
        self.pieces.check_invariants()

    def live(self) -> list[int]:
        """Requests that run or wait on at least one of the two."""
        return [each for each in self.requests if self.paged.holds(each) or self.reserved.holds(each)]

    def _refusal(self, action: Action) -> str | None:
        if action.kind == "step":
            return None if self.live() else "nobody"
        if action.kind in ("new", "fork") and len(self.live()) >= MAX_LIVE:
            return "many"
        if action.kind == "fork":
            return None if action.request in self.pool.tables else "not-running"
        if action.kind in ("grow", "finish") and action.request not in self.live():
            return "gone"
        return None

    def _give_birth(self, action: Action) -> None:
        # A refused birth takes a number too: the browser counts births without knowing which are refused.
        child = len(self.requests)
        parent = self.requests.get(action.request)
        self.requests[child] = parent if action.kind == "fork" and parent else Request(action.limit, action.final)
        if self.refused:
            return
        if action.kind == "new":
            self.paged.arrive(child, action.tokens)
            self.reserved.arrive(child, action.tokens)
            return
        tokens = self.pool.num_tokens[action.request]
        self.pool.fork(action.request, child)
        self.paged.events.append(["share", child, action.request, list(self.pool.tables[child])])
        # One piece cannot be held by two: the branch needs a second one and a copy of all tokens.
        here = self.reserved.tokens(action.request)
        self.reserved.arrive(child, tokens if here is None else here)


def replay(actions: list[Action], first: int = 0) -> list[State]:
    """The states after the first `first`, `first` + 1, ... all actions."""
    play = Play()
    states = [state(play)] if first == 0 else []
    for count, action in enumerate(actions, 1):
        play.do(action)
        if count >= first:
            states.append(state(play))
    return states


def state(play: Play) -> State:
    """Everything that the page draws, as JSON: hence keys that are text."""
    pool, pieces = play.pool, play.pieces
    final = {seq: request.final for seq, request in play.requests.items()}
    spent = {limit: waste(pieces, final, limit) for limit in LIMITS}
    return {
        "refused": play.refused,
        "requests": {str(seq): [play.requests[seq].limit, play.requests[seq].final] for seq in play.live()},
        "paged": {
            "tables": {str(seq): list(table) for seq, table in pool.tables.items()},
            "tokens": {str(seq): tokens for seq, tokens in pool.num_tokens.items()},
            "refs": list(pool.ref_counts),
            "free": pool.num_free,
            "used": pool.num_used,
            "shared": pool.num_shared,
            "unfilled": pool.unfilled_slots,
            "copies": [list(pair) for pair in play.blocks.copies],
            **_served(play.paged),
        },
        "reserved": {
            "rows": {str(seq): [row.first, row.length] for seq, row in pieces.rows.items()},
            "tokens": {str(seq): tokens for seq, tokens in pieces.num_tokens.items()},
            "holes": [list(hole) for hole in pieces.holes()],
            "waste": {
                str(limit): [each.used, each.reserved, each.internal, each.external, each.free]
                for limit, each in spent.items()
            },
            **_served(play.reserved),
        },
    }


def _served(server: Server) -> State:
    return {
        "waiting": [[seq, tokens] for seq, tokens in server.waiting.items()],
        "events": server.events,
        "generated": server.generated,
        "ended": server.ended,
    }


def answers(lang: Lang) -> list[Callable[..., Any]]:
    """`play`, with its error lines in `lang`."""

    def play(question: Any) -> dict[str, Any]:
        return answer(question, lang)

    return [play]


def answer(question: Any, lang: Lang) -> dict[str, Any]:
    """The states asked for, or one line that says what is wrong with the question."""
    try:
        return {"status": "ready", "states": _states(question)}
    except ExplorerError as error:
        return {"status": "error", "message": error.text.get(lang)}
    except Exception:
        _log.exception("actions could not be replayed")
        return {"status": "error", "message": BROKEN.get(lang)}


def _states(question: Any) -> list[State]:
    if not isinstance(question, dict):
        raise InputError("expected an object with actions", "应为包含 actions 的对象")
    actions = read_actions(question.get("actions"))
    last = _place(question, "to", len(actions), 0, len(actions))
    first = _place(question, "from", last, max(0, last - MAX_STATES + 1), last)
    return replay(actions[:last], first)


def _place(question: dict[str, Any], name: str, otherwise: int, low: int, high: int) -> int:
    value = question.get(name, otherwise)
    if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
        return value
    raise InputError(f"{name}={short(value)}: expected {low} to {high}", f"{name}={short(value)}：应为 {low} 到 {high}")

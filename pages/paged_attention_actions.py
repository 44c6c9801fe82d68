"""What a reader may do to the two allocators, as it comes from the browser: every value is checked here.

    ["new", prompt, limit, final]   a request arrives; it may become `limit` tokens and will stop at `final`
    ["grow", request, tokens]       one request decodes alone
    ["step"]                        every running request decodes one token
    ["fork", request]               a second answer goes on from here
    ["finish", request]             the request ends now

Requests are counted from 0 in the order in which they were born; a branch is a birth too.
"""

from dataclasses import dataclass
from typing import Any, Literal

from explorer.errors import InputError
from explorer.specs.limits import short

Kind = Literal["new", "grow", "step", "fork", "finish"]
MAX_ACTIONS = 400
LIMITS = (32, 48, 64, 96)
MIN_PROMPT, MAX_GROWTH = 1, 96
# How many numbers follow each kind.
_SIZES = {"new": 3, "grow": 2, "step": 0, "fork": 1, "finish": 1}


@dataclass(frozen=True)
class Action:
    """One thing done.

    Attributes:
        kind: what.
        request: whose; for "new" the number of the new request, for "step" -1.
        tokens: new tokens ("grow") or the prompt's ("new").
        limit: tokens that the request may become at most ("new").
        final: tokens that it will have when it stops by itself ("new").
    """

    kind: Kind
    request: int = -1
    tokens: int = 0
    limit: int = 0
    final: int = 0


def read_actions(raw: Any) -> list[Action]:
    """The actions of a list as sent.

    Raises:
        InputError: it is no list of actions, or too long.
    """
    if not isinstance(raw, list):
        raise InputError(f"actions={short(raw)}: expected a list", f"actions={short(raw)}：应为列表")
    if len(raw) > MAX_ACTIONS:
        raise InputError(
            f"{len(raw):,} actions: at most {MAX_ACTIONS} are replayed; start over",
            f"{len(raw):,} 个操作：最多重放 {MAX_ACTIONS} 个，请重新开始",
        )
    actions: list[Action] = []
    born = 0
    for at, item in enumerate(raw):
        actions.append(_read(item, at, born))
        born += actions[-1].kind in ("new", "fork")
    return actions


def _read(item: Any, at: int, born: int) -> Action:
    kind = item[0] if isinstance(item, list) and item else None
    if not isinstance(kind, str) or kind not in _SIZES or len(item) != 1 + _SIZES[kind]:
        names = ", ".join(_SIZES)
        raise InputError(
            f"action {at}: expected one of {names} with its numbers", f"操作 {at}：应为 {names} 之一及其数字"
        )
    numbers = item[1:]
    if kind == "step":
        return Action("step")
    if kind == "new":
        return _arrival(numbers, at, born)
    request = _whole(numbers[0], at, "request", 0, born - 1)
    if kind == "grow":
        return Action("grow", request, _whole(numbers[1], at, "tokens", 1, MAX_GROWTH))
    return Action("fork" if kind == "fork" else "finish", request)


def _arrival(numbers: list[Any], at: int, born: int) -> Action:
    limit = _whole(numbers[1], at, "limit", min(LIMITS), max(LIMITS))
    if limit not in LIMITS:
        raise InputError(
            f"action {at}: limit={limit} is none of {LIMITS}", f"操作 {at}：limit={limit} 不在 {LIMITS} 中"
        )
    prompt = _whole(numbers[0], at, "prompt", MIN_PROMPT, limit - 1)
    return Action("new", born, prompt, limit, _whole(numbers[2], at, "final", prompt + 1, limit))


def _whole(value: Any, at: int, name: str, low: int, high: int) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
        return value
    if high < low:
        raise InputError(f"action {at}: there is no request yet", f"操作 {at}：还没有请求")
    raise InputError(
        f"action {at}: {name}={short(value)}, expected {low} to {high}",
        f"操作 {at}：{name}={short(value)}，应为 {low} 到 {high}",
    )

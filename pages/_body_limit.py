"""No request may carry more than 1 MiB.

Gradio reads the whole body and parses its JSON before a handler of ours sees a value, so a limit inside a handler comes
too late. This ASGI middleware takes the body in first, at most `MAX_BODY` bytes of it, and hands it on whole; what is
larger is answered here. Nothing of ours needs more: a pasted config has 200,000 characters at most.
"""

import json
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY: Final = 1 << 20
# A refused body is read on and dropped, up to here: a connection closed on a client that is still sending would take
# the answer with it.
MAX_DROPPED: Final = 16 << 20
REFUSAL: Final = f"the request's body is larger than {MAX_BODY:,} bytes (1 MiB), the most that is read here"
_WITHOUT_BODY: Final = ("GET", "HEAD", "OPTIONS")  # no route reads one


class BodyLimit:
    """Answers 413 to a request whose body is larger than `MAX_BODY`; everything else passes."""

    def __init__(self, app: ASGIApp):
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take the body in and pass the request on, or refuse it."""
        if scope["type"] != "http" or scope["method"] in _WITHOUT_BODY:
            await self.app(scope, receive, send)
            return
        taken = await _take(receive, keep=_announced(scope) <= MAX_BODY)
        if taken is None:
            await _refuse(send)
        else:
            await self.app(scope, _Replayed(taken, receive), send)


def _announced(scope: Scope) -> int:
    """The body's length by its header; 0 where there is none that can be read: then it is counted as it comes."""
    length = dict(scope["headers"]).get(b"content-length", b"")
    return int(length) if length.isdigit() and len(length) < 20 else 0


async def _take(receive: Receive, keep: bool) -> list[Message] | None:
    """The request's messages until its body ends or its client leaves; None if the body is too large.

    Args:
        receive: gives the messages.
        keep: False if the body is known to be too large; then it is only read away.
    """
    taken: list[Message] = []
    count = 0
    while True:
        message = await receive()
        count += len(message.get("body", b""))
        keep = keep and count <= MAX_BODY
        if keep:
            taken.append(message)
        else:
            taken.clear()
        if not message.get("more_body", False) or count > MAX_DROPPED:
            return taken if keep else None


class _Replayed:
    """`receive` for the app behind: the messages that were taken in, then whatever else comes."""

    def __init__(self, taken: list[Message], receive: Receive):
        self._taken = taken[::-1]
        self._receive = receive

    async def __call__(self) -> Message:
        return self._taken.pop() if self._taken else await self._receive()


async def _refuse(send: Send) -> None:
    body = json.dumps({"error": REFUSAL}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),  # what is left of the body is no next request
    ]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": body})

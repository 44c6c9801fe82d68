"""What a request may carry: at most 1 MiB, announced or not; and that the site's own traffic goes through as before."""

import asyncio
import http.client
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import gradio as gr
import pytest
from gradio_client import Client
from starlette.types import Message

from explorer.text import Text
from pages import _api, _body_limit
from pages._body_limit import MAX_BODY, REFUSAL, BodyLimit
from pages._page import Ctx, Page
from pages._site import build_site, launch_options
from pages.cache_size_config import MAX_TEXT
from tests.browser.serving import free_port


class Behind:
    """An app that reads its body and echoes its length; remembers what it got."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.after: list[Message] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more and scope["type"] == "http":
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        self.bodies.append(body)
        self.after.append(await receive())
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"fine"})


def ask(app: Any, *chunks: bytes, length: bytes | None = None, method: str = "POST", kind: str = "http") -> Any:
    """What is sent back, and how many of the chunks were read."""
    messages: list[Message] = [
        {"type": "http.request", "body": chunk, "more_body": i < len(chunks) - 1} for i, chunk in enumerate(chunks)
    ]
    messages.append({"type": "http.disconnect"})
    headers = [] if length is None else [(b"content-length", length)]
    sent: list[Message] = []
    read = 0

    async def receive() -> Message:
        nonlocal read
        read += 1
        return messages[read - 1]

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(BodyLimit(app)({"type": kind, "method": method, "path": "/x", "headers": headers}, receive, send))
    return sent, read


def refused(sent: list[Message]) -> bool:
    if sent[0]["status"] != 413:
        return False
    headers = dict(sent[0]["headers"])
    assert headers[b"connection"] == b"close" and int(headers[b"content-length"]) == len(sent[1]["body"])
    assert json.loads(sent[1]["body"]) == {"error": REFUSAL} and "\n" not in REFUSAL and "1 MiB" in REFUSAL
    return True


@pytest.mark.parametrize("announced", [True, False])
def test_up_to_the_limit_the_body_comes_through_as_it_was(announced: bool) -> None:
    app, chunks = Behind(), (b"a" * (MAX_BODY - 3), b"", b"bcd")
    sent, _ = ask(app, *chunks, length=str(MAX_BODY).encode() if announced else None)
    assert sent[0]["status"] == 200 and app.bodies == [b"".join(chunks)]
    assert app.after == [{"type": "http.disconnect"}], "what comes after the body still reaches the app"


@pytest.mark.parametrize("length", [None, b"7", b"x", b""])
def test_one_byte_more_is_refused_though_the_header_does_not_say_so(length: bytes | None) -> None:
    app = Behind()
    sent, read = ask(app, b"a" * MAX_BODY, b"b", b"c", length=length)
    assert refused(sent) and not app.bodies and read == 3


def test_an_announced_giant_is_refused_and_read_away_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_body_limit, "MAX_DROPPED", 10)
    app = Behind()
    sent, read = ask(app, b"a" * 8, b"b" * 8, b"c" * 8, length=str(MAX_BODY + 1).encode())
    assert refused(sent) and not app.bodies and read == 2


def test_a_client_that_leaves_in_the_middle_is_told_to_the_app() -> None:
    messages: list[Message] = [
        {"type": "http.request", "body": b"half", "more_body": True},
        {"type": "http.disconnect"},
    ]
    waiting, seen = iter(messages), []

    async def behind(scope: Any, receive: Any, send: Any) -> None:
        seen.extend([await receive(), await receive()])

    async def receive() -> Message:
        return next(waiting)

    scope = {"type": "http", "method": "POST", "path": "/x", "headers": []}
    asyncio.run(BodyLimit(behind)(scope, receive, receive))  # type: ignore[arg-type]
    assert seen == messages


@pytest.mark.parametrize(("method", "kind"), [("GET", "http"), ("HEAD", "http"), ("", "lifespan")])
def test_what_has_no_body_is_not_touched(method: str, kind: str) -> None:
    app = Behind()
    sent, _ = ask(app, b"", method=method, kind=kind, length=b"99999999")
    assert sent[0]["status"] == 200 and len(app.bodies) == 1


def build(ctx: Ctx) -> None:
    """A page with a queued event that keeps a state between calls."""
    text, count, told = gr.Textbox(), gr.State(0), gr.JSON()

    def more(words: str, before: int) -> tuple[int, dict[str, int]]:
        return before + 1, {"calls": before + 1, "length": len(words)}

    text.submit(more, [text, count], [count, told], api_name=f"more_{ctx.lang}")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    pages = (Page("", 0, 0, Text("x", "x"), build),)
    site = build_site(pages).queue(max_size=64)
    port = free_port()
    site.launch(server_name="127.0.0.1", server_port=port, prevent_thread_lock=True, **launch_options(pages))
    yield f"http://127.0.0.1:{port}"
    site.close()


def post(url: str, path: str, body: Any) -> tuple[int, str]:
    """Send a body, with its length or, for an iterator, in chunks."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
    connection.request("POST", path, body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def test_the_queue_and_a_state_work_and_a_large_text_within_the_limit_passes(url: str) -> None:
    client = Client(url, verbose=False)
    assert client.predict("x" * 900_000, api_name="/more_en") == {"calls": 1, "length": 900_000}
    assert client.predict("é" * 100, api_name="/more_en") == {"calls": 2, "length": 100}


def test_a_pasted_config_of_the_longest_kind_arrives(url: str) -> None:
    """Every character three bytes long in UTF-8; it is the endpoint that finds fault with it, not the limit."""
    body = json.dumps({"data": ["", 1, 1, "bf16", 1, "缓" * MAX_TEXT]}, ensure_ascii=False).encode()
    assert MAX_TEXT * 3 < len(body) <= MAX_BODY
    status, line = post(url, "/gradio_api/run/estimate", body)
    assert status == 500 and "JSON" in line


PATHS = ["run/estimate", "call/estimate", "queue/join", "component_server", "upload", "cancel", "no/such/path"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("chunked", [False, True])
def test_more_is_refused_on_every_path_before_gradio_reads_it(
    url: str, path: str, chunked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_api.RateLimit, "take", lambda *_: True)
    body = json.dumps({"data": ["x" * (3 * MAX_BODY)]}).encode()
    chunks = (body[i : i + 65_536] for i in range(0, len(body), 65_536))
    status, line = post(url, f"/gradio_api/{path}", chunks if chunked else body)
    assert status == 413 and json.loads(line) == {"error": REFUSAL}


def test_the_server_goes_on_after_a_refusal(url: str) -> None:
    assert post(url, "/gradio_api/run/estimate", b" " * (MAX_BODY + 1))[0] == 413
    status, line = post(url, "/gradio_api/run/estimate", json.dumps({"data": ["llama-2-7b", 1, 1, "bf16", 1, ""]}))
    assert status == 200 and json.loads(line)["data"][0]["total_bytes"] == 512 * 2**10

"""What the frame's ASGI parts and `app.py` answer, without a browser."""

import asyncio
import gzip
import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import brotli
import pytest
from starlette.types import Message

import app
from pages import PAGES, _assets
from pages._assets import AssetServer
from pages._document import Documents

ROOT = Path(__file__).resolve().parents[2]


def ask(
    middleware: Any,
    path: str,
    method: str = "GET",
    root_path: str = "",
    accept: str = "br, gzip",
    extra: Sequence[tuple[bytes, bytes]] = (),
) -> list[Message]:
    scope = {
        "type": "http",
        "method": method,
        "path": root_path + path,
        "root_path": root_path,
        "headers": [(b"accept-encoding", accept.encode()), *extra],
    }
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    asyncio.run(middleware(scope, receive, send))
    return sent


def behind(status: int, kind: str, *chunks: bytes) -> Any:
    async def answer(scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"content-type", kind.encode()), (b"content-length", str(sum(map(len, chunks))).encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        for i, chunk in enumerate(chunks):
            await send({"type": "http.response.body", "body": chunk, "more_body": i < len(chunks) - 1})

    return answer


def headers(sent: list[Message]) -> dict[str, str]:
    return {key.decode().lower(): value.decode() for key, value in sent[0]["headers"]}


APP = behind(200, "text/plain", b"the app")


def test_an_asset_is_packed_typed_and_kept_for_ever() -> None:
    asset = _assets.get(_assets.PLOTLY)
    sent = ask(AssetServer(APP), asset.href.removeprefix("."))
    told = headers(sent)
    assert sent[0]["status"] == 200 and "immutable" in told["cache-control"] and told["content-encoding"] == "br"
    assert told["content-type"].startswith("text/javascript") and told["vary"] == "Accept-Encoding"
    assert brotli.decompress(sent[1]["body"]) == asset.body and len(sent[1]["body"]) < 1_500_000


def test_an_asset_without_compression_and_below_a_sub_path() -> None:
    asset = _assets.get("kv.css")
    plain = ask(AssetServer(APP), asset.href.removeprefix("."), root_path="/sub", accept="identity")
    assert plain[1]["body"] == asset.body and "content-encoding" not in headers(plain)
    assert ask(AssetServer(APP), asset.href.removeprefix("."), method="HEAD")[0]["status"] == 200


@pytest.mark.parametrize(
    "name", ["../../app.py", "..%2f..%2fapp.py", "/etc/passwd", "kv-1-tokens.css", "app.py", "", "kv.js/..", "kv.js\0"]
)
def test_nothing_but_the_table_is_served(name: str) -> None:
    digest = _assets.get("kv.js").digest
    assert ask(AssetServer(APP), f"/kv-assets/{digest}/{name}")[0]["status"] == 404


def test_a_stale_hash_and_another_method_are_refused() -> None:
    assert ask(AssetServer(APP), "/kv-assets/000000000000/kv.js")[0]["status"] == 404
    assert ask(AssetServer(APP), _assets.get("kv.js").href[1:], method="POST")[0]["status"] == 405
    assert ask(AssetServer(APP), "/attention")[1]["body"] == b"the app"


def test_the_hash_follows_the_content() -> None:
    one, other = _assets.Asset("a.js", b"1"), _assets.Asset("a.js", b"2")
    assert one.digest != other.digest and one.digest in one.href


def document(*, kind: str = "text/html; charset=utf-8", status: int = 200) -> Any:
    html = (
        b'<html lang="en"><head><meta charset="utf-8" /></head><body>',
        b"<gradio-app></gradio-app></body></html>",
    )
    return behind(status, kind, *html)


def test_a_document_is_rewritten_by_its_route() -> None:
    sent = ask(Documents(document(), PAGES), "/zh-attention")
    body = sent[1]["body"]
    assert b'lang="zh-CN"' in body and b'id="kv-main"' in body
    assert headers(sent)["content-length"] == str(len(body)) and headers(sent)["x-content-type-options"] == "nosniff"
    assert b'<html lang="zh-CN">' in ask(Documents(document(), PAGES), "/zh-home", root_path="/sub")[1]["body"]
    assert b'<html lang="en">' in ask(Documents(document(), PAGES), "/")[1]["body"]


@pytest.mark.parametrize(
    ("path", "method", "how"),
    [
        ("/zh-nothing", "GET", {}),
        ("/gradio_api/info", "GET", {}),
        ("/attention", "POST", {}),
        ("/attention", "HEAD", {}),
        ("/attention", "GET", {"kind": "application/json"}),
        ("/attention", "GET", {"status": 404}),
    ],
)
def test_everything_else_passes_untouched(path: str, method: str, how: dict[str, Any]) -> None:
    sent = ask(Documents(document(**how), PAGES), path, method)
    assert b"kv-main" not in b"".join(message.get("body", b"") for message in sent)
    assert len(sent) == 3


def test_an_address_without_a_page_has_a_document_of_its_own() -> None:
    site = Documents(document(kind="application/json", status=404), PAGES)
    html = [(b"accept", b"text/html,*/*")]
    for path, word in (
        ("/nothing", "There is no such page"),
        ("/zh-nothing", "没有这一页"),
        ("/a%22><script>", "There is"),
    ):
        sent = ask(site, path, extra=html)
        assert sent[0]["status"] == 404 and headers(sent)["content-type"].startswith("text/html")
        assert word in sent[1]["body"].decode() and b"a%22" not in sent[1]["body"]
    for path in ("/gradio_api/nothing", "/x.js"):
        assert b"kv-main" not in ask(site, path, extra=html)[1]["body"]
    assert headers(ask(site, "/nothing"))["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--port", "0"], "1 to 65535"),
        (["--port", "99999999999999999999"], "1 to 65535"),
        (["--port", "eighty"], "1 to 65535"),
        (["--port"], "expected one argument"),
        (["--prot", "1"], "unrecognized"),
        (["--host", "no.such.host.invalid"], "127.0.0.1"),
        (["--host", "192.0.2.1"], "cannot be used"),
    ],
)
def test_a_wrong_option_is_one_line_and_exit_code_2(
    arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        app.main(arguments)
    told = capsys.readouterr()
    assert stopped.value.code == 2 and told.out == ""
    assert line in told.err and told.err.count("\n") == 1


def test_a_port_in_use_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(SystemExit) as stopped:
            app.main(["--port", str(taken.getsockname()[1])])
    told = capsys.readouterr().err
    assert stopped.value.code == 2 and "cannot be used" in told and told.count("\n") == 1


def test_a_proxy_is_not_asked_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy.example:9")
    monkeypatch.setenv("no_proxy", "intranet.example")
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert not urllib.request.proxy_bypass("127.0.0.1")
    app._reach_itself_directly("192.168.7.7")
    for host in ("127.0.0.1", "localhost", "192.168.7.7", "intranet.example"):
        assert urllib.request.proxy_bypass(host)
    assert not urllib.request.proxy_bypass("huggingface.co")


def test_the_package_kernels_is_refused_in_one_line(tmp_path: Path) -> None:
    info = tmp_path / "kernels-0.18.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: kernels\nVersion: 0.18.2\n")
    done = subprocess.run(
        [sys.executable, "app.py", "--no-model"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2 and "pip uninstall kernels" in done.stderr and done.stderr.count("\n") == 1


def test_the_page_scripts_are_small() -> None:
    scripts = [_assets.get(name) for name in _assets.names() if name != _assets.PLOTLY]
    assert sum(len(gzip.compress(asset.body)) for asset in scripts) < 200_000

"""The public endpoint: the estimate over HTTP and by Gradio's client, for good calls, wrong ones and hostile ones."""

import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import gradio as gr
import pytest
from gradio_client import Client

from explorer.errors import InputError
from explorer.estimators.ranks import Ranks
from explorer.estimators.report import Options, report
from explorer.specs import catalog
from explorer.text import Text
from pages import _api
from pages._blocks import html
from pages._page import Page
from pages._site import build_site, launch_options
from tests.browser.serving import free_port

GEMMA = {
    "model_type": "gemma3_text",
    "num_hidden_layers": 62,
    "num_attention_heads": 32,
    "num_key_value_heads": 16,
    "head_dim": 128,
    "hidden_size": 5376,
    "sliding_window": 1024,
    "sliding_window_pattern": 6,
}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A site with a page and the endpoint."""
    pages = (Page("", 0, 0, Text("x", "x"), lambda ctx: html("<h1>x</h1>")),)
    site = build_site(pages).queue(max_size=64)
    port = free_port()
    site.launch(server_name="127.0.0.1", server_port=port, prevent_thread_lock=True, **launch_options(pages))
    yield f"http://127.0.0.1:{port}/"
    site.close()


@pytest.fixture(autouse=True)
def calm(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit of calls has a test of its own."""
    monkeypatch.setattr(_api.RateLimit, "take", lambda *_: True)


DEFAULTS = ("", 1, 1, "bf16", 1, "")


def call(url: str, *data: Any) -> tuple[int, Any]:
    """Status and answer of a raw call; over HTTP every value must be sent, so the defaults are filled in."""
    return raw(url, *data, *DEFAULTS[len(data) :])


def raw(url: str, *data: Any) -> tuple[int, Any]:
    """Status and answer of a call with just these values."""
    body = json.dumps({"data": list(data)}).encode()
    request = urllib.request.Request(f"{url}gradio_api/run/estimate", body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)["data"][0]
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)["error"]


def test_it_gives_what_the_command_line_gives(url: str) -> None:
    client = Client(url, verbose=False)
    found = client.predict("deepseek-v3", 131_072, 4, "fp8_ds_mla", 8, api_name="/estimate")
    wanted = report("deepseek-v3", 131_072, Options(batch=4, dtype="fp8_ds_mla", ranks=Ranks(tp=8)))
    assert found == json.loads(json.dumps(wanted))
    assert found["bytes_per_token_growing"] == 61 * 656 and found["per_rank"]["total_bytes"] == found["total_bytes"]
    assert client.predict("llama-2-7b", 131_072, api_name="/estimate")["total_bytes"] == 64 * 2**30
    by_name = client.predict(model="Qwen3-32B", tokens=32_768, tensor_parallel=4, api_name="/estimate")
    assert by_name["total_bytes"] == 8 * 2**30 and by_name["per_rank"]["total_bytes"] == 2 * 2**30
    total = client.predict("deepseek-v4-pro", 1_048_576, api_name="/estimate")["total_gib"]
    assert round(total, 2) == 9.62


def test_a_config_is_taken_as_text(url: str) -> None:
    status, found = call(url, "", 8_192, 1, "bf16", 1, json.dumps(GEMMA))
    assert status == 200 and found["total_bytes"] == 2 * 16 * 128 * 2 * (10 * 8_192 + 52 * 1_024)
    assert found["constant_bytes"] == 52 * 1_024 * 8_192 and found["verified"] is None


def test_it_is_described_with_its_types(url: str) -> None:
    with urllib.request.urlopen(f"{url}gradio_api/info", timeout=30) as answer:
        info = json.load(answer)["named_endpoints"]
    assert list(info) == ["/estimate"]
    parameters = info["/estimate"]["parameters"]
    assert [(item["parameter_name"], item["type"]["type"]) for item in parameters] == [
        ("model", "string"),
        ("tokens", "integer"),
        ("batch", "integer"),
        ("dtype", "string"),
        ("tensor_parallel", "integer"),
        ("config", "string"),
    ]
    assert "catalogue" in info["/estimate"]["description"]


PATHS = [
    "/etc/passwd",
    "../../assets/catalog/models.json",
    "assets",
    "models.json",
    "config.json",
    ".",
    "..",
    "~/config.json",
    "C:\\config.json",
    "file:///etc/passwd",
    "https://huggingface.co/x/y",
    "meta-llama/Llama-2-7b-hf",
    "openai-community/gpt2",
    "llama-2-7b\u0000",
    "llama-2-7b/",
    "x" * 100_000,
]


@pytest.mark.parametrize("model", PATHS, ids=lambda path: repr(path)[:20])
def test_paths_and_hub_ids_touch_nothing(url: str, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused before anything is looked up on disk, and nothing is connected to."""
    catalog.models()  # the catalogue's own files are read by now
    touched: list[Any] = []

    def touch(*what: Any, **_: Any) -> None:
        touched.append(what)
        raise OSError

    with monkeypatch.context() as patched:
        for name in ("exists", "open", "read_text", "is_dir", "is_file"):
            patched.setattr(f"pathlib.Path.{name}", touch)
        patched.setattr("socket.socket.connect", touch)
        try:
            error: Exception | None = None
            _api.answer(model, 1_024, 1, "bf16", 1, "")
        except Exception as raised:
            error = raised
    assert not touched and isinstance(error, InputError)
    _clear(error.text.en)
    status, line = call(url, model, 1_024)
    assert status == 500
    _clear(line)


@pytest.mark.parametrize(
    "data",
    [
        ("llama-2-7b", 0),
        ("llama-2-7b", -1),
        ("llama-2-7b", 2**30 + 1),
        ("llama-2-7b", 10**400),
        ("llama-2-7b", 1.5),
        ("llama-2-7b", "4096"),
        ("llama-2-7b", None),
        ("llama-2-7b", True),
        ("llama-2-7b", [1]),
        ("llama-2-7b", {"a": 1}),
        ("llama-2-7b", 1, 65_537),
        ("llama-2-7b", 1, None),
        ("llama-2-7b", 1, 1, "bf17"),
        ("llama-2-7b", 1, 1, "x" * 100_000),
        ("llama-2-7b", 1, 1, 2),
        ("llama-2-7b", 1, 1, ["bf16"]),
        ("llama-2-7b", 1, 1, "fp8_ds_mla"),
        ("llama-2-7b", 1, 1, "bf16", 0),
        ("llama-2-7b", 1, 1, "bf16", 3),
        ("llama-2-7b", 1, 1, "bf16", "8"),
        ("llama-2-7", 1),
        ("", 1),
        (None, 1),
        (7, 1),
        (["llama-2-7b"], 1),
        ("", 1, 1, "bf16", 1, "{"),
        ("", 1, 1, "bf16", 1, "[" * 3_000),
        ("", 1, 1, "bf16", 1, "x" * 200_001),
        ("", 1, 1, "bf16", 1, json.dumps(GEMMA) + " " * 200_000),
        ("", 1, 1, "bf16", 1, '{"model_type": "llama", "num_hidden_layers": 1e12}'),
        ("", 1, 1, "bf16", 1, {"model_type": "llama"}),
        ("", 1, 1, "bf16", 1, 7),
        ("", 1, 1, "bf16", 1, "/etc/passwd"),
    ],
    ids=lambda data: repr(data)[:40],
)
def test_a_wrong_call_gets_one_clear_line(url: str, data: tuple[Any, ...]) -> None:
    status, line = call(url, *data)
    assert status >= 400
    _clear(line)


def _clear(line: Any) -> None:
    assert isinstance(line, str) and 10 < len(line) < 500 and "\n" not in line, line
    assert not re.search(r"Traceback|site-packages|File \"|/work|/root", line)


def test_what_gradio_itself_refuses_tells_no_trace_and_no_path(url: str) -> None:
    """Too few values, and an object that pretends to be an uploaded file."""
    file = {"path": "/etc/passwd", "meta": {"_type": "gradio.FileData"}}
    for data in ((), ("llama-2-7b",), (file, 1, 1, "bf16", 1, "")):
        status, line = raw(url, *data)
        assert status >= 400 and not re.search(r"Traceback|File \"|passwd|/root", str(line))


def test_it_answers_within_ten_milliseconds() -> None:
    for name in catalog.models():
        started = time.perf_counter()
        _api.answer(name, 1_048_576, 7, "bf16", 1, "")
        first = time.perf_counter() - started
        times = [first]
        for _ in range(4):
            started = time.perf_counter()
            _api.answer(name, 1_048_576, 7, "bf16", 1, "")
            times.append(time.perf_counter() - started)
        assert min(times) < 0.01, (name, times)


def test_calls_are_limited_address_by_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    limit = _api.RateLimit(per_second=2, burst=3)
    assert [limit.take("a", 0.0) for _ in range(4)] == [True, True, True, False]
    assert limit.take("b", 0.0)
    assert not limit.take("a", 0.4) and limit.take("a", 0.5) and not limit.take("a", 0.5)
    assert [limit.take("a", 100.0) for _ in range(4)] == [True, True, True, False]
    for number in range(3_000):
        limit.take(f"c{number}", 100.0)
    assert len(limit._left) <= 1_024


def test_the_limit_is_told_to_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    with gr.Blocks() as site:
        _api.add_api(_api.RateLimit(per_second=0.001, burst=1))
    port = free_port()
    site.launch(server_name="127.0.0.1", server_port=port, prevent_thread_lock=True, quiet=True)
    try:
        address = f"http://127.0.0.1:{port}/"
        assert call(address, "llama-2-7b", 1)[0] == 200
        status, line = call(address, "llama-2-7b", 1)
        assert status >= 400 and "too many calls" in line
    finally:
        site.close()

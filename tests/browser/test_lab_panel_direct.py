"""The lab panel's endpoints as a script meets them, past the page and without a browser."""

import json
import sys
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.browser.serving import free_port, serving


@pytest.fixture(scope="module")
def lab_url(tmp_path_factory) -> Iterator[str]:
    port = free_port()
    lock_file = tmp_path_factory.mktemp("lock") / "device.lock"
    with serving(
        [sys.executable, "-m", "tests.browser.lab_site", str(port), str(lock_file)],
        port,
        {"GRADIO_ANALYTICS_ENABLED": "False"},
    ) as url:
        yield url


BAD = [
    None,
    "x",
    [],
    {"run": "../../etc/passwd", "values": {}},
    {"run": "a" * 24, "values": {"rows": 10**30}},
    {"run": "a" * 24, "values": {"rows": "0x10"}},
    {"run": "a" * 24, "values": {"label": "x" * 100_000}},
    {"run": "a" * 24, "values": {"nope": 1}},
    {"run": "a" * 24, "values": {"rows": {"a": []}}},
]


@pytest.mark.parametrize("sent", BAD, ids=range(len(BAD)))
def test_bad_values_by_direct_call(lab_url, sent):
    answer = call(lab_url, sent)
    assert answer["phase"] == "refused"
    assert 0 < len(answer["error"]) <= 300
    text = json.dumps(answer)
    assert "Traceback" not in text and "site-packages" not in text and "/work" not in text


def call(url: str, sent: object, session: str = "direct") -> dict:
    """One run asked for as a script would, past the page."""
    body = {"data": [], "fn_index": measure_event(url), "session_hash": session, "event_data": sent}
    post(url + "gradio_api/queue/join", body)
    with urllib.request.urlopen(f"{url}gradio_api/queue/data?session_hash={session}", timeout=20) as stream:
        for line in stream:
            message = json.loads(line[6:]) if line.startswith(b"data: ") else {}
            if message.get("msg") == "process_generating":
                value = message["output"]["data"][0]
                if isinstance(value, dict):
                    return value
            if message.get("msg") == "process_completed":
                raise AssertionError(message)
    raise AssertionError("no answer")


def test_a_class_presses_measure_at_once(lab_url):
    """Fifteen visitors without a browser; each is told its place, and each is served."""
    event = measure_event(lab_url)

    def visitor(number: int) -> str:
        session = f"class-{number}"
        sent = {"run": f"{number:024x}", "values": {"rows": 1}}
        body = {"data": [], "fn_index": event, "session_hash": session, "event_data": sent}
        post(lab_url + "gradio_api/queue/join", body)
        with urllib.request.urlopen(f"{lab_url}gradio_api/queue/data?session_hash={session}", timeout=90) as stream:
            return stream.read().decode()

    with ThreadPoolExecutor(15) as pool:
        heard = list(pool.map(visitor, range(15)))
    assert all("Done in" in text for text in heard)
    assert sum("Ahead of yours" in text for text in heard) >= 10
    assert any("Ahead of yours: 5" in text for text in heard)


def measure_event(url: str) -> int:
    config = get(url + "config")
    events = config["dependencies"]
    return next(item["id"] for item in events if any(target[1] == "submit" for target in item["targets"]))


def get(url: str) -> dict:
    with urllib.request.urlopen(url, timeout=20) as answer:
        return json.loads(answer.read())


def post(url: str, body: object) -> bytes:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=20) as answer:
        return answer.read()


@pytest.mark.parametrize("value", [None, "x", [1], {"rows": 10**30}, {"rows": []}, "x" * 100_000])
@pytest.mark.parametrize("function", ["plan", "end_run"])
def test_the_servers_functions_take_anything(lab_url, value, function):
    config = get(lab_url + "config")
    panel = next(item for item in config["components"] if item["props"].get("elem_id") == "lab-toy-sum")
    body = {"session_hash": "direct", "component_id": panel["id"], "fn_name": function, "data": value}
    answer = json.loads(post(lab_url + "gradio_api/component_server", body))
    if function == "plan":
        assert answer["wrong"] and 0 < len(answer["text"]) <= 300
    else:
        assert answer is False


def test_a_script_that_leaves_is_noticed(lab_url):
    """A direct call with good values, cut off after its first answer, holds the device no longer."""
    assert call(lab_url, {"run": "c" * 24, "values": {"pause_s": 25}}, "cut")["phase"] in (
        "starting",
        "queued",
        "running",
    )
    start = time.monotonic()
    body = {"data": [], "fn_index": measure_event(lab_url), "session_hash": "next"}
    post(lab_url + "gradio_api/queue/join", body | {"event_data": {"run": "d" * 24, "values": {"rows": 1}}})
    with urllib.request.urlopen(f"{lab_url}gradio_api/queue/data?session_hash=next", timeout=60) as stream:
        assert "Done in" in stream.read().decode()
    assert time.monotonic() - start < 15

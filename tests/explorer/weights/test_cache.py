"""The cache is believed only while it is as it was written; what was interrupted is redone or continued."""

import json
import os
import shutil
import sys
import time

import pytest

from explorer.errors import ResourceError, Stopped
from explorer.weights.cache import STALE_AFTER_S, WeightCache, default_root, require_room
from explorer.weights.resolve import NO_ROOM, Resolver

MODEL = "test-org/tiny"
KEY = "test-org--tiny"


def test_error_in_progress_stops_and_the_next_call_goes_on_from_there(resolver, wheels):
    def leave(step):
        if step.stage == "convert" and step.done_bytes > 0:
            raise Stopped("stopped")

    with pytest.raises(Stopped):
        resolver.resolve(MODEL, progress=leave)
    assert not resolver.cache.folder(KEY).exists()
    assert not resolver.resolve(MODEL).from_cache
    assert wheels.asked == 1  # the checked GGUF file was kept


@pytest.mark.parametrize(
    "how", ["shorter", "shorter but not newer", "same size", "missing", "no manifest", "manifest of another format"]
)
def test_damaged_cache_is_noticed_and_made_again(how, resolver, wheels):
    folder = resolver.resolve(MODEL).path
    before = (folder / "model.safetensors").read_bytes()
    match how:
        case "shorter":
            (folder / "model.safetensors").write_bytes(before[:-1])
        case "shorter but not newer":
            stat = (folder / "model.safetensors").stat()
            (folder / "model.safetensors").write_bytes(before[:-1])
            os.utime(folder / "model.safetensors", ns=(stat.st_atime_ns, stat.st_mtime_ns))
        case "same size":
            (folder / "model.safetensors").write_bytes(before[:-1] + bytes([before[-1] ^ 1]))
        case "missing":
            (folder / "tokenizer.json").unlink()
        case "no manifest":
            (folder / "manifest.json").write_text("{")
        case "manifest of another format":
            content = json.loads((folder / "manifest.json").read_text())
            (folder / "manifest.json").write_text(json.dumps(content | {"format": 99}))
    with pytest.raises(ResourceError):
        resolver.resolve(MODEL, offline=True)
    assert not resolver.resolve(MODEL).from_cache
    assert (folder / "model.safetensors").read_bytes() == before and wheels.asked == 2


def test_content_with_its_old_time_stamp_is_noticed_when_asked(resolver):
    path = resolver.resolve(MODEL).path / "model.safetensors"
    stat, content = path.stat(), bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert resolver.resolve(MODEL).from_cache
    assert not resolver.resolve(MODEL, verify=True).from_cache


def test_copied_cache_is_hashed_once_and_used(resolver, no_sources, tmp_path):
    resolver.resolve(MODEL)
    shutil.copytree(resolver.cache.root, tmp_path / "copy", copy_function=shutil.copyfile)
    copied = Resolver(WeightCache(tmp_path / "copy"), no_sources)
    manifest = copied.cache.folder(KEY) / "manifest.json"
    before = manifest.read_text()
    assert copied.resolve(MODEL).from_cache and manifest.read_text() != before
    before = manifest.read_text()
    assert copied.resolve(MODEL).from_cache and manifest.read_text() == before


def test_full_disk(resolver, monkeypatch):
    usage = shutil.disk_usage(resolver.cache.root.parent)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1000))
    with pytest.raises(ResourceError) as caught:
        resolver.resolve(MODEL)
    assert caught.value.text == NO_ROOM
    monkeypatch.undo()
    require_room(resolver.cache.root, 1)


def test_cache_that_cannot_be_written(resolver, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ResourceError, match="cannot be written") as caught:
        Resolver(WeightCache(tmp_path / "file" / "cache"), resolver.sources).resolve(MODEL)
    assert str(tmp_path) not in str(caught.value)


def test_old_work_of_others_is_removed_and_recent_work_kept(resolver):
    work = resolver.cache.root / "making"
    old, recent = work / "old--model", work / "recent--model"
    for folder in (old, recent):
        folder.mkdir(parents=True)
        (folder / "part").write_text("x")
    long_ago = time.time() - STALE_AFTER_S - 60
    os.utime(old, (long_ago, long_ago))
    resolver.resolve(MODEL)
    assert not old.exists() and recent.exists()


def test_root_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("KV_EXPLORER_CACHE", str(tmp_path / "mine"))
    assert default_root() == tmp_path / "mine"
    monkeypatch.delenv("KV_EXPLORER_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    if sys.platform == "linux":
        assert default_root() == tmp_path / "xdg" / "kv-cache-explorer"

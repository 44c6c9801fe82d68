"""`bench` where a GPU is, or only seems to be: the order of things, time that runs out, files, and exit codes.

Nothing is measured on a GPU here. `bench` is told that there is one; the toy labs run on the CPU all the same.
"""

import json
import sys
from dataclasses import replace

import pytest
import torch

from explorer.benchmarks import SUITE, Benchmark
from explorer.cli import bench, bench_kernel_tests
from explorer.cli.main import main
from explorer.errors import Stopped
from explorer.labs.kernel_speed import KINDS
from explorer.measuring import lock, provenance
from explorer.measuring.record import Origin, Record
from explorer.registry import Registry
from tests.explorer.labs.toy import ToyLab

FOR_ALL = Benchmark("toy-sum", "numbers", "three", {"rows": 2}, at_least=3)
FOR_GPU = Benchmark("toy-sum", "numbers", "a copy", {"rows": 3}, at_least=8, needs_gpu=True)
SLOW = Benchmark("toy-sum", "numbers", "patience", {"rows": 1, "pause_s": 30.0}, needs_gpu=True)


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


@pytest.fixture
def a_gpu(monkeypatch):
    """`bench` finds a GPU; its kernel tests are a Record that the test sets up."""
    monkeypatch.setattr("explorer.measuring.device.pick_device", lambda: torch.device("cuda"))
    limits = []

    def tests(problem=None):
        def run(device, limit_s):
            assert device.type == "cuda"
            limits.append(limit_s)
            summary = {"passed": 2, "failed": 0, "skipped": 0, "triton_ran_on": "cuda: a test", "problem": problem}
            facts = provenance.provenance(torch.device("cpu")) | {"complete": True}
            return Record("kernel-tests", {}, bench_kernel_tests.COLUMNS, summary=summary, provenance=facts)

        monkeypatch.setattr(bench_kernel_tests, "run", run)
        return limits

    return tests


def test_without_a_gpu_what_does_not_run_is_said_and_the_rest_recorded(suite, capsys, tmp_path):
    suite(FOR_ALL, FOR_GPU, FOR_GPU)
    kept = tmp_path / "records.json"
    assert main(["bench", "--record", str(kept)]) == 0
    first = capsys.readouterr().err.splitlines()[0]
    assert "no GPU here" in first and "the kernels' tests on a GPU and the 2 lines" in first
    (record,) = json.loads(kept.read_text())
    assert record["provenance"]["device_kind"] == "cpu"


def test_gpu_only_needs_one(suite, capsys, tmp_path):
    suite(FOR_ALL, FOR_GPU)
    kept = tmp_path / "records.json"
    assert main(["bench", "--gpu-only", "--record", str(kept)]) == 2
    assert "no CUDA device" in capsys.readouterr().err and not kept.exists()


def test_kernel_tests_come_first_then_the_lines_for_a_gpu(suite, a_gpu, capsys, tmp_path):
    suite(FOR_ALL, FOR_GPU)
    limits = a_gpu()
    kept = tmp_path / "records.json"
    assert main(["bench", "--record", str(kept), "--json"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out.splitlines()[-1])
    assert "no GPU" not in err and 0 < limits[0] <= bench.TESTS_DEADLINE_S
    assert [(row["against"], row["bar"], row["met"]) for row in found["rows"]] == [
        ("a copy", ">= 8", False), ("three", None, None),
    ]  # fmt: skip
    assert found["kernel_tests"]["passed"] == 2 and found["left_out"] == []
    assert [record["lab"] for record in json.loads(kept.read_text())] == ["kernel-tests", "toy-sum", "toy-sum"]


def test_gpu_only_leaves_the_others_out(suite, a_gpu, capsys):
    suite(FOR_ALL, FOR_GPU)
    a_gpu()
    assert main(["bench", "--gpu-only", "--json"]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert [row["against"] for row in found["rows"]] == ["a copy"] and found["kernel_tests"] is None


def test_a_failed_kernel_test_is_printed_and_makes_the_exit_code_1(suite, a_gpu, capsys, tmp_path):
    suite(FOR_GPU)
    a_gpu("1 of 3 failed")
    assert main(["bench", "--record", str(tmp_path / "records.json")]) == 1
    out, err = capsys.readouterr()
    assert "kernel-tests: 1 of 3 failed" in err and "problem 1 of 3 failed" in out
    assert "toy-sum" in out, "the lines run all the same"


def test_lines_without_time_are_named(suite, a_gpu, capsys, tmp_path):
    """The second would take 30 s; with 6 s its turn does not come, and it is cut off where it says nothing."""
    a_gpu()
    suite(FOR_GPU, SLOW, FOR_ALL)
    kept = tmp_path / "records.json"
    assert main(["bench", "--record", str(kept), "--deadline", "8", "--json"]) == 0
    out, err = capsys.readouterr()
    (left_out,) = json.loads(out.splitlines()[-1])["left_out"]
    assert left_out.startswith("toy-sum rows=1 pause_s=30.0: ") and "it takes about 30" in left_out
    assert f"left out: {left_out}" in err
    assert len(json.loads(kept.read_text())) == 3


def test_a_line_that_outlasts_the_time_is_cut_off_and_named(suite, a_gpu, capsys, monkeypatch):
    monkeypatch.setattr(ToyLab, "expected_seconds", lambda lab, kind: None)
    monkeypatch.setattr(bench, "SHORTEST_S", 0.1)
    suite(SLOW)
    a_gpu()
    assert main(["bench", "--deadline", "1"]) == 0
    out = capsys.readouterr().out
    assert "left out: toy-sum rows=1 pause_s=30.0: not done in the 1 s that were left" in out


def test_loading_a_model_cannot_outlast_the_time(suite, a_gpu, capsys, monkeypatch):
    """A lab's own deadline does not count it, so `bench` tells the lab to stop."""
    suite(FOR_GPU)
    a_gpu()
    monkeypatch.setattr(bench, "SHORTEST_S", 0.1)

    def loading(lab, *, stop, **how):
        assert stop.wait(20), "nobody said stop"
        raise Stopped("stopped")

    monkeypatch.setattr(bench, "follow", loading)
    assert main(["bench", "--deadline", "1"]) == 0
    assert "left out: toy-sum rows=3: not done" in capsys.readouterr().out


def test_ctrl_c_leaves_what_is_done(suite, a_gpu, monkeypatch, tmp_path):
    suite(FOR_GPU, FOR_ALL)
    a_gpu()
    follow, done = bench.follow, []

    def interrupted(lab, **how):
        if done:
            raise KeyboardInterrupt
        done.append(lab)
        return follow(lab, **how)

    monkeypatch.setattr(bench, "follow", interrupted)
    kept = tmp_path / "records.json"
    assert main(["bench", "--record", str(kept)]) == 130
    assert [record["lab"] for record in json.loads(kept.read_text())] == ["kernel-tests", "toy-sum"]


def test_a_size_that_did_not_fit_meets_no_bar(suite, capsys):
    line = replace(FOR_ALL, value="share")
    record = Record("toy-sum", {"rows": 2}, (), summary={"share": None})
    row = bench.row_of(line, record, "cpu")
    assert row["value"] is None and row["met"] is None and row["bar"] == ">= 3"


@pytest.mark.parametrize("words", [["--deadline", "0"], ["--deadline", "soon"]])
def test_a_wrong_deadline_is_refused(suite, capsys, words):
    suite(FOR_ALL)
    assert main(["bench", *words]) == 2
    assert "deadline" in capsys.readouterr().err


def test_the_real_suite_has_lines_for_a_gpu_with_the_bar_of_the_design():
    (line,) = [line for line in SUITE if line.at_least == 0.85]
    assert line.settings == {"kernel": "paged-decode", "batch": 64, "context": 8192}
    assert line.needs_gpu and line.value == "share_of_copy" and line.quick is not None
    kernels = {each.settings.get("kernel") for each in SUITE if each.lab == "kernel-speed"}
    assert kernels == set(KINDS), "every kernel has a line"


# --- the kernels' tests themselves, with a small folder in their place ---

CONFTEST = """
import os, pytest
@pytest.fixture(scope="session", autouse=True)
def ran(record_testsuite_property):
    assert "TRITON_INTERPRET" not in os.environ
    record_testsuite_property("triton", {ran_on!r})
"""


SKIPPED = "import pytest\n@pytest.mark.skip\ndef test_a(): pass\n"


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """Runs the given tests where the repository's own would be run."""
    monkeypatch.setattr(provenance, "REPOSITORY", tmp_path)
    monkeypatch.setattr(provenance, "commit", lambda: "test")
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    place = tmp_path / "tests" / "kernels"
    place.mkdir(parents=True)

    def run(tests, ran_on="cuda: a test", limit_s=60.0):
        (place / "conftest.py").write_text(CONFTEST.format(ran_on=ran_on))
        (place / "test_a.py").write_text(tests)
        return bench_kernel_tests.run(torch.device("cpu"), limit_s)

    return run


def test_tests_that_pass_on_a_gpu(folder, capsys):
    record = folder("import pytest\ndef test_a(): pass\n@pytest.mark.skip\ndef test_b(): pass\n")
    assert record.summary == {
        "passed": 1, "failed": 0, "skipped": 1, "triton_ran_on": "cuda: a test", "problem": None,
    }  # fmt: skip
    (row,) = record.rows
    assert row["file"] == "test_a" and set(row) == {column.name for column in record.columns}
    assert record.provenance["complete"] is True and record.columns[1].origin is Origin.MEASURED
    assert "kernel-tests: 1 passed, 1 skipped" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("tests", "ran_on", "problem"),
    [
        ("def test_a(): pass\ndef test_b(): assert 0\n", "cuda: a test", "1 of 2 failed"),
        ("def test_a(): pass\n", "interpreter", "Triton ran on interpreter, not on a CUDA device"),
        ("import no_such_module\n", "cuda: a test", "1 of 1 failed"),
        ("", "cuda: a test", "pytest ended with code 5 and 0 tests passed"),
        (SKIPPED, "cuda: a test", "pytest ended with code 0 and 0 tests passed"),
    ],
)
def test_what_is_wrong_is_said(folder, tests, ran_on, problem):
    assert folder(tests, ran_on).summary["problem"] == problem


def test_tests_that_take_too_long_are_ended(folder):
    record = folder("import time\ndef test_a(): time.sleep(60)\n", limit_s=4.0)
    assert record.summary["problem"] == "not done after 4 s" and record.provenance["complete"] is False


def test_a_missing_pytest_is_named(folder, monkeypatch):
    monkeypatch.setattr(provenance, "package_version", lambda name: None)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert folder("").summary["problem"] == bench_kernel_tests.NO_PYTEST

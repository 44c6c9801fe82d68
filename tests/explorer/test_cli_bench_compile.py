"""`bench --compile`: the table, the JSON and the exit code follow what was compiled."""

import json

import pytest

from explorer.cli.main import main
from kernels import aot

CLEAN = aot.Compiled("some_kernel", "a shape", "sm_90", 40, 0, 1024, 2048)
SPILLED = aot.Compiled("some_kernel", "a shape", "sm_120", 255, 16, 1024, 2048)
BROKEN = aot.Compiled("some_kernel", "a shape", "sm_80", error="CompilationError: no")


@pytest.fixture
def compiled(monkeypatch):
    def use(*found):
        monkeypatch.setattr(aot, "jobs", lambda **how: [(None, 0)] * len(found))
        monkeypatch.setattr(aot, "report", lambda **how: iter(found))

    return use


def test_a_clean_report(compiled, capsys):
    compiled(CLEAN)
    assert main(["bench", "--compile", "--json"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out.splitlines()[-1])
    assert found["failures"] == 0
    assert found["rows"][0]["registers"] == 40 and found["rows"][0]["ok"] is True
    assert "no GPU is needed" in err


@pytest.mark.parametrize("bad", [SPILLED, BROKEN], ids=["spilled", "broken"])
def test_one_bad_kernel_fails_the_report(compiled, capsys, bad):
    compiled(CLEAN, bad)
    assert main(["bench", "--compile"]) == 1
    out, err = capsys.readouterr()
    assert "2 compiled, 1 not clean" in out
    assert (bad.error in err) or not bad.error
    lines = [line for line in out.splitlines() if line.startswith("some_kernel")]
    assert [line.split()[-1] for line in sorted(lines, key=lambda line: "sm_90" in line)] == ["no", "yes"]


def test_without_triton_it_says_so(monkeypatch, capsys):
    monkeypatch.setattr("kernels._triton.HAS_TRITON", False)
    assert main(["bench", "--compile"]) == 1
    assert "Triton is not installed" in capsys.readouterr().err

"""The kernels' own tests on this machine's GPU, in a process of their own; what came out becomes a Record.

Speed without proof is worth nothing: `bench --record` runs them before it measures. The child must not find
TRITON_INTERPRET set, and its report says on what Triton really ran (tests/kernels/conftest.py), so that tests which
went to the interpreter can never pass for tests on a GPU.
"""

import os
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

from explorer.cli.output import progress
from explorer.measuring import provenance
from explorer.measuring.record import Column, Origin, Record

NAME = "kernel-tests"  # in place of a lab's name
TESTS = "tests/kernels"
COLUMNS = (
    Column("file", "", Origin.MEASURED),
    Column("passed", "tests", Origin.MEASURED),
    Column("failed", "tests", Origin.MEASURED),
    Column("skipped", "tests", Origin.MEASURED),
    Column("file_s", "s", Origin.MEASURED),
)
NO_PYTEST = "pytest is not installed here; `pip install -r requirements-dev.txt` brings it"


def run(device: Any, limit_s: float) -> Record:
    """Run all tests of the kernels.

    Args:
        device: the `torch.device` that they are to run on, for the Record's provenance.
        limit_s: after so many seconds the child is ended; what it had not reported is lost.

    Returns:
        A row for each file. `summary["problem"]` is None if tests ran on the GPU and none failed, else one line.
    """
    record = Record(NAME, {"tests": TESTS}, COLUMNS, provenance=provenance.provenance(device))
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        code = _child(report, limit_s)
        root = _read(report)
    record.rows = [] if root is None else rows_of(root)
    ran_on = None if root is None else _ran_on(root)
    record.summary = {name: sum(row[name] for row in record.rows) for name in ("passed", "failed", "skipped")}
    record.summary |= {"triton_ran_on": ran_on, "problem": problem(code, record.summary, ran_on, limit_s)}
    record.provenance |= {
        "implementation": f"pytest {TESTS}; Triton: {ran_on or 'no kernel reported'}",
        "pytest": provenance.package_version("pytest"),
        "seconds": round(time.monotonic() - start, 3),
        "complete": code is not None,
    }
    return record


def rows_of(root: ElementTree.Element) -> list[dict[str, Any]]:
    """A JUnit report, counted by file; an error in setting up is a failure too."""
    files: dict[str, dict[str, Any]] = {}
    for case in root.iter("testcase"):
        name = (case.get("classname") or case.get("name") or "?").removeprefix("tests.kernels.")
        row = files.setdefault(name, {"file": name, "passed": 0, "failed": 0, "skipped": 0, "file_s": 0.0})
        children = {child.tag for child in case}
        bad, left = bool(children & {"failure", "error"}), "skipped" in children
        row["failed" if bad else "skipped" if left else "passed"] += 1
        row["file_s"] += float(case.get("time") or 0)
    return [row | {"file_s": round(row["file_s"], 3)} for row in files.values()]


def problem(code: int | None, counts: dict[str, Any], ran_on: str | None, limit_s: float) -> str | None:
    """What is wrong with a run of the tests, in one line; None if nothing is.

    Args:
        code: pytest's exit code; None if it was ended.
        counts: of tests passed and failed.
        ran_on: what the report says Triton ran on.
        limit_s: seconds that it had.
    """
    if code is None:
        return f"not done after {limit_s:.0f} s"
    if provenance.package_version("pytest") is None:
        return NO_PYTEST
    if counts["failed"]:
        return f"{counts['failed']} of {counts['failed'] + counts['passed']} failed"
    if code or not counts["passed"]:
        return f"pytest ended with code {code} and {counts['passed']} tests passed"
    if ran_on is None or not ran_on.startswith("cuda"):
        return f"Triton ran on {ran_on or 'nothing'}, not on a CUDA device"
    return None


def _read(report: Path) -> ElementTree.Element | None:
    """The report, or None where pytest did not come to write it."""
    try:
        return ElementTree.parse(report).getroot()
    except (OSError, ElementTree.ParseError):
        return None


def _ran_on(root: ElementTree.Element) -> str | None:
    found = (each.get("value") for each in root.iter("property") if each.get("name") == "triton")
    return next(found, None)


def _child(report: Path, limit_s: float) -> int | None:
    """Pytest's exit code; None if it had to be ended. Its lines go to stderr as they come."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    command = [sys.executable, "-m", "pytest", TESTS, "-q", "-p", "no:cacheprovider", "--junitxml", str(report)]
    child = subprocess.Popen(
        command, cwd=provenance.REPOSITORY, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    late = threading.Event()

    def end() -> None:
        late.set()
        child.kill()

    timer = threading.Timer(limit_s, end)
    timer.start()
    try:
        assert child.stdout is not None, "it is a pipe"
        for line in child.stdout:
            if line.strip():
                progress(f"{NAME}: {line}")
        code = child.wait()
    finally:  # Ctrl-C too
        timer.cancel()
        if child.poll() is None:
            child.kill()
            child.wait()
    return None if late.is_set() else code

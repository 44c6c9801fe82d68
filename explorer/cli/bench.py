"""Run the benchmark suite: ratios against named baselines, in one table."""

import argparse
import json
import threading
import time
from typing import Any

from explorer.benchmarks import SUITE, Benchmark
from explorer.cli import bench_compile
from explorer.cli.output import progress, result, result_json, table, writable, write
from explorer.cli.running import follow, have_weights, lab_of
from explorer.errors import DeadlineExceeded, ExplorerError, InputError, Stopped
from explorer.labs.base import Lab
from explorer.measuring.record import Record
from explorer.params import Param, ParamSpec, coerce
from explorer.text import Text

HEADINGS = ("lab", "settings", "number", "value", "p20", "p80", "bar", "met", "against")
RECORD_DEADLINE_S, LINE_DEADLINE_S, TESTS_DEADLINE_S = 480.0, 1800.0, 240.0
SHORTEST_S = 5.0  # with less time left a line is not begun
DEADLINE = ParamSpec("deadline", float, 0.0, Param(Text("Deadline", "时限"), minimum=1, maximum=7200))


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--quick", action="store_true", help="fewer and smaller runs")
    parser.add_argument(
        "--record",
        metavar="FILE",
        help="write all Records as a JSON list, after each line. On a CUDA machine the kernels' tests run first, for "
        "real, and the first Record is their result; one that fails makes the exit code 1. Without a GPU the lines "
        "for a CPU are recorded as a CPU's, and what needs a GPU is named",
    )
    parser.add_argument("--gpu-only", action="store_true", help="only what needs a GPU; without one: exit code 2")
    parser.add_argument(
        "--deadline",
        metavar="SECONDS",
        help=f"end after so long; lines that no longer fit are named (default: {RECORD_DEADLINE_S:.0f} for --record on "
        "a CUDA machine, else none)",
    )
    parser.add_argument("--compile", action="store_true", help="instead: compile every kernel for GPUs, here or not")
    parser.add_argument("--json", action="store_true", help="one JSON object on the last line of stdout")
    parser.add_argument("--model", metavar="M", help="a Hub id or a local folder (default: the default model)")


def run(chosen: argparse.Namespace) -> int:
    """Run every line that this machine can; 1 if one of them, or a kernel's test, failed."""
    if chosen.compile:
        return bench_compile.run(chosen.json, chosen.quick)
    from explorer.measuring.device import pick_device

    device = pick_device()
    deadline_s = _deadline_s(chosen, device.type)
    writable(chosen.record)
    lines = lines_for(device.type, chosen)
    # Every line is checked before the first is measured.
    jobs = [(line, lab_of(line.lab, line.settings | ((line.quick or {}) if chosen.quick else {}))) for line in lines]
    have_weights(chosen.model)
    if device.type != "cuda":
        _tell_what_needs_a_gpu(chosen)
    suite = Suite(chosen, device, deadline_s)
    if device.type == "cuda" and chosen.record:
        suite.test_kernels()
    for line, lab in jobs:
        suite.measure(line, lab)
    suite.print()
    return 1 if suite.failures else 0


def lines_for(kind: str, chosen: argparse.Namespace) -> list[Benchmark]:
    """The lines that are to run on this kind of device; those for a GPU first, because time may run out.

    Raises:
        InputError: only those for a GPU are wanted, and there is none.
    """
    for_gpu = [line for line in SUITE if line.needs_gpu]
    if kind != "cuda" and chosen.gpu_only:
        raise InputError(
            Text(
                "--gpu-only: torch finds no CUDA device here; leave it out to run the lines for a CPU",
                "--gpu-only：torch 在这里找不到 CUDA 设备；去掉它即可运行 CPU 的部分",
            )
        )
    rest = [] if chosen.gpu_only else [line for line in SUITE if not line.needs_gpu]
    lines = (for_gpu if kind == "cuda" else []) + rest
    return [line for line in lines if line.quick is not None] if chosen.quick else lines


class Suite:
    """One run of the suite: what was measured, what failed, what was left out.

    Attributes:
        records: finished, the kernels' tests included.
        failures: lines that failed, and the kernels' tests if they did.

    Args:
        chosen: the command line.
        device: the `torch.device` that labs will pick.
        deadline_s: seconds for all of it; None for no limit but each line's own.
    """

    def __init__(self, chosen: argparse.Namespace, device: Any, deadline_s: float | None):
        self.records: list[Record] = []
        self.failures = 0
        self._chosen, self._device = chosen, device
        self._ends_at = None if deadline_s is None else time.monotonic() + deadline_s
        self._rows: list[dict[str, Any]] = []
        self._left_out: list[str] = []
        self._tests: dict[str, Any] | None = None

    def test_kernels(self) -> None:
        """Run the kernels' tests on the GPU; their result is the first Record."""
        from explorer.cli import bench_kernel_tests

        progress("kernel-tests: on this GPU, without the interpreter")
        record = bench_kernel_tests.run(self._device, min(TESTS_DEADLINE_S, self._left_s()))
        self._keep(record)
        self._tests = record.summary
        if record.summary["problem"] is not None:
            self.failures += 1
            progress(f"kernel-tests: {record.summary['problem']}")

    def measure(self, line: Benchmark, lab: Lab) -> None:
        """Run one line, as long as there is time for it."""
        name = " ".join([line.lab, *(f"{key}={value}" for key, value in line.settings.items())])
        left_s, expected_s = self._left_s(), lab.expected_seconds(self._device.type) or 0.0
        if left_s < max(SHORTEST_S, expected_s):
            takes = f", and it takes about {expected_s:.0f}" if expected_s else ""
            self._leave_out(f"{name}: {max(left_s, 0):.0f} s are left{takes}")
            return
        stop, cut_short = threading.Event(), left_s < LINE_DEADLINE_S
        timer = threading.Timer(left_s, stop.set)
        timer.daemon = True
        if cut_short:  # a lab's own deadline does not count the loading of its model
            timer.start()
        try:
            record = follow(lab, model=self._chosen.model, deadline_s=min(left_s, LINE_DEADLINE_S), stop=stop)
        except (DeadlineExceeded, Stopped) as error:
            if cut_short:
                self._leave_out(f"{name}: not done in the {left_s:.0f} s that were left")
            else:
                self._fail(line, error)
        except ExplorerError as error:
            self._fail(line, error)
        else:
            self._keep(record)
            self._rows.append(row_of(line, record, self._device.type))
        finally:
            timer.cancel()

    def print(self) -> None:
        """The table, or the JSON object, with everything that did not run."""
        facts = self.records[-1].provenance if self.records else {}
        if self._chosen.json:
            found = {"rows": self._rows, "failures": self.failures, "left_out": self._left_out}
            result_json(found | {"kernel_tests": self._tests, "provenance": facts})
            return
        result(table(HEADINGS, [[row[name] for name in HEADINGS] for row in self._rows]))
        for line in self._left_out:
            result(f"left out: {line}")
        if self._tests is not None:
            result("kernel tests: " + ", ".join(f"{name} {value}" for name, value in self._tests.items()))
        if facts:
            result(
                f"{facts['device']}, {facts['threads']} threads, torch {facts['torch']}, "
                f"transformers {facts['transformers']}, commit {facts['commit']}, {facts['date']}, "
                f"load average {facts['load_average_1m']}"
            )

    def _left_s(self) -> float:
        return LINE_DEADLINE_S if self._ends_at is None else self._ends_at - time.monotonic()

    def _keep(self, record: Record) -> None:
        """Add a Record; the file is written now, so that whatever ends this run leaves what was done."""
        self.records.append(record)
        if self._chosen.record:
            found = [json.loads(each.to_json()) for each in self.records]
            write(self._chosen.record, json.dumps(found, indent=2) + "\n")

    def _fail(self, line: Benchmark, error: ExplorerError) -> None:
        self.failures += 1
        progress(f"{line.lab}: {error.text.en}")

    def _leave_out(self, why: str) -> None:
        self._left_out.append(why)
        progress(f"left out: {why}")


def row_of(line: Benchmark, record: Record, kind: str) -> dict[str, Any]:
    """One line of the table.

    The bars that speak of speed are a CPU's unless the line needs a GPU, so elsewhere they are left out. A lab whose
    largest size did not fit has no value: then no bar is met or missed.
    """
    value = record.summary[line.value]
    has_bar = line.needs_gpu or kind == "cpu" or line.at_most is not None
    return {
        "lab": line.lab,
        "settings": ", ".join(f"{name}={record.params[name]}" for name in line.settings) or "defaults",
        "number": line.value,
        "value": value,
        "p20": record.summary.get(f"{line.value}_p20"),
        "p80": record.summary.get(f"{line.value}_p80"),
        "bar": line.bar() if has_bar else None,
        "met": line.met(value) if has_bar and value is not None else None,
        "against": line.baseline,
    }


def _tell_what_needs_a_gpu(chosen: argparse.Namespace) -> None:
    tests = "the kernels' tests on a GPU and " if chosen.record else ""
    count = sum(line.needs_gpu for line in SUITE)
    progress(
        f"no GPU here (torch finds no CUDA device): {tests}the {count} lines that need one do not run; "
        "what follows is a CPU's"
    )


def _deadline_s(chosen: argparse.Namespace, kind: str) -> float | None:
    if chosen.deadline is not None:
        return float(coerce(DEADLINE, chosen.deadline))
    return RECORD_DEADLINE_S if chosen.record and kind == "cuda" else None

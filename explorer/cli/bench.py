"""Run the benchmark suite: ratios against named baselines, in one table."""

import argparse
import json
from typing import Any

from explorer.benchmarks import SUITE, Benchmark
from explorer.cli import bench_compile
from explorer.cli.output import progress, result, result_json, table, writable, write
from explorer.cli.running import follow, have_weights, lab_of
from explorer.errors import ExplorerError
from explorer.measuring.record import Record

HEADINGS = ("lab", "settings", "number", "value", "p20", "p80", "bar", "met", "against")


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--quick", action="store_true", help="fewer and smaller runs")
    parser.add_argument("--record", metavar="FILE", help="write all Records as a JSON list")
    parser.add_argument("--compile", action="store_true", help="instead: compile every kernel for GPUs, here or not")
    parser.add_argument("--json", action="store_true", help="one JSON object on the last line of stdout")
    parser.add_argument("--model", metavar="M", help="a Hub id or a local folder (default: the default model)")


def run(chosen: argparse.Namespace) -> int:
    """Run every line that this machine can; 1 if one of them failed."""
    if chosen.compile:
        return bench_compile.run(chosen.json, chosen.quick)
    from explorer.measuring.device import pick_device

    writable(chosen.record)
    have_weights(chosen.model)
    kind = pick_device().type
    if kind == "cpu":
        progress("no GPU here: the lines that run on a CPU are run")
    lines = [line for line in SUITE if kind == "cuda" or not line.needs_gpu]
    if chosen.quick:
        lines = [line for line in lines if line.quick is not None]
    # Every line is checked before the first is measured.
    jobs = [(line, lab_of(line.lab, line.settings | ((line.quick or {}) if chosen.quick else {}))) for line in lines]
    records: list[Record] = []
    rows: list[dict[str, Any]] = []
    try:
        for line, lab in jobs:
            try:
                record = follow(lab, model=chosen.model, deadline_s=1800.0)
            except ExplorerError as error:
                progress(f"{line.lab}: {error.text.en}")
                continue
            records.append(record)
            rows.append(row_of(line, record, kind))
    finally:
        if chosen.record and records:
            write(chosen.record, json.dumps([json.loads(record.to_json()) for record in records], indent=2) + "\n")
    failures = len(jobs) - len(rows)
    _print(rows, records, failures, chosen.json)
    return 1 if failures else 0


def row_of(line: Benchmark, record: Record, kind: str) -> dict[str, Any]:
    """One line of the table. The bars that speak of speed are a CPU's, so on a GPU they are left out."""
    value = record.summary[line.value]
    has_bar = kind == "cpu" or line.at_most is not None
    return {
        "lab": line.lab,
        "settings": ", ".join(f"{name}={record.params[name]}" for name in line.settings) or "defaults",
        "number": line.value,
        "value": value,
        "p20": record.summary.get(f"{line.value}_p20"),
        "p80": record.summary.get(f"{line.value}_p80"),
        "bar": line.bar() if has_bar else None,
        "met": line.met(value) if has_bar else None,
        "against": line.baseline,
    }


def _print(rows: list[dict[str, Any]], records: list[Record], failures: int, as_json: bool) -> None:
    facts = records[0].provenance if records else {}
    if as_json:
        result_json({"rows": rows, "failures": failures, "provenance": facts})
        return
    result(table(HEADINGS, [[row[name] for name in HEADINGS] for row in rows]))
    if facts:
        result(
            f"{facts['device']}, {facts['threads']} threads, torch {facts['torch']}, "
            f"transformers {facts['transformers']}, commit {facts['commit']}, {facts['date']}, "
            f"load average {facts['load_average_1m']}"
        )

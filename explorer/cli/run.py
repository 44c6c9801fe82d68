"""Run one lab and print its result."""

import argparse
import json

from explorer.cli.output import facts, progress, result, result_json, table, writable, write
from explorer.cli.running import follow, have_weights, lab_of, settings_of
from explorer.measuring.record import Record
from explorer.params import Param, ParamSpec, coerce
from explorer.text import Text

DEADLINE = ParamSpec("deadline", float, 600.0, Param(Text("Deadline", "时限"), minimum=1, maximum=1800))


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("lab", metavar="LAB", help="its name; `labs` lists them")
    parser.add_argument("--set", action="append", default=[], metavar="name=value", help="a setting; may be repeated")
    parser.add_argument("--json", action="store_true", help="the Record as one JSON object, on the last line of stdout")
    parser.add_argument("--csv", metavar="FILE", help="write the rows as CSV")
    parser.add_argument("--out", metavar="FILE", help="write the Record as JSON; also what there is after Ctrl-C")
    parser.add_argument("--model", metavar="M", help="a Hub id or a local folder (default: the default model)")
    parser.add_argument("--device", help="cpu or cuda (default: the GPU where there is one)")
    parser.add_argument("--deadline", default="600", metavar="SECONDS", help="how long the run may take (default 600)")


def run(chosen: argparse.Namespace) -> int:
    """Check everything, run, write, print."""
    lab = lab_of(chosen.lab, settings_of(chosen.set))
    deadline_s = coerce(DEADLINE, chosen.deadline)
    writable(chosen.csv, chosen.out)
    have_weights(chosen.model)

    def save(record: Record) -> None:
        if chosen.out:
            write(chosen.out, record.to_json(indent=2) + "\n")
        if chosen.csv:
            write(chosen.csv, record.to_csv())

    def keep(record: Record) -> None:
        save(record)
        if chosen.out or chosen.csv:
            progress(f"{lab.name}: kept {len(record.rows)} rows of a run that did not end")

    record = follow(lab, keep, model=chosen.model, device=chosen.device, deadline_s=deadline_s)
    save(record)
    if chosen.json:
        result_json(json.loads(record.to_json()))
    else:
        result(text_of(record))
    return 0


def text_of(record: Record) -> str:
    """A Record for a terminal: rows with units, summary, provenance."""
    headings = [f"{c.name} [{c.unit}]" if c.unit else c.name for c in record.columns]
    rows = [[row[column.name] for column in record.columns] for row in record.rows]
    return "\n".join(
        [table(headings, rows), "", "summary", facts(record.summary), "", "provenance", facts(record.provenance)]
    )

"""Records that ship with this repository: measured earlier, on a named device, and shown as such.

`assets/records/*.json` holds lists of Records, as `python -m explorer bench --record FILE` writes them. When one is
loaded, its measured columns become recorded: a page cannot show them as live by mistake.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from explorer.measuring.provenance import REPOSITORY
from explorer.measuring.record import Column, Origin, Record

FOLDER = REPOSITORY / "assets" / "records"
FIELDS = ("lab", "params", "columns", "rows", "summary", "provenance")
# What a reader must be told about a number that was not measured before his eyes.
NEEDED = ("device", "device_kind", "implementation", "torch", "commit", "date")


def shipped(lab: str | None = None, folder: Path = FOLDER) -> list[Record]:
    """All Records of the folder, in order of file name.

    Args:
        lab: only those of this lab.
        folder: where they are; none need be there.

    Raises:
        ValueError: a file is no list of Records, or one of them does not say what it must; file and Record are named.
    """
    found = [record for path in sorted(folder.glob("*.json")) for record in load(path)]
    return [record for record in found if lab is None or record.lab == lab]


def load(path: Path) -> list[Record]:
    """The Records of one file.

    Raises:
        ValueError: as `shipped`.
    """
    try:
        items = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path.name}: no JSON ({error})") from None
    if not isinstance(items, list):
        raise ValueError(f"{path.name}: expected a list of Records")
    return [_record(item, f"{path.name}, Record {number}") for number, item in enumerate(items, 1)]


def _record(item: Any, where: str) -> Record:
    if not isinstance(item, dict) or sorted(item) != sorted(FIELDS):
        raise ValueError(f"{where}: expected exactly the fields {', '.join(FIELDS)}")
    try:
        record = Record.from_json(json.dumps(item))
    except (TypeError, KeyError, ValueError) as error:
        raise ValueError(f"{where}: its columns cannot be read ({type(error).__name__}: {error})") from None
    where = f"{where} ({record.lab})"
    silent = [name for name in NEEDED if not record.provenance.get(name)]
    if silent:
        raise ValueError(f"{where}: its provenance does not say {', '.join(silent)}")
    if record.provenance.get("complete") is not True:
        raise ValueError(f"{where}: the run did not end by itself")
    names = {column.name for column in record.columns}
    for number, row in enumerate(record.rows, 1):
        if set(row) != names:
            raise ValueError(f"{where}: row {number} has {sorted(set(row) ^ names)} where the columns differ")
    if not record.rows:
        raise ValueError(f"{where}: there are no rows")
    return replace(record, columns=tuple(map(_as_recorded, record.columns)))


def _as_recorded(column: Column) -> Column:
    return replace(column, origin=Origin.RECORDED) if column.origin is Origin.MEASURED else column

"""A Record: what was run, what came out, and where every number comes from. JSON in and out.

The same Record feeds a page, the command line, the benchmark table and the download.
"""

import csv
import io
import json
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

Row = dict[str, Any]


class Origin(StrEnum):
    """Where a number comes from. The five are never mixed and always shown."""

    COMPUTED = "computed"  # a formula, from a named configuration
    MEASURED = "measured"  # here, now
    RECORDED = "recorded"  # measured earlier on a named device
    QUOTED = "quoted"  # a paper's or a vendor's figure
    TOY = "toy"  # an illustration


@dataclass(frozen=True)
class Column:
    """One column of a Record's rows.

    Attributes:
        name: the key in each row, with the unit in it where one exists (`step_ms`, `cache_bytes`).
        unit: "ms", "bytes", "tokens", "x" (a ratio), "" for none.
        origin: where its numbers come from.
    """

    name: str
    unit: str
    origin: Origin


@dataclass
class Record:
    """One run of one lab.

    Attributes:
        lab: the lab's name.
        params: its parameters, complete.
        columns: what the rows hold.
        rows: the results in order.
        summary: the few numbers that answer the lab's question.
        provenance: device, implementation, dtype, threads, model and weight hash, versions, commit, date, repeats.
    """

    lab: str
    params: dict[str, Any]
    columns: tuple[Column, ...]
    rows: list[Row] = field(default_factory=list)
    summary: dict[str, Any] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)

    def to_json(self, indent: int | None = None) -> str:
        """JSON text; non-finite numbers become null."""
        return json.dumps(_finite(asdict(self)), indent=indent, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "Record":
        """The Record that `to_json` wrote."""
        data = json.loads(text)
        data["columns"] = tuple(Column(c["name"], c["unit"], Origin(c["origin"])) for c in data["columns"])
        return cls(**data)

    def to_csv(self) -> str:
        """The rows as CSV, with a header line."""
        out = io.StringIO()
        names = [column.name for column in self.columns]
        writer = csv.DictWriter(out, names, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        return out.getvalue()


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    return value

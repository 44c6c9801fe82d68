"""A Record as the lab panel shows it: cells, figure, summary, the line that says where the numbers come from."""

import json
import math
from typing import Any

from explorer.labs.base import Lab
from explorer.measuring.provenance import BUSY
from explorer.measuring.record import Column, Record, Row
from explorer.text import Lang
from pages import _content
from pages._lab_declaration import percentile, shown, spreads

STRINGS = "lab_panel"
Strings = dict[str, str]


def words(lang: Lang) -> Strings:
    """The panel's own texts."""
    return _content.strings(STRINGS, lang)


def result(lab: Lab, record: Record, lang: Lang) -> dict[str, Any]:
    """Everything that is drawn for `record`; with the downloads' exact contents once the run is over."""
    columns = shown(type(lab))
    return {
        "rows": [[[cell(row[c.name], lang), spread(type(lab), row, c.name)] for c in columns] for row in record.rows],
        "figure": figure(type(lab), record, lang),
        "complete": bool(record.provenance.get("complete")),
    }


def ending(lab: Lab, record: Record, lang: Lang) -> dict[str, Any]:
    """What is added when the run is over: summary, provenance, files."""
    answer = lab.answer(record.summary) if record.summary else None
    return {
        "answer": None if answer is None else answer.get(lang) + _disturbed(record, lang),
        "summary": [] if answer else summary(type(lab), record.summary, lang),
        "provenance": provenance_line(record, lang),
        "facts": [[name, cell(value, lang)] for name, value in record.provenance.items()],
        "json": record.to_json(indent=2) + "\n",
        "csv": record.to_csv(),
    }


def _disturbed(record: Record, lang: Lang) -> str:
    """A sentence if other programs had the machine during the run.

    With a core busy elsewhere, a step over all cores waits for the slowest of them at each of its small parts, every
    time: the repeats may agree and still be many times too long.
    """
    facts = record.provenance
    loads = [load for name in ("load_average_1m", "load_average_end_1m") if (load := facts.get(name)) is not None]
    cores = facts.get("cpu_count")
    if not loads or not cores or max(loads) <= BUSY * cores:
        return ""
    return words(lang)["disturbed"].format(load=f"{max(loads):g}", cores=cores)


def cell(value: Any, lang: Lang) -> str:
    """A value as it stands in the table: whole numbers in full, others with four digits that count."""
    if value is None or value != value:
        return "–"
    if isinstance(value, bool):
        return words(lang)["yes" if value else "no"]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"
    return str(value)


def spread(lab: type[Lab], row: Row, name: str) -> str | None:
    """The range from the 20th to the 80th percentile of a cell's repeats, where the lab gives it."""
    low, high = (row.get(other) for other in spreads(lab).get(name, ("", "")))
    return None if low is None or high is None else f"{cell(low, 'en')}–{cell(high, 'en')}"


def summary(lab: type[Lab], values: dict[str, Any], lang: Lang) -> list[list[str]]:
    """The summary's entries as name and value, with a column's title where one has that name and spreads beside."""
    units = {column.name: "×" if column.unit == "x" else column.unit for column in lab.columns}
    beside = {percentile(name, rank) for name in values for rank in (20, 80)}
    lines = []
    for name, value in values.items():
        if name in beside:
            continue
        title = lab.column_titles[name].get(lang) if name in lab.column_titles else name
        text = f"{cell(value, lang)} {units.get(name, '')}".strip()
        low, high = values.get(percentile(name, 20)), values.get(percentile(name, 80))
        lines.append([title, text if low is None or high is None else f"{text} ({cell(low, lang)}–{cell(high, lang)})"])
    return lines


def figure(lab: type[Lab], record: Record, lang: Lang) -> dict[str, Any] | None:
    """The rows as a Plotly figure with the lab's own chart; None without a chart or a row."""
    chart = lab.chart
    if chart is None or not record.rows:
        return None
    units = {column.name: column for column in record.columns}
    traces = [_trace(lab, record, name, lang) for name in chart.y]
    values_title = lab.column_titles[chart.y[0]].get(lang) if len(chart.y) == 1 else ""
    return {
        "data": traces,
        "layout": {
            "xaxis": _axis(lab.column_titles[chart.x].get(lang), units[chart.x], log_base=2 if chart.log_x else None)
            | _around_one({row[chart.x] for row in record.rows} if chart.log_x else set()),
            "yaxis": _axis(values_title, units[chart.y[0]], log_base=10 if chart.log_y else None)
            | ({} if chart.log_y else {"rangemode": "tozero"}),
            "showlegend": len(chart.y) > 1,
            "uirevision": json.dumps(record.params),  # zoom is kept while rows arrive, not from run to run
        },
    }


def _trace(lab: type[Lab], record: Record, name: str, lang: Lang) -> dict[str, Any]:
    chart = lab.chart
    assert chart is not None
    # A chart's points need an order of their own: a row measured late may stand at a small x.
    rows = sorted(record.rows, key=lambda row: row[chart.x]) if chart.kind == "line" else record.rows
    xs = [str(row[chart.x]) if chart.kind == "bar" else row[chart.x] for row in rows]
    trace: dict[str, Any] = {
        "type": "bar" if chart.kind == "bar" else "scatter",
        "name": lab.column_titles[name].get(lang),
        "x": xs,
        "y": [row[name] for row in rows],
    }
    if chart.kind == "line":
        trace["mode"] = "lines+markers"
    if name in spreads(lab):
        low, high = spreads(lab)[name]
        trace["error_y"] = {
            "type": "data",
            "symmetric": False,
            "array": [_gap(row[high], row[name]) for row in rows],
            "arrayminus": [_gap(row[name], row[low]) for row in rows],
        }
        if chart.kind == "bar":
            trace["error_y"]["color"] = "var(--ink)"  # Plotly's own grey is lost on a dark page
    return trace


def _gap(high: float | None, low: float | None) -> float | None:
    return None if high is None or low is None else max(high - low, 0.0)


def _around_one(xs: set[float]) -> dict[str, Any]:
    """A range of two octaves around a single point; Plotly's own would reach down to an eighth of a token."""
    return {"range": [math.log10(x / 2) for x in xs] + [math.log10(x * 2) for x in xs]} if len(xs) == 1 else {}


def _axis(title: str, column: Column, log_base: int | None) -> dict[str, Any]:
    unit = "×" if column.unit == "x" else column.unit
    words_ = f"{title} ({unit})" if title and unit else title or unit
    axis: dict[str, Any] = {"title": {"text": words_}}
    if log_base is not None:
        axis |= {"type": "log", "dtick": "0.30102999566398120" if log_base == 2 else 1, "exponentformat": "none"}
        axis["tickformat"] = ","
    return axis


def provenance_line(record: Record, lang: Lang) -> str:
    """Device, implementation, dtype, model, repeats, versions, commit, date and noise, in one line."""
    facts = record.provenance
    text = words(lang)
    parts = [
        _filled(text, "provenance.threads", facts, "device", "threads"),
        facts.get("implementation"),
        facts.get("dtype"),
        _filled(text, "provenance.model", facts, "model", "weights"),
        _filled(text, "provenance.repeats", facts, "repeats", "warmup", "clock"),
        _filled(text, "provenance.versions", facts, "torch", "transformers"),
        _filled(text, "provenance.commit", facts, "commit"),
        str(facts["date"]).replace("T", " ").replace("Z", " UTC") if "date" in facts else None,
        _filled(text, "provenance.noise", {"load": facts.get("load_average_1m")}, "load"),
        _filled(text, "provenance.waiting", {"n": facts.get("jobs_waiting") or None}, "n"),
    ]
    return " · ".join(str(part) for part in parts if part)


def _filled(text: Strings, key: str, facts: dict[str, Any], *names: str) -> str | None:
    """The text with its facts, or None if one of them is not known."""
    values = {name: _each(facts.get(name), text) for name in names}
    return None if any(value is None for value in values.values()) else text[key].format(**values)


def _each(value: Any, text: Strings) -> Any:
    """Several values of one fact ("5, 31": the lab's parts differ) as an alternative."""
    return value.replace(", ", text["or"]) if isinstance(value, str) and value.replace(", ", "").isdigit() else value

"""A lab's declaration as the lab panel in the browser needs it: controls, columns, words. Values, no arithmetic."""

from typing import Any

from explorer.labs.base import Lab
from explorer.measuring.record import Column
from explorer.params import ParamSpec, specs_of
from explorer.text import Lang
from pages._badge import MARKS, MEANINGS, WORDS

# From here on a slider in equal steps is too coarse at its low end: it walks in powers of two instead.
_WIDE = 64


def declaration(lab: type[Lab], lang: Lang) -> dict[str, Any]:
    """What the widget draws before anything is measured."""
    return {
        "lab": lab.name,
        "anchor": anchor(lab.name),
        "title": lab.title.get(lang),
        "question": lab.question.get(lang),
        "expect": lab.expect.get(lang),
        "source": lab.source,
        "controls": [control(lab.name, spec, lang) for spec in specs_of(lab)],
        "columns": columns(lab, lang),
        "command": f"python -m explorer run {lab.name}",
    }


def anchor(name: str) -> str:
    """The id of a lab's panel in the page, for links to it."""
    return f"lab-{name}"


def spreads(lab: type[Lab]) -> dict[str, tuple[str, str]]:
    """Column -> the columns with its 20th and 80th percentile: as its chart says, or by name (`ratio`, `ratio_p20`)."""
    names = {column.name for column in lab.columns}
    found: dict[str, tuple[str, str]] = {}
    for name in names:
        for before_unit in (False, True):
            low, high = (percentile(name, rank, before_unit=before_unit) for rank in (20, 80))
            if {low, high} <= names:
                found[name] = (low, high)
    if lab.chart is not None:
        found |= {name: (low, lab.chart.high[name]) for name, low in lab.chart.low.items() if name in lab.chart.high}
    return found


def percentile(name: str, rank: int, *, before_unit: bool = False) -> str:
    """`ratio` -> `ratio_p20`; with its unit at the end, `engine_ms` -> `engine_p20_ms`."""
    stem, sign, unit = name.rpartition("_")
    return f"{stem}_p{rank}_{unit}" if before_unit and sign else f"{name}_p{rank}"


def shown(lab: type[Lab]) -> list[Column]:
    """The columns that stand in the table: a column with a number's spread is shown beside that number instead."""
    beside = {name for pair in spreads(lab).values() for name in pair}
    return [column for column in lab.columns if column.name not in beside]


def columns(lab: type[Lab], lang: Lang) -> list[dict[str, Any]]:
    """The table's columns with their headings, units and origins."""
    return [
        {
            "name": column.name,
            "title": lab.column_titles[column.name].get(lang),
            "unit": "×" if column.unit == "x" else column.unit,
            "origin": column.origin.value,
            "mark": MARKS[column.origin],
            "word": WORDS[column.origin].get(lang),
            "meaning": MEANINGS[column.origin].get(lang),
        }
        for column in shown(lab)
    ]


def control(lab: str, spec: ParamSpec, lang: Lang) -> dict[str, Any]:
    """One parameter as an entry of `KV.controls` (assets/js/kv-controls.js).

    Raises:
        ValueError: a number without a range: nothing could be drawn, and nothing would bound a visitor.
    """
    rule = spec.param
    entry: dict[str, Any] = {
        "name": spec.name,
        "key": f"{lab}.{spec.name}",
        "label": rule.label.get(lang),
        "value": spec.default,
    }
    if rule.help is not None:
        entry["help"] = rule.help.get(lang)
    if rule.choices:
        return entry | {
            "kind": "select",
            "choices": [[choice, _named(choice, rule.unit, lang)] for choice in rule.choices],
        }
    if spec.kind is bool:
        return entry | {"kind": "check"}
    if spec.kind is str:
        longest = rule.max_length or 1000
        return entry | {"kind": "text", "maxLength": longest} | ({"rows": 3} if longest > 120 else {})
    return entry | _range(lab, spec, lang)


def _named(choice: Any, unit: str, lang: Lang) -> str:
    if not isinstance(choice, int) or isinstance(choice, bool):
        return str(choice)
    return f"{choice:,} {_unit(unit, lang, choice)}".strip()


def _unit(unit: str, lang: Lang, value: float = 2) -> str:
    """The unit as it stands behind a value."""
    if unit != "tokens":
        return unit
    return "个 token" if lang == "zh" else "token" if value == 1 else "tokens"


def _range(lab: str, spec: ParamSpec, lang: Lang) -> dict[str, Any]:
    low, high, step = spec.param.minimum, spec.param.maximum, spec.param.step
    if low is None or high is None:
        raise ValueError(f"lab {lab}: {spec.name} needs a minimum and a maximum to have a control")
    unit, one = _unit(spec.param.unit, lang), _unit(spec.param.unit, lang, 1)
    how: dict[str, Any] = {"kind": "range", "min": low, "max": high, "unit": unit, "unitOfOne": one}
    if spec.kind is int and low >= 1 and high / low >= _WIDE:
        return how | {"scale": "log2", "perOctave": 1, "step": step or 1}
    return how | {"exact": True, "step": step or (1 if spec.kind is int else 0.01)}

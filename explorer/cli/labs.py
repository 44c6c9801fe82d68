"""List all labs with their parameters and ranges."""

import argparse
from typing import Any

from explorer.cli.output import result, result_json
from explorer.labs.base import LABS, Lab
from explorer.params import ParamSpec, specs_of
from explorer.text import Text


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--json", action="store_true", help="one JSON object")


def run(chosen: argparse.Namespace) -> int:
    """Print the list."""
    if chosen.json:
        result_json({"labs": [describe(lab) for lab in LABS]})
    else:
        result("\n\n".join(_paragraph(lab) for lab in LABS) or "no labs")
    return 0


def describe(lab: type[Lab]) -> dict[str, Any]:
    """A lab's declaration as JSON values."""
    return {
        "name": lab.name,
        "page": lab.page,
        "title": _both(lab.title),
        "question": _both(lab.question),
        "expect": _both(lab.expect),
        "source": lab.source,
        "needs_model": lab.needs_model,
        "params": [_param(spec) for spec in specs_of(lab)],
        "columns": [{"name": c.name, "unit": c.unit, "origin": str(c.origin)} for c in lab.columns],
    }


def _param(spec: ParamSpec) -> dict[str, Any]:
    rule = spec.param
    return {
        "name": spec.name,
        "type": spec.kind.__name__,
        "default": spec.default,
        "minimum": rule.minimum,
        "maximum": rule.maximum,
        "step": rule.step,
        "choices": list(rule.choices) or None,
        "unit": rule.unit,
        "max_length": rule.max_length,
        "label": _both(rule.label),
        "help": _both(rule.help) if rule.help else None,
    }


def _paragraph(lab: type[Lab]) -> str:
    lines = [f"{lab.name}: {lab.title.en}", f"  {lab.question.en}"]
    for spec in specs_of(lab):
        unit = f" {spec.param.unit}" if spec.param.unit else ""
        lines.append(f"  --set {spec.name}={spec.default}{unit}   {spec.param.label.en}{_range(spec)}")
    return "\n".join(lines)


def _range(spec: ParamSpec) -> str:
    rule = spec.param
    if rule.choices:
        return f" ({', '.join(map(str, rule.choices))})"
    if rule.minimum is not None and rule.maximum is not None:
        return f" ({rule.minimum:g} to {rule.maximum:g})"
    return f" (at most {rule.max_length} characters)" if rule.max_length else ""


def _both(text: Text) -> dict[str, str]:
    return {"en": text.en, "zh": text.zh}

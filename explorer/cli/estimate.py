"""Compute how large a model's cache is, by formula, from its configuration."""

import argparse

from explorer.cli.output import result, result_json
from explorer.params import Param, ParamSpec, coerce
from explorer.text import Text

# Whole numbers are read here and judged by the estimator, which knows the limits.
_TOKENS = ParamSpec("tokens", int, 0, Param(Text("Tokens", "token 数")))
_BATCH = ParamSpec("batch", int, 1, Param(Text("Batch", "批大小")))


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("model", metavar="MODEL|config.json", help="a catalogue name, or a config.json")
    parser.add_argument("--tokens", required=True, metavar="N", help="tokens kept per sequence")
    parser.add_argument("--batch", default="1", metavar="B", help="sequences (default 1)")
    parser.add_argument("--dtype", default="bf16", help="format of the cache's elements (default bf16)")
    parser.add_argument("--json", action="store_true", help="one JSON object")


def run(chosen: argparse.Namespace) -> int:
    """Compute and print."""
    from explorer.estimators import report

    tokens, batch = coerce(_TOKENS, chosen.tokens), coerce(_BATCH, chosen.batch)
    found = report.report(chosen.model, tokens, batch, chosen.dtype)
    if chosen.json:
        result_json(found)
    else:
        result(report.text(found))
    return 0

"""Compute how large a model's cache is, by formula, from its configuration."""

import argparse

from explorer.cli.output import result, result_json
from explorer.params import Param, ParamSpec, coerce
from explorer.text import Text


def _number(name: str) -> ParamSpec:
    """Whole numbers are read here and judged by the estimator, which knows the limits."""
    return ParamSpec(name, int, 0, Param(Text(name, name)))


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("model", metavar="MODEL|config.json", help="a catalogue name, a config.json or a Hub id")
    parser.add_argument("--tokens", required=True, metavar="N", help="tokens kept per sequence")
    parser.add_argument("--batch", default="1", metavar="B", help="sequences (default 1)")
    parser.add_argument("--dtype", default="bf16", help="the model's element format (default bf16)")
    parser.add_argument(
        "--kv-format", metavar="F", help="a packed cache: fp8_head, fp8_ds_mla, q8_0, q4_0, kivi-2, ..."
    )
    parser.add_argument("--tp", default="1", metavar="N", help="tensor-parallel ranks (default 1)")
    parser.add_argument("--pp", default="1", metavar="N", help="pipeline stages (default 1)")
    parser.add_argument("--dp", default="1", metavar="N", help="data-parallel replicas (default 1)")
    parser.add_argument("--include-mtp", action="store_true", help="count the multi-token-prediction layers too")
    parser.add_argument(
        "--assume", action="append", default=[], metavar="SWITCH", help="turn one of the model's switches; repeatable"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")


def run(chosen: argparse.Namespace) -> int:
    """Compute and print."""
    from explorer.cli.models import spec_of
    from explorer.estimators.ranks import Ranks
    from explorer.estimators.report import Options, report
    from explorer.estimators.report_text import text

    tokens, batch, tp, pp, dp = (
        coerce(_number(name), getattr(chosen, name)) for name in ("tokens", "batch", "tp", "pp", "dp")
    )
    options = Options(
        batch, chosen.dtype, chosen.kv_format, Ranks(tp, pp, dp), chosen.include_mtp, tuple(chosen.assume)
    )
    found = report(spec_of(chosen.model, options.switches), tokens, options)
    if chosen.json:
        result_json(found)
    else:
        result(text(found))
    return 0

"""The estimate as the command line gives it: one flat JSON object, or a few lines of text."""

import re
from pathlib import Path
from typing import Any

from explorer.errors import InputError
from explorer.estimators.memory import Estimate, LedgerRow, cache_bytes, crossing_tokens
from explorer.specs import units
from explorer.specs.catalog import model_named, models
from explorer.specs.dtypes import dtype_of
from explorer.specs.from_config import from_config
from explorer.specs.limits import short
from explorer.specs.model import ModelSpec
from explorer.specs.read_config import read_config

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_LONGEST_NAME = 1_000


def resolve(model: str) -> ModelSpec:
    """The model meant by `model`: a catalogue name, or the path of a `config.json` or of a folder that holds one.

    Raises:
        InputError: it is neither; says what would be right.
    """
    if not isinstance(model, str) or not model.strip() or len(model) > _LONGEST_NAME or "\0" in model:
        raise InputError(
            f"model={short(model)}: expected a catalogue name ({', '.join(models())}) or the path of a config.json",
            f"model={short(model)}：应为目录中的名称（{'、'.join(models())}）或 config.json 的路径",
        )
    try:
        return model_named(model)
    except InputError:
        path = Path(model)
        if _exists(path):
            return from_config(read_config(path), _name_of(path))
        if model.endswith(".json") or model.startswith((".", "/")):
            raise InputError(
                f"there is no file {short(path.name)}: expected the path of a config.json, or a catalogue name",
                f"没有文件 {short(path.name)}：应为 config.json 的路径，或目录中的名称",
            ) from None
        if _HUB_ID.fullmatch(model.strip()):
            raise InputError(
                f"{short(model)} is not in the catalogue, and nothing is fetched here: download its config.json from "
                "the Hugging Face Hub and give its path",
                f"{short(model)} 不在目录中，这里也不联网：请从 Hugging Face Hub 下载它的 config.json，再给出路径",
            ) from None
        raise


def report(model: str, tokens: int, batch: int = 1, dtype: str = "bf16") -> dict[str, Any]:
    """The size of a model's cache, ready for JSON.

    Args:
        model: catalogue name, or path of a `config.json` or of a folder with one.
        tokens: tokens kept per sequence.
        batch: number of sequences.
        dtype: element format of the cache.

    Returns:
        `total_bytes`, `bytes_per_token_growing` and `constant_bytes` (both for one sequence), `read_bytes_per_step`
        (decoding one token of every sequence), `total_gib` (2**30) and `total_gb` (10**9), `ledger` (by run of like
        layers), `weight_bytes_16bit` and `crossing_tokens` (null if the weights are not known), `assumptions`,
        `model`, `source`, `verified` and the inputs.

    Raises:
        InputError: the model, a size or the format cannot be used.
    """
    spec, form = resolve(model), dtype_of(dtype)
    estimate = cache_bytes(spec, tokens, batch, form)
    weights = spec.weight_bytes()
    return {
        "model": spec.name,
        "tokens": int(tokens),
        "batch": int(batch),
        "dtype": form.name,
        "total_bytes": estimate.total_bytes,
        "total_gib": estimate.total_bytes / units.GIB,
        "total_gb": estimate.total_bytes / 10**9,
        "bytes_per_token_growing": estimate.bytes_per_token_growing,
        "constant_bytes": estimate.constant_bytes,
        "read_bytes_per_step": estimate.read_bytes,
        "ledger": [_ledger_entry(row, estimate) for row in estimate.ledger],
        "weight_bytes_16bit": weights,
        "crossing_tokens": None if weights is None else crossing_tokens(spec, weights, batch, form),
        "max_positions": spec.max_positions,
        "assumptions": [line.en for line in estimate.assumptions],
        "assumptions_zh": [line.zh for line in estimate.assumptions],
        "source": spec.source or "the config file given",
        "source_date": spec.date or None,
        "verified": spec.verified.en if spec.verified else None,
        "origin": "computed",
    }


def text(result: dict[str, Any]) -> str:
    """`report`'s result as a few lines for a terminal. Bytes come in binary (GiB) and in decimal (GB) units."""
    per_token, crossing = result["bytes_per_token_growing"], result["crossing_tokens"]
    lines = [
        f"{result['model']}, {units.tokens(result['tokens'])} tokens, batch {result['batch']:,}, {result['dtype']}",
        f"  cache      {_both(result['total_bytes'])}",
        f"  per token  {units.binary(per_token)} ({per_token:,} B) of one sequence",
    ]
    if result["constant_bytes"]:
        lines.append(f"  constant   {_both(result['constant_bytes'])} of one sequence")
    lines.append(f"  read       {_both(result['read_bytes_per_step'])} to decode one token of every sequence")
    if result["weight_bytes_16bit"] is not None:
        where = (
            f"outgrown by the cache from {crossing:,} tokens" if crossing else "not outgrown at any length counted here"
        )
        lines.append(f"  weights    {_both(result['weight_bytes_16bit'])} at 16 bits, {where}")
    for row in result["ledger"]:
        lines.append(f"  layers     {row['num_layers']:,} x {row['kind']}: {units.binary(row['total_bytes'])}")
    lines += [f"  assumed    {line}" for line in result["assumptions"]]
    lines.append(f"  source     {result['source']}" + (f" ({result['source_date']})" if result["source_date"] else ""))
    return "\n".join(lines)


def _both(num_bytes: int) -> str:
    return f"{units.binary(num_bytes)} = {units.decimal(num_bytes)} = {num_bytes:,} B"


def _ledger_entry(row: LedgerRow, estimate: Estimate) -> dict[str, Any]:
    return {
        "kind": row.kind,
        "first_layer": row.first_layer,
        "num_layers": row.num_layers,
        "bytes_per_token_growing": row.bytes_per_token_growing,
        "constant_bytes": row.constant_bytes,
        "total_bytes": row.total_bytes,
        "read_bytes_per_step": row.read_bytes,
        "share": row.total_bytes / estimate.total_bytes if estimate.total_bytes else 0.0,
    }


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name longer than the file system takes
        return False


def _name_of(path: Path) -> str:
    """What to call a config that was read: its folder's name, or the file's own if that says more."""
    if path.is_dir():
        return path.resolve().name
    return path.resolve().parent.name if path.name == "config.json" else path.name

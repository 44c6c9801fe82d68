"""The estimate as the command line and the API give it: one flat JSON object, or a few lines of text."""

import difflib
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from explorer.errors import InputError
from explorer.estimators.memory import ONE_DEVICE, Estimate, LedgerRow, cache_bytes, crossing_tokens, format_of
from explorer.estimators.ranks import Ranks
from explorer.specs import units
from explorer.specs.catalog import model_named, models
from explorer.specs.from_config import from_config
from explorer.specs.limits import short
from explorer.specs.model import ModelSpec
from explorer.specs.read_config import read_config

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")
_LONGEST_NAME = 1_000


@dataclass(frozen=True)
class Options:
    """How to count.

    Attributes:
        batch: number of sequences.
        dtype: the model's element format.
        kv_format: a packed format of the cache, None for `dtype`.
        ranks: devices that share it.
        include_mtp: count the multi-token-prediction layers.
        switches: assumptions to turn to their other side.
    """

    batch: int = 1
    dtype: str = "bf16"
    kv_format: str | None = None
    ranks: Ranks = ONE_DEVICE
    include_mtp: bool = False
    switches: tuple[str, ...] = ()


DEFAULTS = Options()


class NotLocal(InputError):
    """The name looks like a Hub id and is neither in the catalogue nor a file: whoever may fetch it, can."""


def resolve(model: str, switches: Iterable[str] = ()) -> ModelSpec:
    """The model meant by `model`: a catalogue name, or the path of a `config.json` or of a folder that holds one.

    Raises:
        NotLocal: it may be a Hub id; nothing is fetched here.
        InputError: it is none of them; says what would be right.
    """
    if not isinstance(model, str) or not model.strip() or len(model) > _LONGEST_NAME or "\0" in model:
        few = ", ".join(list(models())[:4])
        raise InputError(
            f"model={short(model)}: expected a catalogue name ({few}, ...) or the path of a config.json",
            f"model={short(model)}：应为目录中的名称（{few} 等）或 config.json 的路径",
        )
    path = Path(model)
    if _exists(path) and ("/" in model or path.suffix == ".json"):
        return from_config(read_config(path), name_of(path), switches)
    try:
        return model_named(model, switches)
    except InputError:
        if _exists(path):
            return from_config(read_config(path), name_of(path), switches)
        if model.endswith(".json") or model.startswith((".", "/")):
            raise InputError(
                f"there is no file {short(path.name)}: expected the path of a config.json, or a catalogue name",
                f"没有文件 {short(path.name)}：应为 config.json 的路径，或目录中的名称",
            ) from None
        if HUB_ID.fullmatch(model.strip()):
            raise _not_local(model.strip()) from None
        raise


def report(model: str | ModelSpec, tokens: int, options: Options = DEFAULTS) -> dict[str, Any]:
    """The size of a model's cache, ready for JSON.

    Args:
        model: catalogue name, path of a `config.json` or of a folder with one, or a spec that was read already.
        tokens: tokens kept per sequence.
        options: how to count.

    Returns:
        `total_bytes`, `bytes_per_token_growing` and `constant_bytes` (both for one sequence), `settled_at` (tokens from
        which on slope and constant hold), `read_bytes_per_step` (decoding one token of every sequence), `total_gib`
        (2**30) and `total_gb` (10**9), `ledger` (by layer kind and owner), `per_rank`, `weight_bytes_16bit` and
        `crossing_tokens` (null if the weights are not known), `assumptions`, `switches`, `model`, `source`, `verified`
        and the inputs.

    Raises:
        InputError: the model, a size or the format cannot be used.
    """
    spec = model if isinstance(model, ModelSpec) else resolve(model, options.switches)
    form = format_of(options.dtype, options.kv_format)
    estimate = cache_bytes(
        spec,
        tokens,
        options.batch,
        options.dtype,
        kv_format=options.kv_format,
        ranks=options.ranks,
        include_mtp=options.include_mtp,
    )
    weights = spec.weight_bytes()
    return {
        "model": spec.name,
        "model_type": spec.model_type or None,
        "tokens": int(tokens),
        "batch": int(options.batch),
        "dtype": options.dtype if options.kv_format else form.name,
        "kv_format": form.name,
        "include_mtp": options.include_mtp,
        "total_bytes": estimate.total_bytes,
        "total_gib": estimate.total_bytes / units.GIB,
        "total_gb": estimate.total_bytes / 10**9,
        "bytes_per_token_growing": _number(estimate.bytes_per_token_growing),
        "constant_bytes": _number(estimate.constant_bytes),
        "settled_at": estimate.settled_at,
        "read_bytes_per_step": estimate.read_bytes,
        "ledger": [_ledger_entry(row, estimate) for row in estimate.ledger],
        "per_rank": _rank_entry(estimate),
        "weight_bytes_16bit": weights,
        "crossing_tokens": _crossing(spec, weights, options),
        "max_positions": spec.max_positions,
        "num_layers": len(spec.layers),
        "mtp_layers": len(spec.mtp_layers),
        "assumptions": [line.en for line in estimate.assumptions],
        "assumptions_zh": [line.zh for line in estimate.assumptions],
        "switches": [
            {"name": s.name, "chosen": s.chosen, "off": asdict(s.off), "on": asdict(s.on)} for s in spec.switches
        ],
        "source": spec.source or "the config file given",
        "source_date": spec.date or None,
        "verified": spec.verified.en if spec.verified else None,
        "origin": "computed",
    }


def name_of(path: Path) -> str:
    """What to call a config that was read: its folder's name, or the file's own if that says more."""
    if path.is_dir():
        return path.resolve().name
    return path.resolve().parent.name if path.name == "config.json" else path.name


def _not_local(hub_id: str) -> NotLocal:
    near = difflib.get_close_matches(hub_id.partition("/")[2].lower(), models(), n=1, cutoff=0.75)
    hint, hint_zh = (f"did you mean {near[0]}? Else ", f"是否指 {near[0]}？否则") if near else ("", "")
    return NotLocal(
        f"{short(hub_id)} is not in the catalogue: {hint}download its config.json from the Hugging Face Hub and give "
        "its path",
        f"{short(hub_id)} 不在目录中：{hint_zh}请从 Hugging Face Hub 下载它的 config.json，再给出路径",
    )


def _crossing(spec: ModelSpec, weights: int | None, options: Options) -> int | None:
    if weights is None:
        return None
    return crossing_tokens(spec, weights, options.batch, options.dtype, kv_format=options.kv_format)


def _ledger_entry(row: LedgerRow, estimate: Estimate) -> dict[str, Any]:
    return {
        "kind": row.kind,
        "title": row.title.en,
        "shape": row.shape.en,
        "first_layer": row.first_layer,
        "num_layers": row.num_layers,
        "layers": list(row.layers),
        "owner": row.owner,
        "mtp": row.mtp,
        "formats": dict(row.formats),
        "bytes_each": row.bytes_each,
        "bytes_per_token_growing": _number(row.bytes_per_token_growing),
        "constant_bytes": _number(row.constant_bytes),
        "total_bytes": row.total_bytes,
        "read_bytes_per_step": row.read_bytes,
        "share": row.total_bytes / estimate.total_bytes if estimate.total_bytes else 0.0,
    }


def _rank_entry(estimate: Estimate) -> dict[str, Any]:
    rank = estimate.per_rank
    return {
        **asdict(rank.ranks),
        "sequences": rank.sequences,
        "total_bytes": rank.total_bytes,
        "bytes_per_token_growing": _number(rank.bytes_per_token_growing),
        "constant_bytes": _number(rank.constant_bytes),
        "all_ranks_bytes": rank.all_ranks_bytes,
    }


def _number(value: int | Fraction) -> int | float:
    """A whole number as it is; a fraction of a byte (one row for many tokens) as a float."""
    return value if isinstance(value, int) else float(value)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name longer than the file system takes
        return False

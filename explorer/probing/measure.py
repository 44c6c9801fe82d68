"""What each layer of an unknown architecture keeps, measured on two thin models of different width, depth and window.

What was shrunk must not show: both models must keep the same in every layer, and only a window that was shortened may
differ, by as much as it was shortened. Then the rule of each tensor holds for the real model too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from explorer.errors import InputError
from explorer.probing import hugging_face
from explorer.probing.curves import rows_at, rule_of
from explorer.probing.fill import caches, fill
from explorer.probing.shrink import WINDOWS, Widths
from explorer.probing.thin import MAX_LAYERS, ThinConfig, thin_config
from explorer.probing.weigh import Held, weigh
from explorer.specs import pieces
from explorer.specs.pieces import Terms

LENGTHS = 140  # the curve's end: past a compressed entry of 128 tokens
CHECKED_AT = 301
# (widths that leave the hidden size or not) x (narrow and shallow, wide and deep), with their windows
_TRIES = ((Widths(64, 32), Widths(192, 48)), (Widths(0, 32), Widths(0, 48)))
_SHORT_WINDOWS = (24, 32)
_ROLES = {"keys": "key", "values": "value", "indexer_keys": "index"}


@dataclass(frozen=True)
class Found:
    """One tensor of a layer.

    Attributes:
        name: the attribute of transformers' cache.
        shape: its axes at `LENGTHS` tokens.
        dtype: torch's name of its element type.
        row_bytes: bytes of one row.
        rows: how many rows it has.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    row_bytes: int
    rows: Terms


Layer = tuple[Found, ...]


@dataclass(frozen=True)
class Measured:
    """An architecture that was measured.

    Attributes:
        thin: the narrow thin model.
        layers: what each of its layers keeps, with the real model's windows.
        windows_seen: whether each of the shortened windows showed in some layer.
    """

    thin: ThinConfig
    layers: tuple[Layer, ...]
    windows_seen: bool


def measure(config: Mapping[str, Any]) -> Measured:
    """Build `config` thin, twice, and find the rule of every tensor in its cache.

    Raises:
        InputError: it cannot be built or run, or what it keeps follows no known rule, or hangs on what was shrunk.
    """
    for narrow, wide in _TRIES:
        thin = thin_config(config, widths=narrow, longest_window=_SHORT_WINDOWS[0])
        deep = thin_config(
            config,
            widths=wide,
            longest_window=_SHORT_WINDOWS[1],
            at_least_layers=min(2 * thin.num_layers, MAX_LAYERS // 2),
        )
        first, second = _layers(thin), _layers(deep)
        merged = _merged(thin, first, deep, second)
        if merged is not None:
            return Measured(thin, merged, _windows_seen(thin, first))
    raise InputError(
        "what its layers keep depends on more than the heads, dims and states that were left true: not guessed",
        "各层保留的内容不仅取决于保持真实的头数、维度与状态：不作猜测",
    )


def _layers(thin: ThinConfig) -> tuple[Layer, ...]:
    model = hugging_face.build(thin.fields)
    curves: dict[tuple[int, str], list[int]] = {}
    last: dict[tuple[int, str], Held] = {}
    for at, cache in enumerate(caches(model, 1, LENGTHS)):
        for held in weigh(cache).tensors:
            if held.layer is None:
                raise InputError("its cache does not keep its layers apart: not measured", "其缓存不按层区分：无法测量")
            key = (held.layer, held.name)
            curves.setdefault(key, [0] * at).append(held.num_bytes)
            last[key] = held
    found = {key: _found(last[key], curve) for key, curve in curves.items() if any(curve)}
    _check(model, found)
    num_layers = max([thin.num_layers, *(layer + 1 for layer, _ in found)])
    return tuple(
        tuple(tensor for (layer, _), tensor in sorted(found.items()) if layer == index) for index in range(num_layers)
    )


def _found(held: Held, curve: list[int]) -> Found:
    rule = rule_of(curve) if len(curve) == LENGTHS else None
    if rule is None:
        raise InputError(
            f"layer {held.layer} keeps {held.name}, whose size follows no known rule of the tokens seen: not guessed",
            f"第 {held.layer} 层的 {held.name} 大小不符合任何已知的 token 数规律：不作猜测",
        )
    return Found(held.name, held.shape, held.dtype, *rule)


def _check(model: Any, found: Mapping[tuple[int, str], Found]) -> None:
    """The rules, at a length that they were not found at, filled by a prefill."""
    weighed = weigh(fill(model, CHECKED_AT))
    real = {(held.layer, held.name): held.num_bytes for held in weighed.tensors if held.num_bytes}
    ruled = {key: each.row_bytes * rows_at(each.rows, CHECKED_AT) for key, each in found.items()}
    if real != {key: num_bytes for key, num_bytes in ruled.items() if num_bytes}:
        raise InputError(
            f"at {CHECKED_AT} tokens its cache is not what shorter ones showed: not guessed",
            f"在 {CHECKED_AT} 个 token 处，缓存与较短时的规律不符：不作猜测",
        )


def _merged(
    thin: ThinConfig, first: tuple[Layer, ...], deep: ThinConfig, second: tuple[Layer, ...]
) -> tuple[Layer, ...] | None:
    """The layers with the real windows; None where the two models keep different things."""
    if len(first) != thin.num_layers or len(second) != deep.num_layers:
        return None
    merged: dict[int, Layer] = {}
    for real in range(deep.num_layers if deep.num_layers == deep.real_num_layers else _own(deep)):
        index = thin.stands_for[real]
        layer = _same(thin, first[index], deep, second[deep.stands_for[real]])
        if layer is None or _same(thin, first[index], deep, second[real]) != layer:
            return None
        merged[index] = layer
    return tuple(merged.get(index, first[index]) for index in range(thin.num_layers))


def _own(deep: ThinConfig) -> int:
    """Layers of the deep model, from the bottom, that are the real model's layers of the same number."""
    shared = deep.fields.get("num_kv_shared_layers") or 0
    return deep.num_layers - shared


def _same(thin: ThinConfig, one: Layer, deep: ThinConfig, other: Layer) -> Layer | None:
    if [tensor.name for tensor in one] != [tensor.name for tensor in other]:
        return None
    joined = [_same_tensor(thin, a, deep, b) for a, b in zip(one, other, strict=True)]
    return None if None in joined else tuple(tensor for tensor in joined if tensor is not None)


def _same_tensor(thin: ThinConfig, one: Found, deep: ThinConfig, other: Found) -> Found | None:
    if (one.row_bytes, one.dtype) != (other.row_bytes, other.dtype):
        return None
    if one.rows == other.rows:
        return one
    caps = (_cap(one), _cap(other))
    for field, (real, short) in thin.scaled_windows.items():
        for less in (0, 1):  # transformers keeps W - 1 between steps; W is what is counted everywhere here
            if caps == (short - less, deep.scaled_windows[field][1] - less):
                return replace(one, rows=pieces.window(real))
    return None


def _cap(found: Found) -> int | None:
    return found.rows[0][1].cap if len(found.rows) == 1 and found.rows[0][1].every == 1 else None


def _windows_seen(thin: ThinConfig, layers: tuple[Layer, ...]) -> bool:
    caps = {_cap(tensor) for layer in layers for tensor in layer}
    return all(caps & {short, short - 1} for _, short in thin.scaled_windows.values())


def unreached_limits(known: Mapping[str, Any]) -> list[str]:
    """Fields that read like windows or chunks of more tokens than were ever shown: whether they bind was not seen.

    Args:
        known: a configuration with every default filled in.
    """
    found = []
    for name, value in known.items():
        longest = max((each for each in value if type(each) is int), default=0) if isinstance(value, list) else value
        limits = any(word in name for word in ("window", "chunk")) and name not in WINDOWS and "layers" not in name
        if limits and type(longest) is int and longest > CHECKED_AT:
            found.append(name)
    return sorted(found)


def as_json(measured: Measured) -> dict[str, Any]:
    """For another process: plain values."""
    return {
        "num_layers": measured.thin.num_layers,
        "real_num_layers": measured.thin.real_num_layers,
        "stands_for": list(measured.thin.stands_for),
        "windows_seen": measured.windows_seen,
        "layers": [[_tensor_json(tensor) for tensor in layer] for layer in measured.layers],
    }


def _tensor_json(found: Found) -> dict[str, Any]:
    item = {"float32": 4, "bfloat16": 2, "float16": 2}.get(found.dtype)
    heads = found.shape[1] if len(found.shape) == 4 else 1
    elements = found.row_bytes // (item or 1)
    if elements % heads:
        heads = 1
    return {
        "name": found.name,
        "role": _ROLES.get(found.name, "conv" if found.name.startswith("conv") else "state"),
        "dtype": found.dtype,
        "heads": heads,
        "dim": elements // heads,
        "row_bytes": found.row_bytes,
        "rows": [[weight, rows.every, rows.skip, rows.cap] for weight, rows in found.rows],
        "elements": prod(found.shape),
    }

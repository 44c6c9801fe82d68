"""The models and devices that are known by name, read from `assets/catalog`."""

import difflib
import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from explorer.errors import InputError
from explorer.specs.from_config import from_config
from explorer.specs.limits import short
from explorer.specs.model import DeviceSpec, ModelSpec
from explorer.text import Text

_SHOWN = 8  # names in an error line, which must stay readable
FOLDER = Path(__file__).resolve().parents[2] / "assets" / "catalog"


@dataclass(frozen=True)
class PrintedValue:
    """A size that the source documents print for a model, and what it takes for granted.

    Attributes:
        text: as printed ("10.78125 GiB").
        num_bytes: the exact number behind it.
        quantity: "bytes_per_token", "bytes_of_first_token" (while a window fills), "total_bytes" or "growing_bytes"
            (what grows with the tokens, without states and windows).
        tokens: length of each sequence; 1 for a size per token.
        sequences: how many there are.
        source: where it is printed.
        assumption: what it rests on, if it is not the size by itself.
        switches: which of the model's switches give it.
    """

    text: str
    num_bytes: int
    quantity: str
    tokens: int
    sequences: int
    source: str
    assumption: Text | None
    switches: tuple[str, ...]


@dataclass(frozen=True)
class CatalogEntry:
    """What is known of a model beside its config.

    Attributes:
        name: of the model.
        organisation: who published it.
        attention: its kinds of attention, as the source documents call them.
        is_verified: its fields were compared with a copy of its file, with an independent record or with the class.
        active_params: weights that a token uses ("37B"), None for all of them.
        context: the context that the source documents list, None if they do not.
        printed: sizes that they print.
    """

    name: str
    organisation: str
    attention: Text
    is_verified: bool
    active_params: str | None
    context: str | None
    printed: tuple[PrintedValue, ...]


@cache
def models() -> dict[str, ModelSpec]:
    """All models of the catalogue by name, in its order."""
    return {name: _model(name, entry) for name, entry in _read("models.json").items()}


@cache
def entries() -> dict[str, CatalogEntry]:
    """What the catalogue says of each model beside its config, in its order."""
    return {name: _entry(name, entry) for name, entry in _read("models.json").items()}


@cache
def left_out() -> dict[str, tuple[str, Text]]:
    """Models of the source documents without the fields that a size needs: title, and why they are left out."""
    found = _file("models.json")["left_out"]
    return {name: (entry["title"], Text(**entry["reason"])) for name, entry in found.items()}


def printed_size(name: str, value: PrintedValue) -> int:
    """`value` worked out from the model's spec, in bf16."""
    layers = model_named(name, value.switches).layers
    if value.quantity in ("bytes_per_token", "growing_bytes"):
        found = sum(layer.growing_bytes_per_token("bf16") for layer in layers)
    else:
        found = sum(layer.bytes_at(value.tokens, "bf16") for layer in layers)
    found *= value.sequences * (value.tokens if value.quantity == "growing_bytes" else 1)
    assert int(found) == found, f"{name}: {value.text} is no whole number of bytes"
    return int(found)


@cache
def devices() -> dict[str, DeviceSpec]:
    """All devices of the catalogue by name, in its order."""
    return {name: _device(name, entry) for name, entry in _read("devices.json").items()}


def model_named(name: str, switches: Iterable[str] = ()) -> ModelSpec:
    """The catalogue's model called `name`; a Hub id ("Qwen/Qwen3-4B") that the catalogue is made from will do as well.

    Args:
        name: in any case.
        switches: assumptions to turn to their other side.

    Raises:
        InputError: there is none; with the nearest names. Or it has no such switch.
    """
    wanted, chosen = name.strip().lower(), frozenset(switches)
    found = models().get(wanted) or _by_hub_id().get(wanted)
    if found is not None:
        return _model(found.name, _read("models.json")[found.name], chosen) if chosen else found
    raise _no_model(name, wanted)


def _no_model(name: str, wanted: str) -> InputError:
    """The error for an unknown name: why it is left out, the nearest name, or some that there are."""
    if wanted in left_out():
        reason = left_out()[wanted][1]
        return InputError(f"{wanted} is not in the catalogue: {reason.en}", f"目录中没有 {wanted}：{reason.zh}")
    near = difflib.get_close_matches(wanted[:100], models(), n=1, cutoff=0.6)
    some, number = list(models())[:_SHOWN], len(models())
    more, more_zh = (f" and {number - _SHOWN} more", f" 等 {number} 个") if number > _SHOWN else ("", "")
    hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(some)}{more}"
    hint_zh = f"是否指 {near[0]}？" if near else f"可用：{'、'.join(some)}{more_zh}"
    return InputError(f"no model {short(name)} in the catalogue; {hint}", f"目录中没有模型 {short(name)}；{hint_zh}")


def device_named(name: str) -> DeviceSpec:
    """The catalogue's device called `name`.

    Raises:
        InputError: there is none; says which there are.
    """
    found = devices().get(name.strip().lower())
    if found is None:
        known = ", ".join(devices())
        raise InputError(f"no device {short(name)}; there are: {known}", f"没有设备 {short(name)}；可用：{known}")
    return found


@cache
def _by_hub_id() -> dict[str, ModelSpec]:
    return {entry["hub_id"].lower(): models()[name] for name, entry in _read("models.json").items()}


def _model(name: str, entry: dict[str, Any], switches: Iterable[str] = ()) -> ModelSpec:
    return replace(
        from_config(entry["config"], name, switches),
        weight_params=entry["weight_params"],
        title=entry["title"],
        source=entry["source"],
        date=entry["date"],
        verified=Text(**entry["verified"]),
    )


def _device(name: str, entry: dict[str, Any]) -> DeviceSpec:
    return DeviceSpec(**(entry | {"name": name, "verified": Text(**entry["verified"])}))


def _entry(name: str, entry: dict[str, Any]) -> CatalogEntry:
    return CatalogEntry(
        name=name,
        organisation=entry["organisation"],
        attention=Text(**entry["attention"]),
        is_verified=entry["is_verified"],
        active_params=entry.get("active_params"),
        context=entry.get("context"),
        printed=tuple(_printed(value) for value in entry.get("printed", ())),
    )


def _printed(value: dict[str, Any]) -> PrintedValue:
    return PrintedValue(
        text=value["text"],
        num_bytes=value["bytes"],
        quantity=value["quantity"],
        tokens=value.get("tokens", 1),
        sequences=value.get("sequences", 1),
        source=value["source"],
        assumption=Text(**value["assumption"]) if "assumption" in value else None,
        switches=tuple(value["switches"]),
    )


def _read(file: str) -> dict[str, Any]:
    return _file(file)["entries"]


@cache
def _file(file: str) -> dict[str, Any]:
    return json.loads((FOLDER / file).read_text(encoding="utf-8"))

"""The models and devices that are known by name, read from `assets/catalog`."""

import difflib
import json
from collections.abc import Iterable
from dataclasses import replace
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


@cache
def models() -> dict[str, ModelSpec]:
    """All models of the catalogue by name, in its order."""
    return {name: _model(name, entry) for name, entry in _read("models.json").items()}


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
    near = difflib.get_close_matches(wanted[:100], models(), n=1, cutoff=0.6)
    some = list(models())[:_SHOWN]
    more, more_zh = (
        (f" and {len(models()) - _SHOWN} more", f" 等 {len(models())} 个") if len(models()) > _SHOWN else ("", "")
    )
    hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(some)}{more}"
    hint_zh = f"是否指 {near[0]}？" if near else f"可用：{'、'.join(some)}{more_zh}"
    raise InputError(f"no model {short(name)} in the catalogue; {hint}", f"目录中没有模型 {short(name)}；{hint_zh}")


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


@cache
def _read(file: str) -> dict[str, Any]:
    return json.loads((FOLDER / file).read_text(encoding="utf-8"))["entries"]

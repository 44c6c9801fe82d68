"""The model that a word on the command line means: what is here first, then the Hugging Face Hub's `config.json`."""

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from explorer.cli.output import progress
from explorer.errors import InputError
from explorer.estimators.report import NotLocal, resolve
from explorer.specs.from_config import UnknownFamily, from_config
from explorer.specs.limits import short
from explorer.specs.model import ModelSpec
from explorer.specs.read_config import MAX_CONFIG_BYTES, read_config

# Seconds for each of two questions: an estimate is asked for in passing, nobody waits long for it.
HUB_LIMIT_S = 8.0


def spec_of(model: str, switches: Iterable[str] = ()) -> ModelSpec:
    """The model called `model`: a catalogue name, a `config.json`, a folder with one, or a Hub id.

    Where no reader knows its model type, and transformers does, its cache is measured on a thin model.

    Raises:
        InputError: it is none of them, its config cannot be used, or nobody knows its model type.
    """
    try:
        return _read(model, switches)
    except UnknownFamily as unknown:
        if unknown.config is None or unknown.model_type is None:
            raise
        return _measured(unknown, tuple(switches))


def _read(model: str, switches: Iterable[str]) -> ModelSpec:
    try:
        return resolve(model, switches)
    except NotLocal as unknown:
        return from_config(_from_hub(model.strip(), unknown), model.strip(), switches)


def _measured(unknown: UnknownFamily, switches: tuple[str, ...]) -> ModelSpec:
    from explorer.probing.probe import LIMIT_S, NotMeasured, spec_from_probe

    if switches:
        raise InputError(
            f"assume={short(switches[0])}: a model type without a reader is measured and has no switch",
            f"assume={short(switches[0])}：没有读取规则的类型靠实测，没有开关",
        )
    progress(f"no reader knows {short(unknown.model_type)}: measuring a thin model of it, up to {LIMIT_S} s")
    try:
        return spec_from_probe(unknown.config, unknown.name)
    except NotMeasured as error:
        en, zh = error.reason.en, error.reason.zh
        raise InputError(
            f"{unknown.text.en}; it could not be measured either: {en}", f"{unknown.text.zh}；也无法实测：{zh}"
        ) from error


def _from_hub(repo: str, unknown: NotLocal) -> Any:
    """The parsed `config.json` of a public model; no other file is fetched."""
    from explorer.weights.hub import ask_hub
    from explorer.weights.source_error import SourceError

    progress(f"asking the Hugging Face Hub for the config.json of {short(repo)}")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        try:
            found = ask_hub({"do": "info", "repo": repo, "revision": None}, folder, _ignore, HUB_LIMIT_S)
            listed = found["files"].get("config.json")
            if listed is None:
                raise InputError(
                    f"{short(repo)} on the Hub has no config.json", f"Hub 上的 {short(repo)} 没有 config.json"
                )
            if (listed["size"] or 0) > MAX_CONFIG_BYTES:
                raise InputError(
                    f"the config.json of {short(repo)} is larger than 4 MiB", f"{short(repo)} 的 config.json 超过 4 MiB"
                )
            task = {"do": "files", "repo": repo, "revision": found["commit"], "files": ["config.json"], "folder": place}
            ask_hub(task, folder, _ignore, HUB_LIMIT_S)
        except SourceError as error:
            raise InputError(
                f"{unknown.text.en} ({error.reason.en})", f"{unknown.text.zh}（{error.reason.zh}）"
            ) from error
        return read_config(folder)


def _ignore(num_bytes: int) -> None:
    """A config is too small for a progress bar."""

"""The model that a word on the command line means: what is here first, then the Hugging Face Hub's `config.json`."""

import importlib.util
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
from explorer.text import Text

# Seconds for each of two questions: an estimate is asked for in passing, nobody waits long for it.
HUB_LIMIT_S = 8.0
_UNLISTED = Text("the installed transformers does not know it", "已安装的 transformers 不认识它")


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
        if not _transformers_may_know(unknown.model_type):
            raise _not_measured(unknown, _UNLISTED) from unknown
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
        raise _not_measured(unknown, error.reason) from error


def _not_measured(unknown: UnknownFamily, reason: Text) -> InputError:
    return InputError(
        f"{unknown.text.en}; it could not be measured either: {reason.en}",
        f"{unknown.text.zh}；也无法实测：{reason.zh}",
    )


def _transformers_may_know(model_type: str) -> bool:
    """Whether the installed transformers lists such a type, found out without importing it (that takes seconds)."""
    found = importlib.util.find_spec("transformers")
    if found is None or found.origin is None:
        return False
    lists = (Path(found.origin).parent / "models" / "auto").glob("*.py")
    return any(f'"{model_type}"' in file.read_text(encoding="utf-8") for file in lists)


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

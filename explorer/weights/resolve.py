"""From a model's name to a checked folder. A model that is in the cache is found here in milliseconds, standard library
only; whatever fetches or converts is imported when it is needed.
"""

import errno
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from explorer.errors import InputError, ResourceError
from explorer.text import Text
from explorer.weights.cache import UNWRITABLE, WeightCache
from explorer.weights.manifest import sha256_of
from explorer.weights.model_files import DEFAULT_MODEL, ModelFiles, OnProgress, WeightProgress, ignore_progress

if TYPE_CHECKING:
    from explorer.weights.prepared import Prepared
    from explorer.weights.sources import Sources

# No part of an id has two punctuation marks in a row (the Hub forbids it), so none climbs out of a folder.
PART = r"[A-Za-z0-9](?:[A-Za-z0-9_]|[.-](?![.-])){0,95}"
MODEL_ID = re.compile(rf"{PART}/{PART}(?:@{PART})?")

READY = Text("The weights are ready", "权重已就绪")
BAD_NAME = Text(
    "This is no model: give a Hugging Face id (org/name or org/name@revision), a local model folder or a .gguf file.",
    "这不是模型：请给出 Hugging Face 模型名（org/name 或 org/name@revision）、本地模型文件夹或 .gguf 文件。",
)
NOT_A_MODEL_FILE = Text(
    "This file is not a model: give a folder with config.json and safetensors, or a .gguf file.",
    "这个文件不是模型：请给出包含 config.json 与 safetensors 的文件夹，或 .gguf 文件。",
)
NO_ROOM = Text(
    "There is not enough free disk space for the model's weights: free some, or move the cache to another disk with "
    "KV_EXPLORER_CACHE.",
    "磁盘剩余空间不足以存放模型权重：请清理空间，或用 KV_EXPLORER_CACHE 把缓存移到其他磁盘。",
)
NOT_ALLOWED = Text("this run may not use the network", "本次运行不允许联网")


def resolve(
    model: str = DEFAULT_MODEL,
    *,
    progress: OnProgress | None = None,
    offline: bool = False,
    verify: bool = False,
    local_paths: bool = True,
) -> ModelFiles:
    """Find a model's weights, fetching and converting them if that has not been done yet.

    Args:
        model: a Hub id (`org/name`, `org/name@revision`), a local folder or a local .gguf file. A name that is both an
            existing folder and an id is the folder, except for the default model.
        progress: told what happens; what it raises ends the work, and a later call goes on from there.
        offline: use what is on this machine only.
        verify: hash every cached file instead of only those whose time stamp changed.
        local_paths: take local folders and files too. False for a name that came from a visitor, who could otherwise
            ask which files exist.

    Returns:
        A folder whose configuration, weights and tokenizer were checked.

    Raises:
        InputError: no such model, or not one that the engine runs.
        ResourceError: no source has it now, or there is no room for it.
    """
    return Resolver().resolve(model, progress=progress, offline=offline, verify=verify, local_paths=local_paths)


@dataclass(frozen=True)
class Resolver:
    """A cache, and the sources that fill it (None: the real ones)."""

    cache: WeightCache = field(default_factory=WeightCache)
    sources: "Sources | None" = None

    def resolve(
        self,
        model: str,
        *,
        progress: OnProgress | None = None,
        offline: bool = False,
        verify: bool = False,
        local_paths: bool = True,
    ) -> ModelFiles:
        """See the function `resolve`."""
        on_progress = progress or ignore_progress
        if model == DEFAULT_MODEL.partition("/")[2]:
            model = DEFAULT_MODEL
        local = _local_path(model) if local_paths and model != DEFAULT_MODEL else None
        if local is not None and local.is_dir():
            from explorer.weights.prepared import local_folder

            files = local_folder(local)
        elif local is not None:
            files = self._gguf(local, on_progress, verify)
        elif MODEL_ID.fullmatch(model):
            fetch = None if offline else lambda work: self._fetch(model, work, on_progress)
            files = self._cached(self.cache.key_of(model), fetch, on_progress, verify)
        else:
            raise InputError(BAD_NAME)
        on_progress(WeightProgress("ready", 0, 0, READY))
        return files

    def _fetch(self, model: str, work: Path, on_progress: OnProgress) -> "Prepared":
        from explorer.weights.sources import Sources

        return (self.sources or Sources()).fetch(model, work, on_progress)

    def _gguf(self, path: Path, on_progress: OnProgress, verify: bool) -> ModelFiles:
        """A local GGUF file, converted once per content."""
        from explorer.weights.sources import convert_local

        try:
            with path.open("rb") as file:
                magic = file.read(4)
        except OSError as error:
            raise InputError(NOT_A_MODEL_FILE) from error
        if magic != b"GGUF":
            raise InputError(NOT_A_MODEL_FILE)
        digest = sha256_of(path)
        return self._cached(
            f"gguf-{digest[:16]}", lambda work: convert_local(path, digest, work, on_progress), on_progress, verify
        )

    def _cached(
        self, key: str, prepare: "Callable[[Path], Prepared] | None", on_progress: OnProgress, verify: bool
    ) -> ModelFiles:
        """The model under `key`; if the cache has no sound one, `prepare` makes it in the work folder it is given."""
        folder = self.cache.folder(key)
        found = self.cache.find(key, verify=verify)
        if found is not None:
            return found.files_at(folder, from_cache=True)
        if prepare is None:
            from explorer.weights.source_error import ways_out

            raise ways_out([NOT_ALLOWED])
        with self.cache.preparing(key, on_progress) as work:
            found = self.cache.find(key, verify=verify)  # another process may just have finished it
            if found is not None:
                return found.files_at(folder, from_cache=True)
            try:
                prepared = prepare(work)
                manifest = self.cache.publish(key, prepared.folder, prepared.manifest)
            except OSError as error:
                raise ResourceError(NO_ROOM if error.errno == errno.ENOSPC else UNWRITABLE) from error
            return manifest.files_at(folder, from_cache=False)


def _local_path(model: str) -> Path | None:
    """The existing file or folder that `model` names, if it does."""
    try:
        path = Path(model).expanduser()
        return path if model.strip() and path.exists() else None
    except (OSError, ValueError, RuntimeError):  # too long, with a zero byte, or `~` of nobody
        return None

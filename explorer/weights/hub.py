"""A model from the Hugging Face Hub: ask what is there, refuse early, then get only the files that are needed."""

import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from explorer.errors import InputError
from explorer.text import Text
from explorer.weights import folder as model_folder
from explorer.weights.cache import require_room
from explorer.weights.manifest import sha256_of
from explorer.weights.model_files import OnProgress, WeightProgress
from explorer.weights.source_error import SourceError
from explorer.weights.watched import run_watched

DOWNLOADING = Text("Downloading the model from the Hugging Face Hub", "正在从 Hugging Face Hub 下载模型")
ASKING = Text("Asking the Hugging Face Hub", "正在查询 Hugging Face Hub")
UNREACHABLE = Text("Hugging Face Hub not reachable", "无法访问 Hugging Face Hub")
NOT_FOUND = Text(
    "The Hugging Face Hub has no public model of this name and revision: check it, or give a local folder.",
    "Hugging Face Hub 上没有这个名称与版本的公开模型：请检查名称，或给出本地文件夹。",
)
GATED = Text(
    "This model asks for its licence to be accepted: accept it on the Hugging Face Hub and set HF_TOKEN.",
    "该模型需要先同意许可：请在 Hugging Face Hub 上同意，并设置 HF_TOKEN。",
)
SMALL_FILES = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "tokenizer.model",
    "vocab.json",
    "merges.txt",
    "chat_template.jinja",
    "chat_template.json",
    "LICENSE",
)


class Ask(Protocol):
    """Sends one task to the Hub and gives its answer; `folder` is where it works and what is watched."""

    def __call__(
        self, task: dict[str, Any], folder: Path, on_bytes: Callable[[int], None], limit_s: float | None
    ) -> dict[str, Any]:
        """Raises SourceError or InputError."""


@dataclass(frozen=True)
class HubModel:
    """What came from the Hub: a folder of plain files, the commit they belong to, and the licence the Hub states."""

    folder: Path
    commit: str
    licence: str | None


def ask_hub(
    task: dict[str, Any], folder: Path, on_bytes: Callable[[int], None], limit_s: float | None
) -> dict[str, Any]:
    """Run hub_worker.py on a task.

    Raises:
        SourceError: no answer in time, or none that makes sense.
        InputError: the Hub says that there is no such model, or that its licence must be accepted first.
    """
    worker = Path(__file__).with_name("hub_worker.py")
    ended = run_watched((sys.executable, "-P", str(worker), json.dumps(task)), folder, on_bytes, limit_s=limit_s)
    try:
        answer: dict[str, Any] = json.loads(ended.output.strip().splitlines()[-1])
    except (ValueError, IndexError) as error:
        raise SourceError(UNREACHABLE) from error
    match answer.get("error"):
        case None:
            return answer
        case "not_found":
            raise InputError(NOT_FOUND)
        case "gated":
            raise InputError(GATED)
        case "no_library":
            raise SourceError(Text("huggingface_hub is not installed", "未安装 huggingface_hub"))
        case _:
            raise SourceError(UNREACHABLE)


def fetch_from_hub(
    repo: str, revision: str | None, work: Path, on_progress: OnProgress, *, limit_s: float, ask: Ask = ask_hub
) -> HubModel:
    """Put the model's files into a folder below `work`. Files that an interrupted attempt finished are kept.

    Args:
        repo: `org/name`, already checked.
        revision: branch, tag or commit; None for the main branch.
        work: the model's work folder.
        on_progress: told about the download.
        limit_s: seconds for the first answer.
        ask: how the Hub is asked.

    Raises:
        SourceError: the Hub cannot be reached, or sent something else than it announced.
        InputError: no such model, or not one that the engine runs.
    """
    on_progress(WeightProgress("download", 0, 0, ASKING))
    found = ask({"do": "info", "repo": repo, "revision": revision}, work, lambda _: None, limit_s)
    commit, listed = str(found["commit"]), found["files"]
    if not re.fullmatch(r"[0-9a-f]{40,64}", commit):  # it becomes part of a folder's name
        raise SourceError(UNREACHABLE)
    target = work / f"hub-{commit}"
    target.mkdir(exist_ok=True)
    for part in target.glob(".cache/**/*.incomplete"):  # huggingface_hub begins such a file anew, under another name
        part.unlink(missing_ok=True)
    small = [name for name in SMALL_FILES if name in listed]
    if "config.json" not in small or not model_folder.has_tokenizer(set(small)):
        raise InputError(model_folder.NO_CONFIG)
    sharded = model_folder.SINGLE not in listed
    if sharded and model_folder.INDEX not in listed:
        raise InputError(model_folder.NO_WEIGHTS)

    def get(names: list[str]) -> None:
        task = {"do": "files", "repo": repo, "revision": commit, "files": names, "folder": str(target)}
        total = sum(listed[name]["size"] or 0 for name in names)
        kept = sum(path.stat().st_size for path in target.iterdir() if path.is_file() and path.name not in names)

        require_room(target, total)

        def on_bytes(done: int) -> None:
            on_progress(WeightProgress("download", min(max(0, done - kept), total), total, DOWNLOADING))

        ask(task, target, on_bytes, None)

    # The small files first: a model of another family is refused before its gigabytes are fetched.
    get(small + ([model_folder.INDEX] if sharded else []))
    model_folder.check_config(model_folder.read_json(target / "config.json"))
    names = model_folder.shard_names(model_folder.read_json(target / model_folder.INDEX)) if sharded else set()
    weights = sorted(names or {model_folder.SINGLE})
    if not set(weights) <= set(listed):
        raise InputError(model_folder.BAD_WEIGHTS)
    get(weights)
    _check_content(target, {name: listed[name] for name in weights})
    return HubModel(target, commit, found["licence"])


def _check_content(target: Path, announced: dict[str, Any]) -> None:
    for name, file in announced.items():
        path = target / name
        sound = file["size"] in (None, path.stat().st_size) and file["sha256"] in (None, sha256_of(path))
        if not sound:
            path.unlink()
            raise SourceError(Text("a file from the Hub arrived damaged", "从 Hub 下载的文件已损坏"))

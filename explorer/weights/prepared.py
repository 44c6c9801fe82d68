"""From what a source gave to a finished folder and the manifest that describes it; the cache takes both."""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from explorer.text import Text
from explorer.weights import folder as model_folder
from explorer.weights import gguf_file
from explorer.weights.hub import HubModel
from explorer.weights.manifest import Manifest
from explorer.weights.model_files import ModelFiles, OnProgress
from explorer.weights.package import PackagedModel
from explorer.weights.source_error import SourceError

HASH_OF_TENSORS = "every tensor's name, dtype, shape and first 4 KiB (sha256)"


@dataclass(frozen=True)
class Prepared:
    """A finished folder inside the work folder, and its manifest, still without files."""

    folder: Path
    manifest: Manifest


def from_hub(found: HubModel, model: str) -> Prepared:
    """A Hub model as it is: its own files, its commit as the hash.

    Raises:
        InputError: it is not a model that the engine runs.
    """
    facts = model_folder.check_folder(found.folder)
    shutil.rmtree(found.folder / ".cache", ignore_errors=True)  # huggingface_hub's notes about the download
    shutil.rmtree(found.folder / "tmp", ignore_errors=True)
    manifest = Manifest(
        name=model,
        weight_hash=found.commit[:12],
        hash_of="the Hub's commit",
        source="hub",
        detail=f"Hugging Face Hub, commit {found.commit}",
        dtype=facts.dtype,
        licence=found.licence,
    )
    return Prepared(found.folder, manifest)


def from_package(packaged: PackagedModel, gguf: Path, work: Path, on_progress: OnProgress) -> Prepared:
    """The packaged GGUF file, converted; its configuration must be the one that is known for the model.

    Raises:
        SourceError: a library for the conversion is missing, or read the file as another model.
    """
    target, quantisation = _convert(gguf, work, on_progress)
    facts = model_folder.check_folder(target)
    differing = [key for key, value in packaged.config.items() if _setting(facts.config, key) != value]
    if differing or "lm_head.weight" in facts.tensors:
        raise SourceError(
            Text("the installed transformers reads the weights wrongly", "已安装的 transformers 对该权重的读取有误")
        )
    manifest = Manifest(
        name=packaged.model,
        weight_hash=packaged.sha256[:12],
        hash_of="the GGUF file (sha256)",
        source="package",
        detail=f"{packaged.member.rpartition('/')[2]} from {packaged.requirement}, {quantisation} dequantised to bf16",
        dtype=facts.dtype,
        quantisation=quantisation,
        licence=packaged.licence,
    )
    return Prepared(target, manifest)


def from_gguf(gguf: Path, digest: str, work: Path, on_progress: OnProgress) -> Prepared:
    """A local GGUF file of a supported family, converted.

    Raises:
        InputError: it cannot be read, or is of another family.
        SourceError: a library for the conversion is missing.
    """
    target, quantisation = _convert(gguf, work, on_progress)
    facts = model_folder.check_folder(target)
    manifest = Manifest(
        name=gguf.stem,
        weight_hash=digest[:12],
        hash_of="the GGUF file (sha256)",
        source="local",
        detail=f"local GGUF file, {quantisation} converted to bf16",
        dtype=facts.dtype,
        quantisation=quantisation if re.match(r"I?Q\d|TQ\d|MXFP", quantisation) else None,
    )
    return Prepared(target, manifest)


def local_folder(folder: Path) -> ModelFiles:
    """A local folder, checked and used where it lies.

    Raises:
        InputError: it is not a model that the engine runs.
    """
    facts = model_folder.check_folder(folder)
    return ModelFiles(
        name=folder.resolve().name,
        path=folder,
        weight_hash=facts.weight_hash,
        source="local",
        detail="local folder",
        hash_of=HASH_OF_TENSORS,
        dtype=facts.dtype,
    )


def _convert(gguf: Path, work: Path, on_progress: OnProgress) -> tuple[Path, str]:
    target = work / "converted"
    shutil.rmtree(target, ignore_errors=True)  # half of one, from an attempt that was interrupted
    target.mkdir()
    try:
        return target, gguf_file.convert(gguf, target, on_progress)
    except ImportError as error:
        raise SourceError(
            Text("the packages gguf and transformers are not both installed", "未同时安装 gguf 与 transformers")
        ) from error


def _setting(config: dict[str, Any], key: str) -> Any:
    """`config["a"]["b"]` for the key "a.b"."""
    value: Any = config
    for part in key.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value

"""Is this folder a model that the engine can run? Read from config.json and the safetensors' headers alone."""

import hashlib
import json
import re
import struct
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from explorer.errors import InputError
from explorer.text import Text
from explorer.weights.model_files import SUPPORTED_FAMILIES

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
MAX_HEADER_BYTES = 100_000_000  # what the safetensors library itself accepts
SAMPLE_BYTES = 4096

NO_CONFIG = Text(
    "This is not a model folder: it needs config.json, model.safetensors (or shards with their index) and a tokenizer.",
    "这不是模型文件夹：需要有 config.json、model.safetensors（或带索引的分片）以及 tokenizer 文件。",
)
BAD_CONFIG = Text(
    "The model's config.json cannot be read: it must be one JSON object that names its model_type.",
    "无法读取模型的 config.json：它必须是一个写明 model_type 的 JSON 对象。",
)
NO_WEIGHTS = Text(
    "The model has no safetensors weights: save it with save_pretrained(safe_serialization=True) first.",
    "模型没有 safetensors 权重：请先用 save_pretrained(safe_serialization=True) 保存。",
)
BAD_WEIGHTS = Text(
    "The model's safetensors are damaged or incomplete: copy or download them again.",
    "模型的 safetensors 文件损坏或不完整：请重新复制或下载。",
)
NO_TOKENIZER = Text(
    "The model has no tokenizer: put its tokenizer.json (or vocab.json and merges.txt) beside config.json.",
    "模型缺少 tokenizer：请把 tokenizer.json（或 vocab.json 与 merges.txt）放到 config.json 旁边。",
)
PACKED = Text(
    "These weights are stored in a packed quantised format, which the engine does not read: give bf16, fp16 or fp32.",
    "这份权重以打包的量化格式保存，引擎无法读取：请提供 bf16、fp16 或 fp32 权重。",
)
READABLE_DTYPES = frozenset({"BF16", "F16", "F32"})


@dataclass(frozen=True)
class FolderFacts:
    """What the headers say.

    Attributes:
        config: config.json.
        dtype: the safetensors' name of the dtype that most bytes have ("BF16", "F16", "F32").
        weight_hash: 12 hexadecimal digits over each tensor's name, dtype, shape and first 4 KiB, in name order. Reading
            whole files would take a minute for a large model; two models that differ at all differ there in practice.
        tensors: their names.
    """

    config: dict[str, Any]
    dtype: str
    weight_hash: str
    tensors: frozenset[str]


def check_config(config: Any) -> dict[str, Any]:
    """The content of a config.json, if the engine can run such a model.

    Raises:
        InputError: it is no configuration, of another family, or of packed weights.
    """
    if not isinstance(config, dict) or not isinstance(config.get("model_type"), str):
        raise InputError(BAD_CONFIG)
    if config["model_type"] not in SUPPORTED_FAMILIES:
        raise InputError(
            f"This model's family is not supported. Supported model_type: {', '.join(SUPPORTED_FAMILIES)}.",
            f"不支持该模型的家族。受支持的 model_type：{'、'.join(SUPPORTED_FAMILIES)}。",
        )
    if "quantization_config" in config:
        raise InputError(PACKED)
    return config


def check_folder(folder: Path) -> FolderFacts:
    """Check a folder's configuration, weights and tokenizer.

    Raises:
        InputError: with the one thing that is missing or wrong.
    """
    if not (folder / "config.json").is_file():
        raise InputError(NO_CONFIG)
    config = check_config(read_json(folder / "config.json"))
    facts = _weight_facts(config, _weight_paths(folder))
    if not has_tokenizer({path.name for path in folder.iterdir()}):
        raise InputError(NO_TOKENIZER)
    return facts


def read_json(path: Path) -> Any:
    """The content of a JSON file, or None if it cannot be read (which every check here refuses)."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None


def has_tokenizer(names: set[str]) -> bool:
    """Whether these file names include a tokenizer."""
    return bool({"tokenizer.json", "tokenizer.model"} & names) or {"vocab.json", "merges.txt"} <= names


def shard_names(index: Any) -> set[str]:
    """The weight files that a model.safetensors.index.json names.

    Raises:
        InputError: it is no such index, or points out of its folder.
    """
    weight_map = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(weight_map, dict) or not weight_map:
        raise InputError(BAD_WEIGHTS)
    names = list(weight_map.values())
    if not all(isinstance(name, str) and re.fullmatch(r"[\w.-]+\.safetensors", name, re.ASCII) for name in names):
        raise InputError(BAD_WEIGHTS)
    return set(names)


def _weight_paths(folder: Path) -> list[Path]:
    if (folder / SINGLE).is_file():
        return [folder / SINGLE]
    if not (folder / INDEX).is_file():
        raise InputError(NO_WEIGHTS)
    return [folder / name for name in sorted(shard_names(read_json(folder / INDEX)))]


def _weight_facts(config: dict[str, Any], paths: list[Path]) -> FolderFacts:
    sampled: dict[str, bytes] = {}
    dtype_bytes: Counter[str] = Counter()
    try:
        for path in paths:
            _read_header(path, sampled, dtype_bytes)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, struct.error, RecursionError) as error:
        raise InputError(BAD_WEIGHTS) from error
    if not sampled:
        raise InputError(BAD_WEIGHTS)
    if not set(dtype_bytes) <= READABLE_DTYPES:
        raise InputError(PACKED)
    digest = hashlib.sha256(b"".join(sampled[name] for name in sorted(sampled)))
    return FolderFacts(config, dtype_bytes.most_common(1)[0][0], digest.hexdigest()[:12], frozenset(sampled))


def _read_header(path: Path, sampled: dict[str, bytes], dtype_bytes: Counter[str]) -> None:
    """Add a safetensors file's tensors; a ValueError if its data do not fill it exactly, end to end."""
    with path.open("rb") as file:
        (header_bytes,) = struct.unpack("<Q", file.read(8))
        if header_bytes > MAX_HEADER_BYTES:
            raise ValueError("header length")
        header = json.loads(file.read(header_bytes))
        header.pop("__metadata__", None)
        reached = 0
        for name, tensor in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
            begin, end = tensor["data_offsets"]
            if begin != reached or end < begin:
                raise ValueError("data offsets")
            reached = end
            file.seek(8 + header_bytes + begin)
            sample = file.read(min(SAMPLE_BYTES, end - begin))
            sampled[name] = f"{name} {tensor['dtype']} {tensor['shape']} ".encode() + hashlib.sha256(sample).digest()
            dtype_bytes[tensor["dtype"]] += end - begin
    if path.stat().st_size != 8 + header_bytes + reached:
        raise ValueError("file size")

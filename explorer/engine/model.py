"""A loaded model: decoder, tokenizer and where its weights came from."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from explorer.engine.config import ModelConfig
from explorer.engine.decoder import Decoder
from explorer.engine.linear import packing_available
from explorer.engine.stores.contiguous import ContiguousStore
from explorer.engine.stores.paged import PagedStore
from explorer.errors import InputError, ResourceError
from explorer.weights import ModelFiles

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


@dataclass
class Model:
    """Everything that is needed to run prompts.

    Attributes:
        config: the model's shape.
        decoder: the network.
        tokenizer: the Hugging Face tokenizer.
        dtype: `fp32`, `bf16` or `fp16`.
        device: where it runs.
        files: where its weights came from.
        weight_bytes: bytes of its distinct parameters in `dtype` (a tied head counts once).
    """

    config: ModelConfig
    decoder: Decoder
    tokenizer: Any
    dtype: str
    device: torch.device
    files: ModelFiles
    weight_bytes: int

    def contiguous_store(self, capacity: int, batch: int = 1) -> ContiguousStore:
        """A plain store that fits this model; see `ContiguousStore`."""
        return ContiguousStore(self.config, DTYPES[self.dtype], self.device, capacity, batch)

    def paged_store(self, num_blocks: int, block_size: int = 16) -> PagedStore:
        """A paged store that fits this model; see `PagedStore`."""
        return PagedStore(self.config, DTYPES[self.dtype], self.device, num_blocks, block_size)

    @property
    def implementation(self) -> str:
        """What computes, for a Record's provenance."""
        return f"own decoder, {self.decoder.implementation}"


def load(files: ModelFiles, *, dtype: str = "bf16", device: str | None = None) -> Model:
    """Load weights and tokenizer.

    Args:
        files: from `explorer.weights.resolve`.
        dtype: `fp32`, `bf16` or `fp16`.
        device: "cpu", "cuda" or "cuda:N"; the GPU if there is one by default.

    Raises:
        InputError: unknown dtype or device, unsupported family, missing or ill-shaped weights.
        ResourceError: not enough memory.
    """
    if dtype not in DTYPES:
        known = ", ".join(DTYPES)
        raise InputError(f"dtype={dtype!r}: expected one of {known}", f"dtype={dtype!r}：应为以下之一：{known}")
    where = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    if where.type not in ("cpu", "cuda") or (where.type == "cuda" and not torch.cuda.is_available()):
        raise InputError(f"device={device!r} is not here; expected cpu", f"没有设备 {device!r}；应为 cpu")
    config = ModelConfig.from_hf(json.loads((files.path / "config.json").read_text()), files.name)
    try:
        with torch.inference_mode():
            weights = read_weights(files.path, DTYPES[dtype], where)
            weight_bytes = _distinct_bytes(weights, config)
            decoder = Decoder(config, weights, packing_available(DTYPES[dtype], where))
    except KeyError as missing:
        raise InputError(
            f"the weights lack {str(missing)[:80]}; expected a complete {config.model_type} checkpoint",
            f"权重缺少 {str(missing)[:80]}；应为完整的 {config.model_type} 检查点",
        ) from None
    except (torch.OutOfMemoryError, MemoryError):
        raise ResourceError(
            "not enough memory for these weights; choose a smaller model or bf16",
            "内存不足以装下这些权重；请选更小的模型或使用 bf16",
        ) from None
    return Model(config, decoder, _tokenizer(files.path), dtype, where, files, weight_bytes)


def read_weights(folder: Path, dtype: torch.dtype, device: torch.device) -> dict[str, Tensor]:
    """All tensors of a folder's safetensors files, by name, converted.

    Raises:
        InputError: a file is not safetensors.
    """
    weights = {}
    try:
        for path in _weight_files(folder):
            with safe_open(path, framework="pt") as file:
                for name in file.keys():  # noqa: SIM118 - the file is not a dict
                    weights[name] = file.get_tensor(name).to(device, dtype)
    except (SafetensorError, json.JSONDecodeError, OSError):
        raise InputError(
            "the weights cannot be read; expected model.safetensors or its shards",
            "无法读取权重；应为 model.safetensors 或其分片",
        ) from None
    return weights


def _weight_files(folder: Path) -> Iterator[Path]:
    index = folder / "model.safetensors.index.json"
    if index.exists():
        names = sorted(set(json.loads(index.read_text())["weight_map"].values()))
        yield from (folder / Path(name).name for name in names)
    else:
        yield folder / "model.safetensors"


def _distinct_bytes(weights: dict[str, Tensor], config: ModelConfig) -> int:
    skip = {"lm_head.weight"} if config.tie_embeddings else set()
    return sum(tensor.nbytes for name, tensor in weights.items() if name not in skip)


def _tokenizer(folder: Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder, local_files_only=True)

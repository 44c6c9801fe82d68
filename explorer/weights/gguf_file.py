"""GGUF to safetensors: a quantised llama.cpp file becomes a folder that every Hugging Face loader reads.

The configuration and the tokenizer are read by transformers (`gguf_file=`); the tensors are dequantised here, one at a
time with package `gguf`, rounded to bf16 and written straight to the file: memory stays at one tensor, progress is
real, and neither torch nor accelerate is needed for it. A tied embedding is one tensor in the GGUF and stays one.
"""

import json
import os
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from explorer.errors import InputError
from explorer.text import Text
from explorer.weights.cache import require_room
from explorer.weights.model_files import SUPPORTED_FAMILIES, OnProgress, WeightProgress

# llama.cpp's names of tensors, and Hugging Face's.
OUTER_NAMES = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
ARCHITECTURES = {
    "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
}
CONVERTING = Text("Converting the weights to bf16, once", "正在把权重转换为 bf16（只需一次）")


CONVERTING_TOKENIZER = Text("Converting the tokenizer, once", "正在转换 tokenizer（只需一次）")
UNREADABLE = Text(
    "This GGUF file cannot be read: give a complete one, or a folder with config.json and safetensors.",
    "无法读取这个 GGUF 文件：请给出完整的文件，或包含 config.json 与 safetensors 的文件夹。",
)
OTHER_DECODER = Text(
    "This GGUF file holds a model with parts that the engine does not have (other tensors, scaled RoPE or a sliding "
    "window): give its safetensors folder instead.",
    "这个 GGUF 文件中的模型含有引擎不具备的部分（其他张量、缩放的 RoPE 或滑动窗口）：请改用它的 safetensors 文件夹。",
)


def hugging_face_name(gguf_name: str) -> str:
    """`blk.3.attn_q.weight` -> `model.layers.3.self_attn.q_proj.weight`.

    Raises:
        InputError: the tensor is none of a Llama-family decoder's.
    """
    layer = re.fullmatch(r"blk\.(\d+)\.(\w+)\.(weight|bias)", gguf_name)
    if layer and layer[2] in LAYER_NAMES:
        return f"model.layers.{layer[1]}.{LAYER_NAMES[layer[2]]}.{layer[3]}"
    stem, _, kind = gguf_name.rpartition(".")
    if stem in OUTER_NAMES and kind == "weight":
        return f"{OUTER_NAMES[stem]}.weight"
    raise InputError(OTHER_DECODER)


def convert(source: Path, target: Path, on_progress: OnProgress) -> str:
    """Write config.json, model.safetensors (bf16) and the tokenizer's files of GGUF file `source` to folder `target`.

    Args:
        source: a GGUF file of a supported family.
        target: an existing, empty folder.
        on_progress: told after every tensor; what it raises ends the conversion.

    Returns:
        The quantisation that most of the weights have, such as "Q4_1".

    Raises:
        InputError: not a GGUF file, or not of a supported family.
    """
    reader = _open(source)
    family = _family(reader)
    total = sum(2 * int(tensor.n_elements) for tensor in reader.tensors)
    require_room(target, total)
    on_progress(WeightProgress("convert", 0, total, CONVERTING))
    heads = {}
    if family == "llama":  # llama.cpp reorders its query and key rows for another rotary layout, and no other family's
        heads["attn_q"] = int(_value(reader, "llama.attention.head_count", 0))
        heads["attn_k"] = int(_value(reader, "llama.attention.head_count_kv", heads["attn_q"]))
    _write(target / "model.safetensors", reader.tensors, heads, on_progress, total)
    on_progress(WeightProgress("convert", total, total, CONVERTING_TOKENIZER))
    try:
        _write_config(source, target, _value(reader, f"{family}.attention.key_length", None))
        _write_tokenizer(source, target, _value(reader, "tokenizer.ggml.pre", ""))
    except (OSError, ImportError):
        raise
    except Exception as error:  # the tokenizers library raises nothing narrower for a vocabulary that does not fit
        raise InputError(UNREADABLE) from error
    return _main_quantisation(reader.tensors)


def _open(source: Path) -> Any:
    import gguf

    try:
        return gguf.GGUFReader(source)
    except (ValueError, OSError, LookupError, TypeError, OverflowError, MemoryError) as error:
        raise InputError(UNREADABLE) from error


def _value(reader: Any, key: str, default: Any) -> Any:
    found = reader.fields.get(key)
    return default if found is None else found.contents()


def _family(reader: Any) -> str:
    """The model family, if its decoder is one that config.json can describe from what the GGUF file says."""
    family = str(_value(reader, "general.architecture", ""))
    if family not in SUPPORTED_FAMILIES:
        raise InputError(
            f"This GGUF file's family is not supported. Supported: {', '.join(SUPPORTED_FAMILIES)}.",
            f"不支持这个 GGUF 文件的模型家族。受支持的有：{'、'.join(SUPPORTED_FAMILIES)}。",
        )
    scaled = _value(reader, f"{family}.rope.scaling.type", "none") != "none"
    windowed = bool(_value(reader, f"{family}.attention.sliding_window", 0))
    biased = family != "qwen2" and any(tensor.name.endswith(".bias") for tensor in reader.tensors)
    if scaled or windowed or biased:
        raise InputError(OTHER_DECODER)
    return family


def _main_quantisation(tensors: list[Any]) -> str:
    elements: dict[str, int] = {}
    for tensor in tensors:
        kind = tensor.tensor_type.name
        elements[kind] = elements.get(kind, 0) + int(tensor.n_elements)
    return max(elements, key=lambda kind: elements[kind])


def _write(target: Path, tensors: list[Any], heads: dict[str, int], on_progress: OnProgress, total: int) -> None:
    """A safetensors file: 8 bytes of header length, the header as JSON, then the tensors' bytes end to end."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for tensor in tensors:
        end = offset + 2 * int(tensor.n_elements)
        shape = [int(size) for size in reversed(tensor.shape)]
        header[hugging_face_name(tensor.name)] = {"dtype": "BF16", "shape": shape, "data_offsets": [offset, end]}
        offset = end
    encoded = json.dumps(header, separators=(",", ":")).encode()
    encoded += b" " * (-len(encoded) % 8)  # the data begins at a multiple of 8
    done = 0
    with target.open("wb") as file:
        file.write(struct.pack("<Q", len(encoded)) + encoded)
        for data in _bf16_bytes(tensors, heads):
            file.write(data)
            done += len(data)
            on_progress(WeightProgress("convert", done, total, CONVERTING))
        file.flush()
        os.fsync(file.fileno())


def _bf16_bytes(tensors: list[Any], heads: dict[str, int]) -> Iterator[bytes]:
    import numpy as np
    from gguf import dequantize

    for tensor in tensors:
        values = np.asarray(dequantize(tensor.data, tensor.tensor_type), dtype=np.float32)
        part = tensor.name.split(".")[-2]
        if part in heads:
            # [head, half, 2, ...] in the file is [head, 2, half, ...] in the model.
            rows = values.reshape(heads[part], values.shape[0] // heads[part] // 2, 2, *values.shape[1:])
            values = rows.swapaxes(1, 2).reshape(values.shape)
        bits = np.ascontiguousarray(values).view(np.uint32)
        # bf16 is float32's upper half; adding just under half a unit, plus the last kept bit, rounds to nearest even.
        yield ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2").tobytes()


def _write_config(source: Path, target: Path, head_dim: int | None) -> None:
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(source.parent, gguf_file=source.name).to_dict()
    config.pop("_name_or_path", None)
    config |= {"dtype": "bfloat16", "architectures": [ARCHITECTURES[config["model_type"]]]}
    # transformers reads head_dim for Llama only, and gives every Qwen3 model 128.
    config["head_dim"] = head_dim or config["hidden_size"] // config["num_attention_heads"]
    # transformers before version 5 looks for the rotary base at the top, later ones below rope_parameters.
    config["rope_theta"] = config["rope_parameters"]["rope_theta"]
    (target / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True), encoding="utf-8")


def _write_tokenizer(source: Path, target: Path, splitting: str) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name)
    if splitting == "smollm":
        _split_digits(tokenizer)
    tokenizer.save_pretrained(target)


def _split_digits(tokenizer: Any) -> None:
    """SmolLM's own splitting: every digit alone, then byte level (transformers' GGUF reader keeps only the latter)."""
    from tokenizers import pre_tokenizers

    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )

"""Tiny models for the weight tests: a folder, a GGUF file and a wheel, each made in a second and without a network."""

import hashlib
import json
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest

from explorer.text import Text
from explorer.weights.cache import WeightCache
from explorer.weights.package import PackagedModel
from explorer.weights.resolve import Resolver
from explorer.weights.source_error import SourceError
from explorer.weights.sources import Sources

MODEL = "test-org/tiny"
SIZES = {
    "vocab_size": 262,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "max_position_embeddings": 128,
    "rms_norm_eps": 1e-3,
    "rope_parameters": {"rope_type": "default", "rope_theta": 5_000.0},
}


@pytest.fixture
def cache(tmp_path):
    return WeightCache(tmp_path / "cache")


@pytest.fixture(scope="session")
def byte_tokens():
    """The 256 characters of byte-level BPE, two merges, then four special tokens."""
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    return [*bytes_to_unicode().values(), "he", "12", "<s>", "</s>", "<unk>", "<pad>"]


@pytest.fixture(scope="session")
def make_model():
    """`make_model("qwen2", tied=False)`: a random model of that family, its weights representable in bf16."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    def make(family="llama", *, tied=True):
        torch.manual_seed(0)
        # Only Qwen2's heads must share out the hidden size; elsewhere head_dim is a free choice that must be kept.
        sizes = SIZES | ({"head_dim": 16} if family == "qwen2" else {})
        config = AutoConfig.for_model(family, **sizes, tie_word_embeddings=tied, bos_token_id=258, eos_token_id=259)
        model = AutoModelForCausalLM.from_config(config).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                # Not zero and not one anywhere, so that a lost bias or norm shows.
                parameter.copy_((torch.randn_like(parameter) * 0.2 + 0.1).bfloat16())
        return model

    return make


@pytest.fixture(scope="session")
def make_gguf(byte_tokens):
    """`make_gguf(model, path, quantised=False)`: the file that llama.cpp's converter would write."""
    import gguf

    from explorer.weights.gguf_file import LAYER_NAMES, OUTER_NAMES

    outer = {name: short for short, name in OUTER_NAMES.items()}
    inner = {name: short for short, name in LAYER_NAMES.items()}

    def short_name(name):
        stem, _, kind = name.rpartition(".")
        if stem in outer:
            return f"{outer[stem]}.{kind}"
        _, _, layer, rest = stem.split(".", 3)
        return f"blk.{layer}.{inner[rest]}.{kind}"

    def make(model, path, *, quantised=False, extra=None):
        config = model.config
        writer = gguf.GGUFWriter(path, config.model_type)
        writer.add_block_count(config.num_hidden_layers)
        writer.add_context_length(config.max_position_embeddings)
        writer.add_embedding_length(config.hidden_size)
        writer.add_feed_forward_length(config.intermediate_size)
        writer.add_head_count(config.num_attention_heads)
        writer.add_head_count_kv(config.num_key_value_heads)
        writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
        writer.add_layer_norm_rms_eps(config.rms_norm_eps)
        if config.model_type != "qwen2":
            writer.add_key_length(config.head_dim)
        writer.add_vocab_size(config.vocab_size)
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre("smollm")
        writer.add_token_list(byte_tokens)
        writer.add_token_types([1] * 258 + [3] * 4)
        writer.add_token_merges(["h e", "1 2"])
        writer.add_bos_token_id(258)
        writer.add_eos_token_id(259)
        for key, value in (extra or {}).items():
            writer.add_string(key, value)
        state = model.state_dict()
        for name, tensor in state.items():
            if name == "lm_head.weight" and config.tie_word_embeddings:
                continue
            values = tensor.float().numpy()
            short = short_name(name)
            heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}.get(
                short.split(".")[-2]
            )
            if config.model_type == "llama" and heads:
                halves = values.reshape(heads, 2, values.shape[0] // heads // 2, *values.shape[1:])
                values = halves.swapaxes(1, 2).reshape(values.shape)
            if quantised and values.ndim == 2:
                kind = gguf.GGMLQuantizationType.Q4_1
                writer.add_tensor(short, gguf.quantize(np.ascontiguousarray(values), kind), raw_dtype=kind)
            else:
                writer.add_tensor(short, np.ascontiguousarray(values))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path

    return make


@pytest.fixture(scope="session")
def tiny_gguf(make_model, make_gguf, tmp_path_factory):
    return make_gguf(make_model(), tmp_path_factory.mktemp("gguf") / "tiny.gguf", quantised=True)


@pytest.fixture(scope="session")
def tiny_wheel(tiny_gguf, tmp_path_factory):
    path = tmp_path_factory.mktemp("wheel") / "tiny-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.write(tiny_gguf, "tiny/tiny.gguf")
    return path


@pytest.fixture(scope="session")
def packaged(tiny_gguf, tiny_wheel):
    content = tiny_gguf.read_bytes()
    return PackagedModel(
        model=MODEL,
        requirement="tiny==1.0",
        wheel_bytes=tiny_wheel.stat().st_size,
        member="tiny/tiny.gguf",
        size_bytes=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        licence="apache-2.0",
        config={"model_type": "llama", "num_hidden_layers": 2, "rope_parameters.rope_theta": 5_000.0},
    )


class Wheels:
    """A package index with one wheel. Counts how often it was asked."""

    def __init__(self, wheel: Path):
        self.wheel, self.asked = wheel, 0

    def __call__(self, requirement, folder, on_bytes):
        self.asked += 1
        shutil.copy(self.wheel, folder)
        on_bytes(self.wheel.stat().st_size)


def no_hub(task, folder, on_bytes, limit_s):
    raise SourceError(Text("no Hub here", "这里没有 Hub"))


def no_wheels(requirement, folder, on_bytes):
    raise SourceError(Text("no index here", "这里没有索引"))


@pytest.fixture
def wheels(tiny_wheel):
    return Wheels(tiny_wheel)


@pytest.fixture
def resolver(cache, packaged, wheels):
    return Resolver(cache, Sources(packaged, wheels, no_hub))


@pytest.fixture
def no_sources(packaged):
    return Sources(packaged, no_wheels, no_hub)


@pytest.fixture
def make_folder(tmp_path):
    """`make_folder(config={...}, without="tokenizer.json")`: a model folder made by hand, one small tensor."""

    def make(name="model", *, config=None, without=(), dtype="F32", fill=1.0):
        folder = tmp_path / name
        folder.mkdir()
        values = np.full((4, 8), fill, dtype=np.float32).tobytes()
        header = {"model.embed_tokens.weight": {"dtype": dtype, "shape": [4, 8], "data_offsets": [0, len(values)]}}
        write_safetensors(folder / "model.safetensors", header, values)
        (folder / "config.json").write_text(json.dumps({"model_type": "llama", **(config or {})}))
        (folder / "tokenizer.json").write_text("{}")
        for name_without in without:
            (folder / name_without).unlink()
        return folder

    return make


def write_safetensors(path: Path, header: dict, data: bytes) -> None:
    encoded = json.dumps(header).encode()
    path.write_bytes(len(encoded).to_bytes(8, "little") + encoded + data)

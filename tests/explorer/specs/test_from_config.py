"""What a config says its layers keep; and every way in which a config can be wrong, one line each."""

import copy
import json
import time

import pytest

from explorer.errors import InputError
from explorer.specs.from_config import UnknownFamily, from_config
from explorer.specs.layers import FullAttention
from explorer.specs.read_config import MAX_CONFIG_BYTES, parse_config, read_config

LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "max_position_embeddings": 131072,
}
QWEN3 = LLAMA | {"model_type": "qwen3", "hidden_size": 2560, "num_hidden_layers": 36, "head_dim": 128}


def test_uniform_layers():
    spec = from_config(LLAMA, "mine")
    assert spec.layers == (FullAttention(num_kv_heads=8, key_dim=128, value_dim=128),) * 32
    assert (spec.name, spec.num_heads, spec.hidden_size, spec.max_positions) == ("mine", 32, 4096, 131072)
    assert spec.assumptions == ()


def test_one_layer_by_hand():
    """8 heads x (128 + 128) elements x 2 bytes = 4,096 B a token; nothing constant; all of it is read."""
    layer = FullAttention(8, 128, 128)
    assert layer.growing_bytes_per_token(2) == 4_096
    assert layer.bytes_at(1_000, 2) == layer.read_bytes_at(1_000, 2) == 4_096_000
    assert layer.constant_bytes(2) == 0


def test_key_and_value_may_differ():
    """MiMo-V2's 192 and 128: 4 heads x 320 elements x 2 bytes."""
    assert FullAttention(4, 192, 128).bytes_at(1, 2) == 2_560


def test_explicit_head_dim_wins_over_hidden_by_heads():
    """Qwen3-4B: hidden / heads would be 80; the config says 128."""
    assert from_config(QWEN3).layers[0].key_dim == 128


def test_absent_head_dim():
    assert from_config({**QWEN3, "head_dim": None}).layers[0].key_dim == 128  # qwen3's own default, said
    assert "head_dim" in from_config({**QWEN3, "head_dim": None}).assumptions[0].en
    assert from_config({**LLAMA, "head_dim": None}).layers[0].key_dim == 4096 // 32


def test_absent_kv_heads():
    """LLaMA 1 has no such field: one KV head per query head, and that is said. Others must give it."""
    old = {key: value for key, value in LLAMA.items() if key != "num_key_value_heads"}
    assert from_config(old).layers[0].num_kv_heads == 32
    assert "32" in from_config(old).assumptions[0].zh
    with pytest.raises(InputError, match="no num_key_value_heads"):
        from_config(old | {"model_type": "qwen2"})
    assert from_config(LLAMA | {"model_type": "qwen2", "num_key_value_heads": None}).layers[0].num_kv_heads == 32


@pytest.mark.parametrize(
    "off",
    [
        {"model_type": "qwen2", "sliding_window": 4096, "use_sliding_window": False},
        {"model_type": "qwen2", "sliding_window": 4096},  # off is the family's default
        {"model_type": "qwen2", "sliding_window": None, "use_sliding_window": True},
        {"model_type": "qwen2", "sliding_window": 4096, "use_sliding_window": True, "max_window_layers": 32},
        {"model_type": "mistral", "sliding_window": None},
        {"model_type": "mistral", "sliding_window": 4096, "use_sliding_window": False},
        {"model_type": "llama", "sliding_window": None},
        {"model_type": "llama", "layer_types": ["full_attention"] * 32},
    ],
)
def test_windows_that_are_switched_off_are_honoured(off):
    assert len(from_config(LLAMA | off).layers) == 32


@pytest.mark.parametrize(
    "on",
    [
        {"model_type": "mistral"},  # the class's default is 4,096
        {"model_type": "llama", "sliding_window": 4096},
        {"kv_lora_rank": 512},
        {"num_kv_shared_layers": 2},
        {"attention_chunk_size": 8192},
    ],
)
def test_layers_that_keep_something_else_are_refused(on):
    with pytest.raises(InputError, match=r"not supported yet|write null"):
        from_config(LLAMA | on)


def test_language_model_inside_a_multimodal_config():
    spec = from_config({"model_type": "llava", "text_config": LLAMA, "vision_config": {"hidden_size": 1024}})
    assert len(spec.layers) == 32
    assert "text_config" in spec.assumptions[0].en


def test_other_model_types_are_refused_by_name():
    with pytest.raises(InputError) as caught:
        from_config(LLAMA | {"model_type": "lama"})
    assert isinstance(caught.value, UnknownFamily) and caught.value.model_type == "lama"
    assert "'lama'" in caught.value.text.zh and "llama" in str(caught.value)


HOSTILE = {
    "negative layers": {"num_hidden_layers": -1},
    "zero heads": {"num_attention_heads": 0},
    "zero kv heads": {"num_key_value_heads": 0},
    "10^12 layers": {"num_hidden_layers": 10**12},
    "a number of 4,000 digits": {"num_hidden_layers": 10**4000},
    "half a layer": {"num_hidden_layers": 32.5},
    "NaN": {"hidden_size": float("nan"), "num_hidden_layers": float("nan")},
    "infinity": {"num_attention_heads": float("inf")},
    "a string": {"num_hidden_layers": "32"},
    "true": {"num_key_value_heads": True},
    "a list": {"num_key_value_heads": [8] * 32},
    "an object": {"head_dim": {"a": 1}},
    "heads that do not divide": {"num_key_value_heads": 5},
    "more KV than query heads": {"num_key_value_heads": 64},
    "a width that does not divide": {"hidden_size": 4097},
    "huge head_dim": {"head_dim": 10**9},
    "model_type that is a list": {"model_type": ["llama"]},
    "model_type of a megabyte": {"model_type": "x" * 2**20},
    "no model_type": {"model_type": None},
    "layer_types of the wrong length": {"layer_types": ["full_attention"]},
    "layer_types that is text": {"layer_types": "full_attention"},
    "layer_types of numbers": {"layer_types": [1] * 32},
    "negative positions": {"max_position_embeddings": -5},
    "text_config that is text": {"model_type": "x", "text_config": "y"},
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_hostile_fields_give_one_short_line(change):
    started = time.perf_counter()
    with pytest.raises(InputError) as caught:
        from_config(LLAMA | change)
    assert time.perf_counter() - started < 0.5
    for line in (caught.value.text.en, caught.value.text.zh):
        assert "\n" not in line
        assert len(line) < 250


@pytest.mark.parametrize("field", ["model_type", "num_hidden_layers", "num_attention_heads", "hidden_size"])
def test_missing_fields_are_named(field):
    config = copy.copy(LLAMA)
    del config[field]
    with pytest.raises(InputError, match=field):
        from_config(config)


@pytest.mark.parametrize("value", [[], [LLAMA], "llama", 3, None, True])
def test_a_config_that_is_no_object(value):
    with pytest.raises(InputError, match="expected a JSON object"):
        from_config(value)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "not JSON"),
        (b"{", r"not JSON \(line 1\)"),
        (bytes(range(256)), "not text"),
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 100, "not text"),
        (b'{"num_hidden_layers": NaN}', "NaN"),
        (b'{"num_hidden_layers": -Infinity}', "-Infinity"),
        (b'{"num_hidden_layers": ' + b"9" * 5_000 + b"}", "not JSON"),
        (b"[" * 3_000 + b"]" * 3_000, "nested too deeply"),
        (b'{"a":' * 3_000 + b"1" + b"}" * 3_000, "nested too deeply"),
        (b"[" * 2_000_000, "nested too deeply"),
        (b" " * (MAX_CONFIG_BYTES + 1), "larger than 4 MiB"),
    ],
)
def test_files_that_are_no_config(raw, message):
    started = time.perf_counter()
    with pytest.raises(InputError, match=message) as caught:
        parse_config(raw)
    assert time.perf_counter() - started < 1
    assert "\n" not in str(caught.value)


def test_reading_from_disk(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    assert read_config(tmp_path) == read_config(tmp_path / "config.json") == LLAMA
    (tmp_path / "bom.json").write_bytes(b"\xef\xbb\xbf{}")
    assert read_config(tmp_path / "bom.json") == {}


def test_a_file_of_50_megabytes_is_not_read_through(tmp_path):
    with (tmp_path / "config.json").open("wb") as file:
        file.truncate(50 * 10**6)
    started = time.perf_counter()
    with pytest.raises(InputError, match="larger than 4 MiB"):
        read_config(tmp_path)
    assert time.perf_counter() - started < 0.5


def test_paths_that_are_no_file(tmp_path):
    import os

    os.mkfifo(tmp_path / "pipe.json")  # opening it would wait for ever
    with pytest.raises(InputError, match="not a regular file"):
        read_config(tmp_path / "pipe.json")
    with pytest.raises(InputError, match=r"no config\.json"):
        read_config(tmp_path)
    with pytest.raises(InputError) as caught:
        read_config(tmp_path / "absent.json")
    assert str(tmp_path) not in caught.value.text.en + caught.value.text.zh

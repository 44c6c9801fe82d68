"""Every reader, every field, every wrong value: one short line or a spec, at once; never a trace, never a hang."""

import random
import time

import pytest

from explorer.errors import InputError
from explorer.estimators.memory import cache_bytes
from explorer.specs.from_config import from_config
from tests.explorer.specs.family_configs import CONFIGS

BAD = [
    -1,
    0,
    1.5,
    float("nan"),
    float("inf"),
    10**12,
    10**400,
    "32",
    "x" * 2**20,
    True,
    None,
    [],
    [None] * 10_000,
    ["full_attention"] * 10_000,
    [[]] * 61,
    [{}] * 80,
    [10**30] * 93,
    {},
    {"a": {"b": []}},
    {"full_attn_layers": [1], "kda_layers": [float("nan")], "num_heads": "x"},
    {"0": {"head_dim": -1}, "5": {"num_key_value_heads": "y"}},
    {"compressed_sparse_attention": 0, "heavily_compressed_attention": "z"},
    b"bytes",
]
OPTIONAL = [
    "layer_types",
    "head_dim",
    "sliding_window",
    "use_sliding_window",
    "sliding_window_pattern",
    "num_kv_shared_layers",
    "per_layer_config",
    "linear_attn_config",
    "compress_ratios",
    "compress_rates",
    "no_rope_layers",
    "index_topk_pattern",
    "index_topk_freq",
    "indexer_types",
    "max_position_embeddings",
    "max_window_layers",
    "text_config",
    "thinker_config",
    "num_nextn_predict_layers",
    "use_mtp",
    "attention_k_eq_v",
    "full_attention_interval",
    "linear_conv_kernel_dim",
    "intermediate_size",
    "expand",
]


def survives(config):
    """A spec that can be summed, or one line in each language."""
    try:
        spec = from_config(config)
        assert cache_bytes(spec, 2**30, 65_536).total_bytes >= 0
    except InputError as error:
        for line in (error.text.en, error.text.zh):
            assert "\n" not in line and len(line) < 320, line


@pytest.mark.parametrize("name", CONFIGS)
def test_every_field_with_every_wrong_value(name):
    config = CONFIGS[name]
    started = time.perf_counter()
    for field in {*config, *OPTIONAL}:
        for value in BAD:
            survives(config | {field: value})
        survives({key: value for key, value in config.items() if key != field})
    assert time.perf_counter() - started < 10


def test_many_wrong_fields_at_once():
    draw = random.Random(20261129)
    for _ in range(2_000):
        config = dict(draw.choice(list(CONFIGS.values())))
        for _ in range(draw.randint(1, 4)):
            config[draw.choice([*config, *OPTIONAL])] = draw.choice(BAD)
        survives(config)


def test_text_configs_inside_each_other():
    inner = CONFIGS["llama-3.1-8b"]
    for _ in range(50):
        inner = {"model_type": "x", "text_config": inner}
    with pytest.raises(InputError, match="model_type is 'x'"):
        from_config(inner)


@pytest.mark.parametrize("name", CONFIGS)
def test_the_largest_sums_are_quick(name):
    """No sum walks over tokens or layers one by one: a thousand layers and 2**30 tokens take no longer."""
    spec = from_config(CONFIGS[name])
    started = time.perf_counter()
    cache_bytes(spec, 2**30, 65_536, include_mtp=True)
    assert time.perf_counter() - started < 0.2

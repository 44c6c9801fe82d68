"""Hybrids of the long tail, each by hand: what attends grows, what carries a state does not."""

import pytest

from explorer.errors import InputError
from explorer.specs.from_config import from_config

KIB, MIB = 2**10, 2**20
GROUPED = {"hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8}


def slope(spec):
    return sum(layer.growing_bytes_per_token("bf16") for layer in spec.layers)


def size(spec, tokens):
    return sum(layer.bytes_at(tokens, "bf16") for layer in spec.layers)


def test_jamba():
    """4 of 32 layers attend: 4*2*8*128*2 = 16 KiB a token. 28 Mamba layers: 8,192 channels, 16 numbers each in fp32
    (512 KiB) and 3 inputs in bf16 (48 KiB): 15.3125 MiB."""
    spec = from_config({"model_type": "jamba", **GROUPED, "attn_layer_period": 8, "attn_layer_offset": 4})
    assert (slope(spec), size(spec, 0)) == (16 * KIB, 28 * (512 + 48) * KIB)
    assert [i for i, layer in enumerate(spec.layers) if layer.kind == "full_attention"] == [4, 12, 20, 28]


MAMBA2 = {"mamba_n_heads": 128, "mamba_n_groups": 1, "mamba_d_state": 256, "mamba_d_conv": 4, "mamba_expand": 2}
# 8,192 channels * 256 in fp32 = 8 MiB; 3 inputs of 8,192 + 2*256 channels in bf16 = 52,224 B
STATE = 8 * MIB + 3 * (8192 + 512) * 2


def test_mamba2_hybrids():
    """Bamba 9B: 3 attention layers, 3*4,096 B a token, 29 states. Granite: by layer_types, old names and new.
    Falcon-H1: both in every layer."""
    bamba = from_config({"model_type": "bamba", **GROUPED, **MAMBA2, "attn_layer_indices": [9, 18, 27]})
    assert (slope(bamba), size(bamba, 0)) == (3 * 4096, 29 * STATE)
    for names in (("mamba", "attention"), ("linear_attention", "full_attention")):
        types = [names[0]] * 28 + [names[1]] * 4
        granite = from_config({"model_type": "granitemoehybrid", **GROUPED, **MAMBA2, "layer_types": types})
        assert (slope(granite), size(granite, 0)) == (4 * 4096, 28 * STATE)
    falcon = from_config({"model_type": "falcon_h1", **GROUPED, **MAMBA2, "mamba_d_ssm": 8192})
    assert (slope(falcon), size(falcon, 0)) == (32 * 4096, 32 * STATE)
    with pytest.raises(InputError, match="does not divide"):
        from_config({"model_type": "bamba", **GROUPED, **MAMBA2, "mamba_n_heads": 100})


def test_zamba2():
    """2.7B: 9 of 54 layers attend with 32 heads of 2*2,560/32 = 160: 9*20,480 B a token. Each of 54 states: 5,120*64
    in fp32, 3 inputs of 5,120 + 2*64 channels."""
    config = {"model_type": "zamba2", "hidden_size": 2560, "num_hidden_layers": 54, "num_attention_heads": 32}
    config |= {"n_mamba_heads": 80, "mamba_d_state": 64, "mamba_ngroups": 1, "num_key_value_heads": 32}
    config |= {"hybrid_layer_ids": [6, 12, 18, 24, 30, 36, 42, 47, 51]}
    spec = from_config(config)
    assert (slope(spec), size(spec, 0)) == (9 * 20_480, 54 * (5120 * 64 * 4 + 3 * (5120 + 128) * 2))
    with pytest.raises(InputError, match="which layers attend"):
        from_config({**config, "hybrid_layer_ids": None})


def test_nemotron_h():
    """M: 64 heads of 64 with 128 numbers in fp32 and 3 inputs of 4,096 + 2*8*128 channels; *: 2 heads of 128, 1 KiB; E
    and -: nothing."""
    config = {"model_type": "nemotron_h", "hidden_size": 2688, "num_attention_heads": 32, "num_key_value_heads": 2}
    config |= {"mamba_num_heads": 64, "mamba_head_dim": 64, "n_groups": 8, "ssm_state_size": 128, "head_dim": 128}
    spec = from_config(config | {"hybrid_override_pattern": "MEM*-"})
    state = 4096 * 128 * 4 + 3 * (4096 + 2048) * 2
    assert [layer.kind for layer in spec.layers] == [
        "recurrent_state",
        "none",
        "recurrent_state",
        "full_attention",
        "none",
    ]
    assert (slope(spec), size(spec, 0)) == (1024, 2 * state)
    named = from_config(config | {"layers_block_type": ["mamba", "moe", "mamba", "attention", "mlp"]})
    assert named.layers == spec.layers
    half = from_config(config | {"hybrid_override_pattern": "M", "mamba_ssm_cache_dtype": "bfloat16"})
    assert size(half, 0) == state - 4096 * 128 * 2
    for wrong in ("MX", "", None, 7):
        with pytest.raises(InputError, match="hybrid_override_pattern"):
            from_config(config | {"hybrid_override_pattern": wrong})


def test_short_convolutions_and_griffin():
    """LFM2: 10 conv layers of 2,048 channels and 2 earlier inputs, 8 KiB each; 6 attention layers of 8 heads of 64.
    RecurrentGemma 2B: 18 RG-LRU layers of 2,560 fp32 numbers and 3 inputs, 8 windows of 2,048 tokens of one head of
    256."""
    types = ["conv", "conv", "full_attention"] * 5 + ["full_attention"]
    lfm = {"hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8}
    spec = from_config({"model_type": "lfm2", **lfm, "layer_types": types, "conv_L_cache": 3})
    assert (slope(spec), size(spec, 0)) == (6 * 2048, 10 * 8 * KIB)
    griffin = {"hidden_size": 2560, "num_hidden_layers": 26, "num_attention_heads": 10, "num_key_value_heads": 1}
    spec = from_config({"model_type": "recurrent_gemma", **griffin, "attention_window_size": 2048})
    assert slope(spec) == 0
    assert size(spec, 5000) == size(spec, 2048) == 18 * (2560 * 4 + 3 * 2560 * 2) + 8 * 2048 * 1024
    with pytest.raises(InputError, match="block_types"):
        from_config({"model_type": "recurrent_gemma", **griffin, "block_types": ["recurrent", "other"]})

"""Where a file leaves a field out, the reader assumes what transformers' own configuration class does, and no more.

A config with next to nothing in it is read as it is, and as the class writes it with all its defaults: the layers must
be the same. Only configuration classes are imported, no model.
"""

import warnings

import pytest

from explorer.errors import InputError
from explorer.specs.from_config import from_config
from explorer.specs.readers import readers

pytest.importorskip("transformers")

# Fields without which a reader refuses: the size of the stack, and layouts and heads that are never assumed.
NEEDED: dict[str, dict] = {
    "deepseek_v4": {"compress_ratios": [0, 4, 128, 4] * 3, "num_attention_heads": 64},
    "minimax": {"layer_types": ["linear_attention", "full_attention"] * 6, "num_attention_heads": 32},
    "kimi_linear": {
        "layer_types": ["linear_attention"] * 11 + ["full_attention"],
        "linear_num_heads": 32,
        "linear_head_dim": 128,
        "linear_conv_kernel_dim": 4,
        "num_attention_heads": 32,
    },
    "mistral": {"sliding_window": None, "num_attention_heads": 32, "num_key_value_heads": 8},
    "mamba2": {"hidden_size": 4096},
}
HEADS = {"num_attention_heads": 32}
GROUPED = {"num_attention_heads": 32, "num_key_value_heads": 8}
CORE = {
    "llama": HEADS,
    "mistral": NEEDED["mistral"],
    "mixtral": GROUPED,
    "qwen2": GROUPED,
    "qwen2_moe": GROUPED,
    "qwen3": GROUPED,
    "qwen3_moe": GROUPED,
    "qwen3_next": {},
    "qwen3_5_text": {},
    "qwen3_5_moe_text": {},
    "gemma": {},
    "gemma2": {},
    "gemma3_text": {},
    "gemma3n_text": {"num_hidden_layers": 35},
    "gemma4_text": {},
    "llama4_text": {},
    "phi": HEADS,
    "phi3": HEADS,
    "phimoe": HEADS,
    "smollm3": {},
    "gpt_oss": {},
    "deepseek_v2": HEADS,
    "deepseek_v3": HEADS,
    "deepseek_v32": HEADS,
    "deepseek_v4": NEEDED["deepseek_v4"],
    "glm_moe_dsa": HEADS,
    "glm4_moe_lite": HEADS,
    "kimi_linear": NEEDED["kimi_linear"],
    "minimax": NEEDED["minimax"],
    "minimax_m2": {},
    "glm": HEADS,
    "glm4": HEADS,
    "glm4_moe": HEADS,
    "mamba": {},
    "falcon_mamba": {},
    "mamba2": NEEDED["mamba2"],
    "rwkv": {},
}


def as_the_class_writes_it(fields):
    from transformers import AutoConfig

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = {name: value for name, value in fields.items() if name != "model_type"}
        return AutoConfig.for_model(fields["model_type"], **given).to_dict()


@pytest.mark.parametrize("model_type", CORE)
def test_a_bare_config_means_what_the_class_makes_of_it(model_type):
    bare = {"model_type": model_type, "num_hidden_layers": 12, "hidden_size": 2048} | CORE[model_type]
    written = as_the_class_writes_it(bare)
    ours, theirs = from_config(bare), from_config(written)
    assert ours.layers == theirs.layers
    assert ours.num_heads == theirs.num_heads


@pytest.mark.parametrize("model_type", CORE)
def test_nothing_more_can_be_left_out(model_type):
    """Each field in the table above is one that the reader needs; without it the answer is a refusal, not a guess."""
    bare = {"model_type": model_type, "num_hidden_layers": 12, "hidden_size": 2048} | CORE[model_type]
    for field in CORE[model_type]:
        if field not in ("num_hidden_layers", "hidden_size"):
            left = {name: value for name, value in bare.items() if name != field}
            with pytest.raises(InputError, match=r"it is needed|write null"):
                from_config(left)


def test_the_table_names_readers():
    assert set(CORE) <= set(readers())

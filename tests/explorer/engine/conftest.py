"""Tiny random models of every supported family, saved the way a checkpoint is, and their transformers twins."""

import json
from dataclasses import dataclass

import pytest
import torch

from explorer.engine.config import ModelConfig
from explorer.engine.decoder import Decoder
from explorer.engine.linear import packing_available
from explorer.engine.model import read_weights

SMALL = {
    "vocab_size": 97,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
}
FAMILIES = {
    "llama": ("Llama", {"tie_word_embeddings": True}),
    "llama-one-kv-head": ("Llama", {"num_key_value_heads": 1}),
    "llama-as-many-kv-heads": ("Llama", {"num_key_value_heads": 6}),
    "llama-biases": ("Llama", {"attention_bias": True, "mlp_bias": True}),
    "llama-3-rope": (
        "Llama",
        {
            "rope_parameters": {
                "rope_type": "llama3",
                "rope_theta": 500000.0,
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 64,
            }
        },
    ),
    "llama-linear-rope": ("Llama", {"rope_parameters": {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}}),
    "llama-yarn-rope": (
        "Llama",
        {
            "rope_parameters": {
                "rope_type": "yarn",
                "rope_theta": 10000.0,
                "factor": 4.0,
                "original_max_position_embeddings": 64,
            }
        },
    ),
    "mistral": ("Mistral", {"sliding_window": None, "head_dim": 16}),
    "mistral-window": ("Mistral", {"sliding_window": 7}),
    "qwen2": ("Qwen2", {}),
    "qwen2-window-in-upper-layers": (
        "Qwen2",
        {"use_sliding_window": True, "sliding_window": 7, "max_window_layers": 1},
    ),
    "qwen3": ("Qwen3", {"head_dim": 16}),
}


@dataclass
class Twins:
    """The same weights here and in transformers, float32."""

    config: ModelConfig
    decoder: Decoder
    oracle: torch.nn.Module

    def expected(self, token_ids):
        """transformers' logits for a whole sequence, [tokens, vocab_size]."""
        with torch.inference_mode():
            return self.oracle(torch.tensor([token_ids])).logits[0]


def make_twins(family, folder):
    import transformers

    name, changes = FAMILIES[family]
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**{**SMALL, **changes})
    oracle = getattr(transformers, f"{name}ForCausalLM")(config).eval()
    with torch.no_grad():
        for parameter in oracle.parameters():  # norms and biases start at one and zero: make every weight matter
            parameter.add_(torch.randn_like(parameter) * 0.2)
    oracle.save_pretrained(folder)
    ours = ModelConfig.from_hf(json.loads((folder / "config.json").read_text()), family)
    cpu = torch.device("cpu")
    weights = read_weights(folder, torch.float32, cpu)
    return Twins(ours, Decoder(ours, weights, packing_available(torch.float32, cpu)), oracle)


@pytest.fixture(scope="session", params=list(FAMILIES))
def twins(request, tmp_path_factory):
    return make_twins(request.param, tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="session")
def llama(tmp_path_factory):
    return make_twins("llama", tmp_path_factory.mktemp("llama-alone"))

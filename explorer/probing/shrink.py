"""Which configuration fields may be made small without touching the cache, and to what."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import lcm
from typing import Any


@dataclass(frozen=True)
class Widths:
    """How narrow a thin model is.

    Attributes:
        hidden: width of the residual stream, rounded up to suit the heads; 0 leaves the real one.
        mlp: width of MLPs and of each expert.
        vocabulary: number of tokens.
    """

    hidden: int = 64
    mlp: int = 32
    vocabulary: int = 64


# Widths of MLPs under the names that families give them.
MLP_WIDTHS = {
    "intermediate_size",
    "moe_intermediate_size",
    "shared_expert_intermediate_size",
    "moe_shared_expert_intermediate_size",
    "intermediate_size_mlp",
    "dense_intermediate_size",
    "prefix_dense_intermediate_size",
    "expert_ffn_hidden_size",
    "ffn_hidden_size",
    "ffn_dim",
    "decoder_ffn_dim",
    "encoder_ffn_dim",
    "d_ff",
    "n_inner",
    "shared_intermediate_size",
    "block_ff_dim",
}
_VOCABULARY = {"vocab_size", "vocab_size_per_layer_input"}
_SPECIAL_TOKENS = {"pad_token_id", "bos_token_id", "eos_token_id"}
# Experts, and the ranks of queries and outputs, which no cache keeps.
_AT_MOST = {
    "num_experts": 4,
    "num_local_experts": 4,
    "n_routed_experts": 4,
    "moe_num_experts": 4,
    "num_experts_per_tok": 2,
    "num_experts_per_token": 2,
    "moe_topk": 2,
    "moe_k": 2,
    "top_k_experts": 2,
    "n_group": 1,
    "topk_group": 1,
    "num_expert_group": 1,
    "hidden_size_per_layer_input": 8,
    "q_lora_rank": 16,
    "o_lora_rank": 16,
}
WINDOWS = {"sliding_window", "attention_chunk_size", "attention_window_size"}

# Families where a width named above, or the hidden size, is the size of a state.
_STATE_MARKS = (
    "mamba",
    "ssm",
    "expand",
    "conv_L_cache",
    "conv_l_cache",
    "lru_width",
    "attention_hidden_size",
    "qk_dim_factor",
)
_MLP_IS_STATE = {"mamba", "falcon_mamba", "rwkv", "xlstm"}


def shrunk(fields: Mapping[str, Any], known: Mapping[str, Any], widths: Widths, num_layers: int) -> dict[str, Any]:
    """`fields` with vocabulary, MLPs, experts and, where it decides nothing else, the hidden size made small.

    Args:
        fields: the configuration as written.
        known: the same with every default filled in.
        widths: how small.
        num_layers: how many layers are left, for widths that are listed layer by layer.
    """
    small = dict(fields)
    for name, value in known.items():
        new = _smaller(name, fields.get(name, value), known, widths)
        if isinstance(new, list):
            new = new[:1] * num_layers
        if new is not None:
            small[name] = new
    hidden = _hidden(known, widths)
    if hidden is not None:
        small |= {"hidden_size": hidden, "head_dim": known["head_dim"]}
    return small


def _smaller(name: str, value: Any, known: Mapping[str, Any], widths: Widths) -> Any:
    if name in MLP_WIDTHS and value is not None and known.get("model_type") not in _MLP_IS_STATE:
        return [widths.mlp] * len(value) if isinstance(value, list) else widths.mlp
    if name in _SPECIAL_TOKENS:
        return 0
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    if name in _VOCABULARY:
        return widths.vocabulary
    most = _AT_MOST.get(name)
    return None if most is None else min(value, most)


def _hidden(known: Mapping[str, Any], widths: Widths) -> int | None:
    """The smallest hidden size that suits the heads; None where it must stay."""
    if not widths.hidden or not isinstance(known.get("head_dim"), int) or any(_marks_state(name) for name in known):
        return None
    step = lcm(8, known.get("num_attention_heads", 1))
    return min(known["hidden_size"], -(-widths.hidden // step) * step)


def _marks_state(name: str) -> bool:
    return any(mark in name for mark in _STATE_MARKS)


def windows_scaled(
    fields: Mapping[str, Any], known: Mapping[str, Any], longest: int | None
) -> tuple[dict[str, Any], dict[str, tuple[int, int]]]:
    """`fields` with no window longer than `longest`, and what was shortened: name -> (real, thin)."""
    scaled = {}
    for name in WINDOWS:
        value = fields.get(name, known.get(name))
        if longest is not None and isinstance(value, int) and value > longest:
            scaled[name] = (value, longest)
    return dict(fields) | {name: thin for name, (_, thin) in scaled.items()}, scaled

"""Qwen3-Next, Qwen3.5: three layers with a Gated DeltaNet state, then one with full attention."""

from explorer.specs.families._states import FULL, LINEAR, every_nth_full, gated_delta_net
from explorer.specs.fields import Fields
from explorer.specs.layers import FullAttention
from explorer.specs.model import ModelSpec
from explorer.specs.readers import reader


@reader("qwen3_next")
def read_qwen3_next(fields: Fields) -> ModelSpec:
    """16 query and 2 KV heads of 256 unless the file says otherwise."""
    return _read(fields, 2)


@reader("qwen3_5", "qwen3_5_text")
def read_qwen3_5(fields: Fields) -> ModelSpec:
    """The dense models: 4 KV heads unless the file says otherwise."""
    return _read(fields, 4)


@reader("qwen3_5_moe", "qwen3_5_moe_text")
def read_qwen3_5_moe(fields: Fields) -> ModelSpec:
    """The mixtures of experts: 2 KV heads unless the file says otherwise."""
    return _read(fields, 2)


def _read(fields: Fields, default_kv_heads: int) -> ModelSpec:
    num_layers, num_heads = fields.layers(), fields.heads(16)
    head_dim = fields.head_dim(num_heads, 256)
    full = FullAttention(fields.kv_heads(num_heads, default_kv_heads), head_dim, head_dim)
    types = fields.names("layer_types", num_layers, (FULL, LINEAR))
    if types is None:
        types = every_nth_full(num_layers, fields.count("full_attention_interval", "pattern", 4))
    state = gated_delta_net(fields)
    drafts = fields.optional("mtp_num_hidden_layers", "mtp_layers") or 0
    return fields.spec(
        [full if kind == FULL else state for kind in types], mtp_layers=[full] * drafts, num_heads=num_heads
    )

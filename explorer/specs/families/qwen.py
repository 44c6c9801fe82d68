"""Qwen 2, 2.5 and 3: full attention, unless a sliding window is switched on for the upper layers."""

from explorer.specs.families._windows import attention
from explorer.specs.fields import Fields
from explorer.specs.layers import LayerKind
from explorer.specs.model import ModelSpec
from explorer.specs.readers import reader


@reader("qwen2", "qwen2_moe", "qwen2_vl_text", "qwen2_5_vl_text", "qwen2_vl", "qwen2_5_vl")
def read_qwen2(fields: Fields) -> ModelSpec:
    """`head_dim` is `hidden_size / heads` where absent."""
    return _read(fields, None)


@reader("qwen3", "qwen3_moe", "qwen3_vl_text", "qwen3_vl_moe_text", "qwen3_vl", "qwen3_vl_moe")
def read_qwen3(fields: Fields) -> ModelSpec:
    """`head_dim` is 128 where absent, whatever `hidden_size / heads` comes to."""
    return _read(fields, 128 if "moe" not in fields.model_type else None)


def _read(fields: Fields, default_head_dim: int | None) -> ModelSpec:
    num_layers, num_heads = fields.layers(), fields.heads()
    num_kv_heads, head_dim = fields.kv_heads(num_heads, required=True), fields.head_dim(num_heads, default_head_dim)
    layers: list[LayerKind] = [attention(num_kv_heads, head_dim, window) for window in _windows(fields, num_layers)]
    return fields.spec(layers)


def _windows(fields: Fields, num_layers: int) -> list[int | None]:
    """Each layer's window, None for none: off unless `use_sliding_window`, then from `max_window_layers` upwards."""
    if not fields.flag("use_sliding_window"):
        return [None] * num_layers
    if "sliding_window" in fields and fields["sliding_window"] is None:
        return [None] * num_layers
    size = fields.count("sliding_window", "window", default=4096)
    types = fields.names("layer_types", num_layers, ("full_attention", "sliding_attention"))
    if types is not None:
        return [size if kind == "sliding_attention" else None for kind in types]
    first = fields.count("max_window_layers", default=28)
    return [size if index >= first else None for index in range(num_layers)]

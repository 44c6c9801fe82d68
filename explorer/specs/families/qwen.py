"""Qwen 2, 2.5 and 3: full attention, unless a sliding window is switched on for the upper layers."""

from explorer.specs.families._windows import FULL, SLIDING, mixed
from explorer.specs.fields import Fields
from explorer.specs.model import ModelSpec
from explorer.specs.readers import reader


@reader("qwen2", "qwen2_moe", "qwen2_vl_text", "qwen2_5_vl_text", "qwen2_vl", "qwen2_5_vl")
def read_qwen2(fields: Fields) -> ModelSpec:
    """`head_dim` is `hidden_size / heads` where absent."""
    return _read(fields, None)


@reader("qwen3", "qwen3_vl_text", "qwen3_vl")
def read_qwen3(fields: Fields) -> ModelSpec:
    """`head_dim` is 128 where absent, whatever `hidden_size / heads` comes to."""
    return _read(fields, 128)


@reader("qwen3_moe", "qwen3_vl_moe_text", "qwen3_vl_moe")
def read_qwen3_moe(fields: Fields) -> ModelSpec:
    """All published files state `head_dim`; absent, it is `hidden_size / heads`."""
    return _read(fields, None)


def _read(fields: Fields, default_head_dim: int | None) -> ModelSpec:
    num_layers, num_heads = fields.layers(), fields.heads()
    num_kv_heads, head_dim = fields.kv_heads(num_heads, required=True), fields.head_dim(num_heads, default_head_dim)
    window = _window(fields)
    types = fields.names("layer_types", num_layers, (FULL, SLIDING))
    if types is None:
        first = 0
        if window is not None:  # the mixtures of experts have no such field: their window is every layer's
            first = 0 if "moe" in fields.model_type else fields.count("max_window_layers", default=28)
        types = [SLIDING if index >= first else FULL for index in range(num_layers)]
    return fields.spec(mixed(types, num_kv_heads, head_dim, window))


def _window(fields: Fields) -> int | None:
    """Off unless `use_sliding_window`; many files name a `sliding_window` that is not in use."""
    if not fields.flag("use_sliding_window") or ("sliding_window" in fields and fields["sliding_window"] is None):
        return None
    return fields.count("sliding_window", "window", 4096)

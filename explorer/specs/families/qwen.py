"""Qwen 2, 2.5 and 3: full attention, unless a sliding window is switched on for the upper layers."""

from explorer.specs.families._windows import FULL, SLIDING, mixed
from explorer.specs.fields import Fields
from explorer.specs.model import ModelSpec
from explorer.specs.readers import reader


@reader("qwen2", "qwen2_vl_text", "qwen2_5_vl_text", "qwen2_vl", "qwen2_5_vl")
def read_qwen2(fields: Fields) -> ModelSpec:
    """`head_dim` is `hidden_size / heads` where absent."""
    return _read(fields, None)


@reader("qwen2_moe")
def read_qwen2_moe(fields: Fields) -> ModelSpec:
    """Its window, if switched on, is that of every second layer below `max_window_layers`, beginning with the first."""
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
        types = [FULL] * num_layers if window is None else _window_types(fields, num_layers)
    return fields.spec(mixed(types, num_kv_heads, head_dim, window))


def _window_types(fields: Fields, num_layers: int) -> list[str]:
    """Which layers have the window: each family counts otherwise."""
    if fields.model_type.startswith("qwen3") and "moe" in fields.model_type:  # no such field: the window is everyone's
        return [SLIDING] * num_layers
    bound = fields.count("max_window_layers", default=80 if "vl" in fields.model_type else 28)
    if fields.model_type == "qwen2_moe":
        return [SLIDING if i % 2 == 0 and i < bound else FULL for i in range(num_layers)]
    return [SLIDING if i >= bound else FULL for i in range(num_layers)]


def _window(fields: Fields) -> int | None:
    """Off unless `use_sliding_window`; many files name a `sliding_window` that is not in use."""
    if not fields.flag("use_sliding_window") or ("sliding_window" in fields and fields["sliding_window"] is None):
        return None
    return fields.count("sliding_window", "window", 4096)

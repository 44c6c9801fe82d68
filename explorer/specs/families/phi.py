"""Phi 1 to 4 and SmolLM 3: full attention; a window where the file names one and it is in use."""

from explorer.specs.families._windows import FULL, SLIDING, attention, layer_types, mixed
from explorer.specs.fields import Fields
from explorer.specs.model import ModelSpec
from explorer.specs.readers import reader


@reader("phi")
def read_phi(fields: Fields) -> ModelSpec:
    """Phi 1, 1.5 and 2: one KV head for each query head."""
    num_layers, num_heads = fields.layers(), fields.heads()
    return fields.spec([attention(fields.kv_heads(num_heads), fields.head_dim(num_heads), None)] * num_layers)


@reader("phi3", "phi4_multimodal", "phimoe")
def read_phi3(fields: Fields) -> ModelSpec:
    """Phi 3, 3.5 and 4 (whose files say phi3): a window, if there is one, is every layer's."""
    num_layers, num_heads = fields.layers(), fields.heads()
    default = {"phimoe": 8, "phi4_multimodal": 8}.get(fields.model_type)
    window = fields.optional("sliding_window", "window")
    layer = attention(fields.kv_heads(num_heads, default), fields.head_dim(num_heads), window)
    return fields.spec([layer] * num_layers)


@reader("smollm3")
def read_smollm3(fields: Fields) -> ModelSpec:
    """Every fourth layer has no RoPE; only those would have a window, and only where it is switched on."""
    num_layers, num_heads = fields.layers(), fields.heads(16)
    window = fields.optional("sliding_window", "window") if fields.flag("use_sliding_window") else None
    rope = fields.each("no_rope_layers", num_layers)
    if rope is None:
        interval = fields.count("no_rope_layer_interval", "pattern", 4) if window else 4
        rope = [(i + 1) % interval != 0 for i in range(num_layers)]
    types = layer_types(fields, num_layers, [FULL if has_rope else SLIDING for has_rope in rope])
    layers = mixed(types, fields.kv_heads(num_heads, 4), fields.head_dim(num_heads), window)
    return fields.spec(layers, num_heads=num_heads)

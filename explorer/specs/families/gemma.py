"""Gemma 1 to 3: full attention, then windows in every second layer, then in five of six."""

from explorer.specs.families._windows import attention, every_nth_full, layer_types, mixed
from explorer.specs.fields import Fields
from explorer.specs.model import ModelSpec
from explorer.specs.readers import reader


@reader("gemma")
def read_gemma(fields: Fields) -> ModelSpec:
    """Every layer alike; `head_dim` is 256 whatever `hidden_size / heads` comes to."""
    num_layers, num_heads = fields.layers(), fields.heads(16)
    layer = attention(fields.kv_heads(num_heads, 16), fields.head_dim(num_heads, 256), None)
    return fields.spec([layer] * num_layers, num_heads=num_heads)


@reader("gemma2")
def read_gemma2(fields: Fields) -> ModelSpec:
    """The first of every two layers has a window."""
    return _read(fields, 2)


@reader("gemma3", "gemma3_text")
def read_gemma3(fields: Fields) -> ModelSpec:
    """Every sixth layer attends to everything; the files of the larger models leave out heads and dimensions."""
    return _read(fields, fields.count("sliding_window_pattern", "pattern", 6) if "layer_types" not in fields else 6)


def _read(fields: Fields, pattern: int) -> ModelSpec:
    num_layers, num_heads = fields.layers(), fields.heads(8)
    window = None
    if "sliding_window" not in fields or fields["sliding_window"] is not None:
        window = fields.count("sliding_window", "window", 4096)
        if fields.flag("use_bidirectional_attention"):
            window = window // 2 + 1
    types = layer_types(fields, num_layers, every_nth_full(num_layers, pattern))
    num_kv_heads, head_dim = fields.kv_heads(num_heads, 4), fields.head_dim(num_heads, 256)
    return fields.spec(mixed(types, num_kv_heads, head_dim, window), num_heads=num_heads)

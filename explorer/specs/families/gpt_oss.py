"""gpt-oss: a window of 128 tokens in every second layer, beginning with the first."""

from explorer.specs.families._windows import every_nth_full, layer_types, mixed
from explorer.specs.fields import Fields
from explorer.specs.model import ModelSpec
from explorer.specs.readers import reader


@reader("gpt_oss")
def read(fields: Fields) -> ModelSpec:
    """Heads of 64, whatever `hidden_size / heads` (45) comes to. Sinks are one learned number a head, not a cache."""
    num_layers, num_heads = fields.layers(), fields.heads(64)
    window = None
    if "sliding_window" not in fields or fields["sliding_window"] is not None:
        window = fields.count("sliding_window", "window", 128)
    types = layer_types(fields, num_layers, every_nth_full(num_layers, 2))
    layers = mixed(types, fields.kv_heads(num_heads, 8), fields.head_dim(num_heads, 64), window)
    return fields.spec(layers, num_heads=num_heads)

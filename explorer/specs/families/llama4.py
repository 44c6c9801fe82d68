"""Llama 4: three layers attend inside chunks, every fourth (which has no RoPE) to the whole past."""

from explorer.specs.fields import Fields
from explorer.specs.layers import ChunkedAttention, FullAttention, LayerKind
from explorer.specs.model import ModelSpec
from explorer.specs.readers import reader

_CHUNKED, _FULL = "chunked_attention", "full_attention"


@reader("llama4", "llama4_text")
def read(fields: Fields) -> ModelSpec:
    """`layer_types` decides; without it `no_rope_layers`, where 1 means RoPE and a chunk; without that the interval."""
    num_layers, num_heads = fields.layers(), fields.heads(40)
    num_kv_heads, head_dim = fields.kv_heads(num_heads, 8), fields.head_dim(num_heads, 128)
    chunk = None
    if "attention_chunk_size" not in fields or fields["attention_chunk_size"] is not None:
        chunk = fields.count("attention_chunk_size", "window", 8192)
    types = fields.names("layer_types", num_layers, (_CHUNKED, _FULL)) or _by_rope(fields, num_layers)
    full = FullAttention(num_kv_heads, head_dim, head_dim)
    local: LayerKind = full if chunk is None else ChunkedAttention(num_kv_heads, head_dim, head_dim, chunk)
    return fields.spec([local if kind == _CHUNKED else full for kind in types], num_heads=num_heads)


def _by_rope(fields: Fields, num_layers: int) -> list[str]:
    # The published files write an empty list where the default is meant.
    listed = fields.each("no_rope_layers", num_layers) if fields.get("no_rope_layers") else None
    if listed is None:
        interval = fields.count("no_rope_layer_interval", "pattern", 4)
        return [_FULL if (i + 1) % interval == 0 else _CHUNKED for i in range(num_layers)]
    return [_CHUNKED if has_rope else _FULL for has_rope in listed]

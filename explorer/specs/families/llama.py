"""Llama and the many models built like it: every layer alike, attending to the whole past."""

from explorer.specs.fields import Fields, unsupported
from explorer.specs.layers import FullAttention
from explorer.specs.model import ModelSpec
from explorer.specs.readers import reader

# Fields that would change what a layer keeps, in a model that otherwise looks uniform.
_UNREAD = (
    "kv_lora_rank",
    "num_kv_shared_layers",
    "attention_chunk_size",
    "sliding_window_pattern",
    "block_configs",
    "sliding_window",
)


@reader("llama", "code_llama", "smollm")
def read(fields: Fields) -> ModelSpec:
    """Llama 1 to 3, SmolLM 2, Yi, TinyLlama; the first states no KV heads and has one for each query head."""
    num_layers, num_heads = fields.layers(), fields.heads()
    for field in _UNREAD:
        if fields.get(field) not in (None, 0, False):
            raise unsupported(f"layers with {field}", f"带有 {field} 的层")
    fields.names("layer_types", num_layers, ("full_attention",))
    head_dim = fields.head_dim(num_heads)
    return fields.spec([FullAttention(fields.kv_heads(num_heads), head_dim, head_dim)] * num_layers)

"""GLM-4 to GLM-4.7: grouped-query attention in every layer, with draft layers from 4.5 on."""

from explorer.specs.families._windows import attention
from explorer.specs.families.deepseek import drafts
from explorer.specs.fields import Fields
from explorer.specs.model import ModelSpec
from explorer.specs.readers import reader


@reader("glm", "glm4", "glm4v", "glm4v_text")
def read_glm4(fields: Fields) -> ModelSpec:
    """2 KV heads of 128 unless the file says otherwise."""
    return _read(fields, 2, 128)


@reader("glm4_moe", "glm4v_moe", "glm4v_moe_text", "glm46v")
def read_glm4_moe(fields: Fields) -> ModelSpec:
    """GLM-4.5, 4.6 and 4.7: 8 KV heads; the files state `head_dim` = 128, which `hidden_size / heads` is not."""
    return _read(fields, 8, None)


def _read(fields: Fields, default_kv_heads: int, default_head_dim: int | None) -> ModelSpec:
    num_layers, num_heads = fields.layers(), fields.heads()
    layer = attention(fields.kv_heads(num_heads, default_kv_heads), fields.head_dim(num_heads, default_head_dim), None)
    return fields.spec([layer] * num_layers, mtp_layers=[layer] * drafts(fields))

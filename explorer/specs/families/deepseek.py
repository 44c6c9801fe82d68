"""DeepSeek V2, V3 and V3.2, and those built like them: one latent for all heads, from V3.2 on with an indexer."""

from explorer.specs.fields import Fields
from explorer.specs.latent import IndexedLatent, LatentAttention
from explorer.specs.model import ModelSpec
from explorer.specs.readers import reader


@reader("deepseek_v2", "deepseek_v3", "kimi_k2", "kimi_k25", "glm4_moe_lite")
def read_latent(fields: Fields) -> ModelSpec:
    """Every layer keeps `kv_lora_rank + qk_rope_head_dim` elements a token, Kimi K2 and K2.5 and GLM-4.7-Flash too."""
    num_layers = fields.layers()
    layer = latent(fields)
    return fields.spec([layer] * num_layers, mtp_layers=[layer] * drafts(fields))


@reader("deepseek_v32")
def read_indexed(fields: Fields) -> ModelSpec:
    """Every layer has an indexer key beside its latent."""
    num_layers = fields.layers()
    layer = indexed(fields)
    return fields.spec([layer] * num_layers, mtp_layers=[layer] * drafts(fields))


@reader("glm_moe_dsa")
def read_glm_moe_dsa(fields: Fields) -> ModelSpec:
    """GLM-5: as V3.2; layers whose indexer is "shared" use the choice of the layer before and keep no indexer keys."""
    num_layers = fields.layers()
    own = indexed(fields)
    borrower = IndexedLatent(own.latent_dim, own.position_dim, 0, own.index_topk)
    layers = [own if kind == "full" else borrower for kind in _indexers(fields, num_layers)]
    return fields.spec(layers, mtp_layers=[own] * drafts(fields))


def latent(fields: Fields) -> LatentAttention:
    """The latent as the file states it; the family's dimensions are 512 and 64."""
    return LatentAttention(
        fields.count("kv_lora_rank", "latent_dim", 512), fields.count("qk_rope_head_dim", "latent_dim", 64)
    )


def indexed(fields: Fields) -> IndexedLatent:
    """The latent with its indexer; the family's dimensions are 128 and 2,048 tokens chosen."""
    base = latent(fields)
    return IndexedLatent(
        base.latent_dim,
        base.position_dim,
        fields.count("index_head_dim", "index_dim", 128),
        fields.count("index_topk", "topk", 2048),
    )


def drafts(fields: Fields) -> int:
    """Multi-token-prediction layers of the checkpoint."""
    return (
        fields.optional("num_nextn_predict_layers", "mtp_layers")
        or fields.optional("num_mtp_layers", "mtp_layers")
        or 0
    )


def _indexers(fields: Fields, num_layers: int) -> list[str]:
    listed = fields.names("indexer_types", num_layers, ("full", "shared"))
    if listed is not None:
        return listed
    pattern = fields.get("index_topk_pattern")
    if isinstance(pattern, str) and len(pattern) >= num_layers and set(pattern) <= {"F", "S"}:
        return ["full" if mark == "F" else "shared" for mark in pattern[:num_layers]]
    every = fields.optional("index_topk_freq", "pattern") or 1
    offset = fields.optional("index_skip_topk_offset", "pattern") or 2
    return ["full" if max(i - offset + 1, 0) % every == 0 else "shared" for i in range(num_layers)]

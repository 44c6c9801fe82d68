"""Grouped and multi-query heads whose number the config does not simply call `num_key_value_heads`.

Checked against the configuration classes and the caches of transformers 5.24. Baichuan and ChatGLM bring their own
code, which transformers does not hold: for these, published implementations that read the same fields were read.
"""

from dataclasses import replace

from explorer.specs.families._windows import attention
from explorer.specs.fields import Fields, divides, missing
from explorer.specs.layers import FullAttention
from explorer.specs.model import ModelSpec
from explorer.specs.readers import reader
from explorer.text import Text


@reader("falcon", "RefinedWeb", "RefinedWebModel")
def read_falcon(fields: Fields) -> ModelSpec:
    """Falcon: `new_decoder_architecture` (40B, 180B) has `num_kv_heads`; before it `multi_query` means one head."""
    num_heads = fields.count("num_attention_heads|n_head", "num_heads")
    grouped = fields.flag("new_decoder_architecture")
    if not grouped and fields.flag("multi_query", True):
        num_kv_heads = 1
    elif grouped or fields.get("num_kv_heads") is not None:
        num_kv_heads = divides(
            "num_kv_heads", fields.count("num_kv_heads|n_head_kv", "num_kv_heads", num_heads), num_heads
        )
    else:
        num_kv_heads = num_heads
    if grouped and _broadcast(fields, num_kv_heads, num_heads):
        num_kv_heads = num_heads
    head_dim = fields.head_dim(num_heads)
    return fields.spec([FullAttention(num_kv_heads, head_dim, head_dim)] * fields.layers(), num_heads=num_heads)


def _broadcast(fields: Fields, num_kv_heads: int, num_heads: int) -> bool:
    """Whether to count what transformers stores: Keys and Values repeated for every query head."""
    return fields.switch(
        "kv-repeated-for-query-heads",
        off=Text(
            f"{num_kv_heads} KV heads are stored, as serving engines do",
            f"只存 {num_kv_heads} 个 KV 头，服务引擎即如此",
        ),
        on=Text(
            f"Keys and Values are stored once for each of the {num_heads} query heads, as transformers does",
            f"为 {num_heads} 个查询头各存一份 Key 与 Value，transformers 即如此",
        ),
    )


@reader("gpt_bigcode")
def read_gpt_bigcode(fields: Fields) -> ModelSpec:
    """SantaCoder, StarCoder: one head for all queries unless `multi_query` is false."""
    num_heads = fields.heads()
    num_kv_heads = 1 if fields.flag("multi_query", True) else num_heads
    head_dim = fields.head_dim(num_heads)
    return fields.spec([FullAttention(num_kv_heads, head_dim, head_dim)] * fields.layers())


@reader("starcoder2", "ministral3")
def read_one_window(fields: Fields) -> ModelSpec:
    """StarCoder 2, Ministral 3: one window for all layers, or none."""
    num_layers, num_heads = fields.layers(), fields.heads()
    num_kv_heads, head_dim = fields.kv_heads(num_heads, required=True), fields.head_dim(num_heads)
    layer = attention(num_kv_heads, head_dim, fields.optional("sliding_window", "window"))
    return fields.spec([layer] * num_layers)


@reader("dbrx")
def read_dbrx(fields: Fields) -> ModelSpec:
    """DBRX: KV heads are `attn_config.kv_n_heads`."""
    num_heads = fields.heads()
    nested = Fields(fields.table("attn_config"), fields.model_type)
    if nested.get("kv_n_heads") is None:
        raise missing("attn_config.kv_n_heads")
    num_kv_heads = divides("kv_n_heads", nested.count("kv_n_heads", "num_kv_heads"), num_heads)
    head_dim = fields.head_dim(num_heads)
    spec = fields.spec([FullAttention(num_kv_heads, head_dim, head_dim)] * fields.layers())
    return replace(spec, max_positions=fields.optional("max_seq_len", "max_positions"))


@reader("jetmoe")
def read_jetmoe(fields: Fields) -> ModelSpec:
    """JetMoE: query heads are KV heads times the experts that a token chooses; a head has `kv_channels`."""
    num_kv_heads = fields.count("num_key_value_heads", "num_kv_heads")
    head_dim = fields.count("kv_channels|head_dim", "head_dim", 128)
    num_heads = num_kv_heads * fields.count("num_experts_per_tok", "pattern", 2)
    return fields.spec([FullAttention(num_kv_heads, head_dim, head_dim)] * fields.layers(), num_heads=num_heads)


@reader("chatglm")
def read_chatglm(fields: Fields) -> ModelSpec:
    """ChatGLM 2, 3 and GLM-4 9B in their first format: `multi_query_group_num` heads of `kv_channels`."""
    num_heads = fields.heads()
    num_kv_heads = num_heads
    if fields.flag("multi_query_attention"):
        groups = fields.count("multi_query_group_num", "num_kv_heads")
        num_kv_heads = divides("multi_query_group_num", groups, num_heads)
    head_dim = fields.count("kv_channels|head_dim", "head_dim")
    spec = fields.spec([FullAttention(num_kv_heads, head_dim, head_dim)] * fields.layers())
    return replace(spec, max_positions=fields.optional("seq_length", "max_positions"))


@reader("baichuan")
def read_baichuan(fields: Fields) -> ModelSpec:
    """Baichuan 1 and 2: one KV head for each query head; the field for fewer does not exist."""
    num_heads = fields.heads()
    head_dim = fields.head_dim(num_heads)
    spec = fields.spec([FullAttention(num_heads, head_dim, head_dim)] * fields.layers())
    if spec.max_positions is None:
        return replace(spec, max_positions=fields.optional("model_max_length", "max_positions"))
    return spec

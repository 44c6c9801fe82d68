"""Families whose layers keep what Llama's keep: grouped heads over the whole past, or a window in some layers.

They differ from Llama in what a cache does not see (norms, biases, positions, experts), and among themselves in what an
absent field means. Checked against the configuration classes and the caches of transformers 5.24.
"""

from explorer.errors import InputError
from explorer.specs.families._windows import attention, every_nth_full, layer_types
from explorer.specs.fields import Fields
from explorer.specs.layers import FullAttention
from explorer.specs.limits import short
from explorer.specs.model import ModelSpec
from explorer.specs.readers import reader

# The number of query heads stands in for KV heads where the file has none; a head is hidden_size / heads unless given.
_BY_HEADS = (
    "olmo",
    "olmo2",
    "olmoe",
    "granite",
    "granitemoe",
    "granitemoeshared",
    "cohere",
    "apertus",
    "arcee",
    "exaone",
)
# An absent KV head count would be the class's own default, which is no model's in particular: it must be given.
_MUST_BE_GIVEN = ("nemotron", "stablelm", "ernie4_5", "ernie4_5_moe")
# head_dim where the file has none, as the configuration class has it.
_HEAD_DIM = {"seed_oss": 128, "helium": 128, "internlm3": 128, "ernie4_5": 128}


@reader(*_BY_HEADS)
def read_by_heads(fields: Fields) -> ModelSpec:
    """OLMo 1 and 2, Granite 3, Command R, Apertus, AFM, EXAONE 3."""
    return _uniform(fields, required=False)


@reader(*_MUST_BE_GIVEN)
def read_given(fields: Fields) -> ModelSpec:
    """Nemotron and Minitron, StableLM, ERNIE 4.5."""
    return _uniform(fields, required=True)


@reader("seed_oss", "helium", "internlm3")
def read_with_head_dim(fields: Fields) -> ModelSpec:
    """Seed-OSS, Helium, InternLM 3: a head has 128 where the file does not say."""
    return _uniform(fields, required=True)


def _uniform(fields: Fields, *, required: bool) -> ModelSpec:
    num_heads = fields.heads()
    num_kv_heads = fields.kv_heads(num_heads, required=required)
    head_dim = fields.head_dim(num_heads, _HEAD_DIM.get(fields.model_type))
    return fields.spec([FullAttention(num_kv_heads, head_dim, head_dim)] * fields.layers())


@reader("cohere2", "olmo3")
def read_every_fourth_full(fields: Fields) -> ModelSpec:
    """Command R7B and A, OLMo 3: three layers with a window, then one without."""
    num_layers = fields.layers()
    pattern = 4
    if fields.model_type == "cohere2" and fields.get("layer_types") is None:
        pattern = fields.count("sliding_window_pattern", "pattern", 4)
    types = layer_types(fields, num_layers, every_nth_full(num_layers, pattern))
    return _mixed(fields, types, fields.count("sliding_window", "window", 4096))


@reader("exaone4", "exaone4_5_text")
def read_exaone4(fields: Fields) -> ModelSpec:
    """EXAONE 4: no window at all where `sliding_window` is null (1.2B); else `layer_types` or every nth layer full.

    Raises:
        InputError: the layers are given only as a pattern of letters.
    """
    num_layers = fields.layers()
    if "sliding_window" in fields and fields["sliding_window"] is None:
        return _mixed(fields, ["full_attention"] * num_layers, 1)
    pattern = fields.get("sliding_window_pattern")
    if isinstance(pattern, str) and fields.get("layer_types") is None:
        raise InputError(
            f"sliding_window_pattern={short(pattern)} without layer_types: expected layer_types, one name a layer",
            f"sliding_window_pattern={short(pattern)} 而没有 layer_types：请给出 layer_types，每层一个名称",
        )
    full = every_nth_full(num_layers, 4 if isinstance(pattern, str) else _pattern(fields))
    return _mixed(fields, layer_types(fields, num_layers, full), fields.count("sliding_window", "window", 4096))


def _pattern(fields: Fields) -> int:
    return fields.count("sliding_window_pattern", "pattern", 4)


def _mixed(fields: Fields, types: list[str], window: int) -> ModelSpec:
    num_heads = fields.heads()
    num_kv_heads, head_dim = fields.kv_heads(num_heads), fields.head_dim(num_heads)
    return fields.spec(
        [attention(num_kv_heads, head_dim, window if kind == "sliding_attention" else None) for kind in types]
    )

"""Gemma 3n and Gemma 4: windows in most layers, and upper layers that use a lower layer's Keys and Values.

The last `num_kv_shared_layers` layers have no Key and Value projections: each reads the cache of the last layer below
them that has its own and is of the same type, sliding or full.
"""

from collections.abc import Mapping
from typing import Any

from explorer.errors import InputError
from explorer.specs.families._windows import FULL, SLIDING, every_nth_full, layer_types
from explorer.specs.fields import Fields
from explorer.specs.layers import FullAttention, LayerKind, SharedFromOwner, SlidingWindow
from explorer.specs.limits import whole
from explorer.specs.model import ModelSpec
from explorer.specs.overrides import layer_overrides
from explorer.specs.readers import reader
from explorer.text import Text

_TWICE = Text(
    "K and V are both stored: attention_k_eq_v shares their projection, but the Key is rotated and normalised after it",
    "K 与 V 各存一份：attention_k_eq_v 共用的是投影权重，Key 之后还要旋转并归一化",
)
_ONCE = Text(
    "K and V are one stored tensor in every layer: half the bytes; no runtime known to us stores them so",
    "每层的 K 与 V 只存一份张量：字节数减半；据我们所知尚无运行时这样存储",
)


@reader("gemma3n", "gemma3n_text")
def read_gemma3n(fields: Fields) -> ModelSpec:
    """One size of head; every fifth layer attends to everything; 15 share unless the file says otherwise."""
    num_layers, num_heads = fields.layers(), fields.heads(8)
    num_kv_heads, head_dim = fields.kv_heads(num_heads, 2), fields.head_dim(num_heads, 256)
    window = fields.count("sliding_window", "window", 512)
    types = layer_types(fields, num_layers, every_nth_full(num_layers, 5))
    own: dict[str, LayerKind] = {
        FULL: FullAttention(num_kv_heads, head_dim, head_dim),
        SLIDING: SlidingWindow(num_kv_heads, head_dim, head_dim, window),
    }
    layers: list[LayerKind] = [own[kind] for kind in types]
    return fields.spec(
        _share(layers, types, fields.count("num_kv_shared_layers", "shared_layers", 15)), num_heads=num_heads
    )


@reader("gemma4", "gemma4_text", "gemma4_unified", "gemma4_unified_text", overrides=True)
def read_gemma4(fields: Fields) -> ModelSpec:
    """Full layers have heads of another size and, with `attention_k_eq_v`, another number of KV heads."""
    num_layers, num_heads = fields.layers(), fields.heads(8)
    window = fields.count("sliding_window", "window", 512)
    if fields.get("use_bidirectional_attention") == "all":
        window = window // 2 + 1
    types = layer_types(fields, num_layers, every_nth_full(num_layers, 6))
    types[-1] = FULL  # the configuration class makes it so
    once = fields.flag("attention_k_eq_v") and fields.switch("k-eq-v-stored-once", _TWICE, _ONCE)
    sizes = _sizes(fields, num_heads, types)
    layers: list[LayerKind] = []
    for kind, (num_kv_heads, head_dim) in zip(types, sizes, strict=True):
        value_dim = 0 if once else head_dim
        full = kind == FULL
        layers.append(
            FullAttention(num_kv_heads, head_dim, value_dim)
            if full
            else SlidingWindow(num_kv_heads, head_dim, value_dim, window)
        )
    shared = (
        fields.count("num_kv_shared_layers", "shared_layers") if fields.get("num_kv_shared_layers") is not None else 0
    )
    return fields.spec(_share(layers, types, shared), num_heads=num_heads)


def _sizes(fields: Fields, num_heads: int, types: list[str]) -> list[tuple[int, int]]:
    """KV heads and head dimension of each layer."""
    num_kv_heads, head_dim = fields.kv_heads(num_heads, 4), fields.head_dim(num_heads, 256)
    own = layer_overrides(fields, len(types))
    if own:
        return [_override(own.get(index, {}), num_kv_heads, head_dim) for index in range(len(types))]
    global_dim = fields.count("global_head_dim", "head_dim", 512) if FULL in types else head_dim
    global_heads = num_kv_heads
    if fields.flag("attention_k_eq_v") and fields.get("num_global_key_value_heads") is not None:
        global_heads = fields.count("num_global_key_value_heads", "num_kv_heads")
    return [(global_heads, global_dim) if kind == FULL else (num_kv_heads, head_dim) for kind in types]


def _override(own: Mapping[str, Any], num_kv_heads: int, head_dim: int) -> tuple[int, int]:
    """One layer's entry of `per_layer_config`, in which transformers writes down what differs from the rest."""
    return (
        whole("num_kv_heads", own.get("num_key_value_heads", num_kv_heads), shown_as="num_key_value_heads"),
        whole("head_dim", own.get("head_dim", head_dim)),
    )


def _share(layers: list[LayerKind], types: list[str], num_shared: int) -> list[LayerKind]:
    """The layers, with the last `num_shared` of them reading their owners' caches.

    Raises:
        InputError: a shared layer has no owner of its type.
    """
    first = len(layers) - num_shared
    owners = {kind: index for index, kind in enumerate(types[: max(first, 0)])}
    for index in range(max(first, 0), len(layers)):
        owner = owners.get(types[index])
        if owner is None:
            raise InputError(
                f"num_kv_shared_layers={num_shared}: no layer of type {types[index]} is left to own a cache",
                f"num_kv_shared_layers={num_shared}：没有类型为 {types[index]} 的层持有缓存",
            )
        layers[index] = SharedFromOwner(owner, layers[owner])
    return layers

"""Kimi Linear, K3 and K3.1: three layers of Kimi Delta Attention, then one that keeps a latent for every token."""

from collections.abc import Mapping
from typing import Any

from explorer.errors import InputError
from explorer.specs.families._states import FULL, LINEAR, state_dtype
from explorer.specs.families.deepseek import drafts, indexed, latent
from explorer.specs.fields import Fields, missing
from explorer.specs.layers import LayerKind
from explorer.specs.limits import short, whole
from explorer.specs.model import ModelSpec
from explorer.specs.readers import reader
from explorer.specs.states import delta_net


@reader("kimi_linear", "kimi_k3", "kimi_k3_text", "kimi_k31", "kimi_k31_text")
def read(fields: Fields) -> ModelSpec:
    """`linear_attn_config` lists both kinds of layer, counted from 1; K3.1 has an indexer in the full ones."""
    num_layers = fields.layers()
    given = fields.table("linear_attn_config")
    full: LayerKind = latent(fields) if fields.get("index_head_dim") is None else indexed(fields)
    heads = _size(fields, given, "num_heads", "linear_num_heads", "state_heads")
    dim = _size(fields, given, "head_dim", "linear_head_dim", "state_dim")
    kernel = _size(fields, given, "short_conv_kernel_size", "linear_conv_kernel_dim", "kernel")
    state = delta_net("Kimi Delta Attention", (heads, dim), (heads, dim), kernel, dtype=state_dtype(fields))
    types = fields.names("layer_types", num_layers, (FULL, LINEAR)) or _listed(given, num_layers)
    return fields.spec([full if kind == FULL else state for kind in types], mtp_layers=[full] * drafts(fields))


def _size(fields: Fields, given: Mapping[str, Any], inner: str, outer: str, limit: str) -> int:
    """A size from the nested object, or from transformers' flat field."""
    if given.get(inner) is not None:
        return whole(limit, given[inner], shown_as=f"linear_attn_config.{inner}")
    return fields.count(outer, limit)


def _listed(given: Mapping[str, Any], num_layers: int) -> list[str]:
    """The kind of each layer from the two lists, which must name every layer once."""
    found: dict[int, str] = {}
    for name, kind in (("full_attn_layers", FULL), ("kda_layers", LINEAR)):
        listed = given.get(name)
        if listed is None:
            raise missing(f"linear_attn_config.{name}")
        if not isinstance(listed, list) or len(listed) > num_layers:
            raise _unfit(name, listed, num_layers)
        for index in listed:
            if not isinstance(index, int) or not 1 <= index <= num_layers or index in found:
                raise _unfit(name, index, num_layers)
            found[index] = kind
    if len(found) != num_layers:
        raise _unfit("linear_attn_config", found, num_layers)
    return [found[index + 1] for index in range(num_layers)]


def _unfit(name: str, value: Any, num_layers: int) -> InputError:
    return InputError(
        f"{name} holds {short(value)}: expected each of the layers 1 to {num_layers} once, in one of the two lists",
        f"{name} 中有 {short(value)}：第 1 到 {num_layers} 层应在两个列表中各出现且仅出现一次",
    )

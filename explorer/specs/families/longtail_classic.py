"""Models from before grouped heads: one KV head for each query head in every layer, under many field names.

What differs is only how the config spells things (`n_layer`, `attention_heads`, `max_seq_len`), which is why they share
one file. Checked against the configuration classes and the caches of transformers 5.24.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from explorer.errors import InputError
from explorer.specs.families._windows import attention
from explorer.specs.fields import Fields
from explorer.specs.layers import FullAttention
from explorer.specs.limits import short, whole
from explorer.specs.model import ModelSpec
from explorer.specs.readers import reader


@reader("gpt2", "gptj", "codegen", "gpt_neox", "opt", "biogpt", "persimmon")
def read_plain(fields: Fields) -> ModelSpec:
    """GPT-2, GPT-J, CodeGen, GPT-NeoX and Pythia, OPT, BioGPT, Persimmon: `hidden_size / heads` for every head."""
    num_heads = fields.heads()
    return _all_heads(fields, num_heads, _width(fields))


@reader("bloom")
def read_bloom(fields: Fields) -> ModelSpec:
    """BLOOM: the width is `n_embed` in published files, `hidden_size` in newer ones; positions are not limited."""
    num_heads = fields.heads()
    width = fields.count("hidden_size|n_embed", "hidden_size")
    return _all_heads(_with(fields, hidden_size=width), num_heads, width)


@reader("mpt")
def read_mpt(fields: Fields) -> ModelSpec:
    """MPT: `d_model`, `n_heads`, `n_layers`, `max_seq_len`."""
    num_heads = fields.heads()
    spec = _all_heads(fields, num_heads, _width(fields))
    return replace(spec, max_positions=fields.optional("max_seq_len", "max_positions"))


@reader("xglm")
def read_xglm(fields: Fields) -> ModelSpec:
    """XGLM: `attention_heads`, `d_model`."""
    num_heads = fields.count("attention_heads|num_attention_heads", "num_heads")
    return _all_heads(fields, num_heads, _width(fields))


@reader("gpt_neo")
def read_gpt_neo(fields: Fields) -> ModelSpec:
    """GPT-Neo: global and local layers in turn; a local one attends to the last `window_size` tokens.

    Raises:
        InputError: `attention_types` is not made of lists of names with a number of repeats.
    """
    num_layers, num_heads = fields.layers(), fields.heads()
    head_dim = _share(_width(fields), num_heads)
    window = fields.count("window_size", "window", default=256)
    fields.assume(
        f"local layers are counted with their window of {window}; transformers keeps all their tokens",
        f"局部层按 {window} 的窗口计；transformers 的实现会保留其全部 token",
    )
    kinds = _attention_types(fields, num_layers)
    return fields.spec([attention(num_heads, head_dim, window if kind == "local" else None) for kind in kinds])


def _all_heads(fields: Fields, num_heads: int, width: int) -> ModelSpec:
    """Every layer alike, with as many KV heads as query heads."""
    head_dim = _share(width, num_heads)
    return fields.spec([FullAttention(num_heads, head_dim, head_dim)] * fields.layers(), num_heads=num_heads)


def _width(fields: Fields) -> int:
    return fields.count("hidden_size|n_embd|d_model", "hidden_size")


def _share(width: int, num_heads: int) -> int:
    """`width / num_heads`."""
    if width % num_heads:
        raise InputError(
            f"hidden_size={width} is not a multiple of num_attention_heads={num_heads}",
            f"hidden_size={width} 不是 num_attention_heads={num_heads} 的整数倍",
        )
    return whole("head_dim", width // num_heads, shown_as="hidden_size / num_attention_heads")


def _with(fields: Fields, **values: Any) -> Fields:
    """The same fields with some under the name that everything else asks for; assumptions are kept."""
    found = Fields({**fields, **values}, fields.model_type)
    found.assumptions, found.offered = fields.assumptions, fields.offered
    return found


def _attention_types(fields: Fields, num_layers: int) -> list[str]:
    """`[[["global", "local"], 12]]` written out: 24 words."""
    given = fields.get("attention_layers") or fields.get("attention_types")
    if given is None:
        given = [[["global", "local"], -(-num_layers // 2)]]
        fields.assume(
            "attention_types is not given: gpt_neo's own default, global and local in turn",
            "未给出 attention_types：取 gpt_neo 的默认值，全局与局部交替",
        )
    found: list[str] = []
    for entry in given if isinstance(given, list | tuple) else [given]:
        found += _expanded(entry)
        if len(found) > num_layers:
            break
    if len(found) != num_layers or set(found) - {"global", "local"}:
        raise InputError(
            f"attention_types={short(given)}: expected num_layers = {num_layers} words, global or local",
            f"attention_types={short(given)}：应给出 num_layers = {num_layers} 个词，每个为 global 或 local",
        )
    return found


def _expanded(entry: Any) -> list[str]:
    if isinstance(entry, str):
        return [entry]
    is_pair = isinstance(entry, list | tuple) and len(entry) == 2 and isinstance(entry[0], list | tuple)
    if not is_pair or isinstance(entry, Mapping) or not all(isinstance(word, str) for word in entry[0]):
        raise InputError(
            f"attention_types holds {short(entry)}: expected a list of names and how often it repeats",
            f"attention_types 中有 {short(entry)}：应为名称列表及其重复次数",
        )
    return list(entry[0]) * whole("num_layers", entry[1], shown_as="repeats in attention_types")

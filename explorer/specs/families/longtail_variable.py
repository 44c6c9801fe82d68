"""Models whose layers are not all alike in their heads, share Keys and Values, or run several times.

Variable heads: OpenELM, DeciLM, Nemotron-NAS, MiMo-V2. Shared by neighbours: Hunyuan-Large (CLA, arXiv:2405.12981).
Looped: Ouro, arXiv:2510.25741, and Inkling 2 Loop, whose layers run again with the same weights but other inputs, so
every pass has Keys and Values of its own. Hunyuan without CLA, MiMo and Inkling were checked against transformers 5.24;
the others bring their own code: published implementations that read the same fields were read.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from explorer.errors import InputError
from explorer.specs.families._windows import attention
from explorer.specs.fields import Fields, divides, missing
from explorer.specs.layers import Combined, FullAttention, LayerKind, NoCache, SharedFromOwner, SlidingWindow
from explorer.specs.limits import short, whole
from explorer.specs.model import ModelSpec
from explorer.specs.readers import reader
from explorer.specs.states import RecurrentState, StateTensor


@reader("openelm")
def read_openelm(fields: Fields) -> ModelSpec:
    """OpenELM: `num_query_heads` and `num_kv_heads` are lists, one number a layer."""
    num_layers = fields.count("num_transformer_layers", "num_layers")
    head_dim = fields.count("head_dim")
    kv_heads, heads = (_numbers(fields, name, num_layers) for name in ("num_kv_heads", "num_query_heads"))
    for part, number in zip(kv_heads, heads, strict=True):
        divides("num_kv_heads", part, number)
    layers = [FullAttention(number, head_dim, head_dim) for number in kv_heads]
    spec = _renamed(fields, hidden_size=fields.count("model_dim", "hidden_size")).spec(layers, num_heads=max(heads))
    return replace(spec, max_positions=fields.optional("max_context_length", "max_positions"))


@reader("deci", "nemotron-nas", "decilm")
def read_deci(fields: Fields) -> ModelSpec:
    """DeciLM: `num_key_value_heads_per_layer`; Nemotron-NAS: `block_configs`, where some layers do not attend."""
    num_layers, num_heads = fields.layers(), fields.heads()
    head_dim = fields.head_dim(num_heads)
    if fields.get("num_key_value_heads_per_layer") is not None:
        numbers = _numbers(fields, "num_key_value_heads_per_layer", num_layers)
    else:
        blocks = fields.each("block_configs", num_layers)
        if blocks is None:
            raise missing("block_configs")
        numbers = [_heads_of_block(block, num_heads) for block in blocks]
    layers: list[LayerKind] = [
        FullAttention(divides("num_key_value_heads_per_layer", n, num_heads), head_dim, head_dim) if n else NoCache()
        for n in numbers
    ]
    return fields.spec(layers)


def _heads_of_block(block: Any, num_heads: int) -> int:
    """KV heads of one block: query heads by `n_heads_in_group`; 0 where attention is left out or made linear."""
    part = block.get("attention") if isinstance(block, Mapping) else None
    if not isinstance(part, Mapping):
        raise InputError(
            f"block_configs holds {short(block)}: expected an object with attention",
            f"block_configs 中有 {short(block)}：应为含 attention 的对象",
        )
    if part.get("no_op") or part.get("replace_with_linear"):
        return 0
    if part.get("window_length") is not None or part.get("sparsify"):
        raise InputError(
            "block_configs has attention with window_length or sparsify: no reader knows what that keeps",
            "block_configs 中的注意力带有 window_length 或 sparsify：没有对应的读取规则",
        )
    group = whole("num_heads", part.get("n_heads_in_group"), shown_as="n_heads_in_group")
    return num_heads // divides("n_heads_in_group", group, num_heads)


@reader("mimo_v2_flash")
def read_mimo(fields: Fields) -> ModelSpec:
    """MiMo-V2-Flash: Keys of 192 and Values of 128; the layers with a window have twice the KV heads.

    `hybrid_layer_pattern` has 0 for full attention and 1 for a window; `sliding_window_size` counts the tokens before
    the current one. Without a pattern the first layer and every sixth are full.
    """
    num_layers, num_heads = fields.layers(), fields.heads()
    key_dim, value_dim = fields.count("head_dim", default=192), fields.count("v_head_dim", "head_dim", 128)
    num_kv_heads = fields.kv_heads(num_heads, required=True)
    given = fields.optional("swa_num_key_value_heads", "num_kv_heads")
    before = fields.optional("sliding_window_size", "window")
    window = fields.count("sliding_window", "window", 129) if before is None else before + 1
    pattern = fields.each("hybrid_layer_pattern", num_layers)
    types = fields.names("layer_types", num_layers, ("full_attention", "sliding_attention"))
    if types is not None:
        full = [kind == "full_attention" for kind in types]
    elif pattern is not None:
        full = [whole("max_window_layers", number, shown_as="hybrid_layer_pattern") == 0 for number in pattern]
    else:
        full = [i == 0 or (i + 1) % 6 == 0 for i in range(num_layers)]
    local = SlidingWindow(given or 2 * num_kv_heads, key_dim, value_dim, window)
    return fields.spec([FullAttention(num_kv_heads, key_dim, value_dim) if each else local for each in full])


@reader("hunyuan", "hunyuan_v1_moe", "hunyuan_v1_dense")
def read_hunyuan(fields: Fields) -> ModelSpec:
    """Hunyuan: with `use_cla`, only every `cla_share_factor`-th layer has Keys and Values; the next ones read them."""
    num_layers, num_heads = fields.layers(), fields.heads()
    head_dim = _head_dim(fields, num_heads)
    own = FullAttention(fields.kv_heads(num_heads), head_dim, head_dim)
    factor = fields.count("cla_share_factor", "pattern", 1) if fields.flag("use_cla") else 1
    layers: list[LayerKind] = [
        own if i % factor == 0 else SharedFromOwner(i - i % factor, own) for i in range(num_layers)
    ]
    return fields.spec(layers)


def _head_dim(fields: Fields, num_heads: int) -> int:
    """`head_dim`, or the older name for it."""
    if fields.get("head_dim") is None and fields.get("attention_head_dim") is not None:
        return fields.count("attention_head_dim", "head_dim")
    return fields.head_dim(num_heads)


@reader("ouro")
def read_ouro(fields: Fields) -> ModelSpec:
    """Ouro: all layers run `total_ut_steps` times; slot `step * layers + layer` of the cache belongs to one run."""
    num_layers, num_heads = fields.layers(), fields.heads()
    passes = fields.count("total_ut_steps", "pattern", 4)
    head_dim = fields.head_dim(num_heads)
    layer = FullAttention(fields.kv_heads(num_heads, required=True), head_dim, head_dim)
    _assume_passes(fields, passes, num_layers)
    return fields.spec([layer] * _total(num_layers * passes))


@reader("inkling2_loop_text", "inkling2_loop")
def read_inkling2_loop(fields: Fields) -> ModelSpec:
    """Inkling 2 Loop: layers `loop_layer_index_start` to `loop_layer_index_end - 1` run `loop_num_passes` times.

    Beside its Keys and Values each layer keeps the last inputs of four short convolutions: of the Keys, of the Values
    and of its two branches.

    Raises:
        InputError: the loop does not lie inside the model.
    """
    num_layers = fields.layers()
    loop = fields.table("loop_config")
    first, end, passes = (
        whole(limit, loop.get(short_name, fields.get(name, default)), shown_as=name)
        for short_name, name, limit, default in (
            ("core_start", "loop_layer_index_start", "max_window_layers", 6),
            ("core_end", "loop_layer_index_end", "num_layers", 18),
            ("num_passes", "loop_num_passes", "pattern", 3),
        )
    )
    if not 0 < first < end <= num_layers:
        raise InputError(
            f"the loop from layer {first} to {end} does not lie inside {num_layers} layers",
            f"从第 {first} 层到第 {end} 层的循环不在 {num_layers} 层之内",
        )
    words = fields.names("layer_types", num_layers, ("hybrid", "hybrid_sliding"))
    kinds = words or ["hybrid" if (i + 1) % 6 == 0 else "hybrid_sliding" for i in range(num_layers)]
    _total(num_layers + (passes - 1) * (end - first))
    order = [*range(end), *list(range(first, end)) * (passes - 1), *range(end, num_layers)]
    _assume_passes(fields, passes, end - first)
    known = {kind: _inkling_layer(fields, kind == "hybrid_sliding") for kind in set(kinds)}
    return fields.spec([known[kinds[index]] for index in order])


def _inkling_layer(fields: Fields, sliding: bool) -> LayerKind:
    prefix = "swa_" if sliding else ""
    num_kv_heads = fields.count(f"{prefix}num_key_value_heads", "num_kv_heads", 8)
    head_dim = fields.count(f"{prefix}head_dim", "head_dim", 128)
    window = fields.count("sliding_window_size|sliding_window", "window", 1024) if sliding else None
    taps = fields.count("conv_kernel_size|sconv_kernel_size", "kernel", 4)
    convolutions = RecurrentState(
        "short convolutions",
        (
            StateTensor("conv", num_kv_heads, taps - 1, 2 * head_dim),
            StateTensor("conv", 1, taps - 1, 2 * fields.count("hidden_size")),
        ),
    )
    return Combined((attention(num_kv_heads, head_dim, window), convolutions))


def _assume_passes(fields: Fields, passes: int, looped: int) -> None:
    fields.assume(
        f"{looped} layers run {passes} times a token, and every run keeps Keys and Values of its own",
        f"{looped} 层对每个 token 运行 {passes} 次，每次运行各留一份 Key 与 Value",
    )


def _total(num_layers: int) -> int:
    """The number of runs, as far as that many layers are taken."""
    return whole("num_layers", num_layers, shown_as="layers times passes")


def _numbers(fields: Fields, name: str, num_layers: int) -> list[int]:
    """A list of head counts."""
    values = fields.each(name, num_layers)
    if values is None:
        raise missing(name)
    return [whole("num_kv_heads", value, shown_as=name) for value in values]


def _renamed(fields: Fields, **values: Any) -> Fields:
    """The same fields with some under the name that everything else asks for."""
    found = Fields({**fields, **values}, fields.model_type)
    found.assumptions, found.offered = fields.assumptions, fields.offered
    return found

"""Hybrids: some layers attend, the others carry a state of fixed size, and in a few families one layer does both.

A state is counted in fp32, as transformers 5.24 stores it whatever the model's own format (a file that names one is
followed), and its convolution with the `kernel - 1` earlier inputs that it needs; transformers allocates `kernel`.
"""

from explorer.errors import InputError
from explorer.specs.families._states import state_dtype
from explorer.specs.families._windows import attention
from explorer.specs.fields import Fields
from explorer.specs.layers import Combined, LayerKind, NoCache, SlidingWindow
from explorer.specs.limits import short
from explorer.specs.model import ModelSpec
from explorer.specs.readers import reader
from explorer.specs.states import RecurrentState, StateTensor, mamba1, mamba2

_NAMES = {
    "attention": "full_attention",
    "full_attention": "full_attention",
    "mamba": "linear_attention",
    "linear_attention": "linear_attention",
    "hybrid": "hybrid",
    "conv": "conv",
    "moe": "none",
    "mlp": "none",
}
_LETTERS = {"M": "linear_attention", "*": "full_attention", "E": "none", "-": "none"}


@reader("jamba")
def read_jamba(fields: Fields) -> ModelSpec:
    """Jamba: one attention layer in `attn_layer_period`, at `attn_layer_offset`; the others are Mamba."""
    period = fields.count("attn_layer_period", "pattern", 8)
    offset = _whole_or(fields, "attn_layer_offset", 4)
    width = fields.count("mamba_expand", "pattern", 2) * fields.count("hidden_size")
    state = mamba1(width, fields.count("mamba_d_state", "state_dim", 16), _kernel(fields), dtype=state_dtype(fields))
    kinds = ["full_attention" if i % period == offset else "linear_attention" for i in range(fields.layers())]
    return fields.spec(_layers(fields, kinds, state))


@reader("bamba")
def read_bamba(fields: Fields) -> ModelSpec:
    """Bamba: `attn_layer_indices` names the attention layers; the others are Mamba-2."""
    chosen = fields.get("attn_layer_indices") or []
    if not isinstance(chosen, list | tuple) or not all(isinstance(index, int) for index in chosen):
        raise InputError(
            f"attn_layer_indices={short(chosen)}: expected a list of layer numbers",
            f"attn_layer_indices={short(chosen)}：应为层号列表",
        )
    kinds = ["full_attention" if i in chosen else "linear_attention" for i in range(fields.layers())]
    return fields.spec(_layers(fields, kinds, _mamba2(fields, _inner(fields))))


@reader("granitemoehybrid")
def read_granite_hybrid(fields: Fields) -> ModelSpec:
    """Granite 4: `layer_types` (or `layers_block_type`) names each layer; Mamba-2 where it says nothing."""
    kinds = _kinds(fields, fields.layers(), ("layer_types", "layers_block_type"))
    if kinds is None:
        kinds = ["linear_attention"] * fields.layers()
        fields.assume("layer_types is not given: every layer is Mamba-2", "未给出 layer_types：各层均为 Mamba-2")
    needs_state = "linear_attention" in kinds
    return fields.spec(_layers(fields, kinds, _mamba2(fields, _inner(fields)) if needs_state else None))


@reader("falcon_h1")
def read_falcon_h1(fields: Fields) -> ModelSpec:
    """Falcon-H1: every layer has attention heads and Mamba-2 heads side by side."""
    width = fields.optional("mamba_d_ssm", "state_heads") or _inner(fields)
    return fields.spec(_layers(fields, ["hybrid"] * fields.layers(), _mamba2(fields, width)))


@reader("zamba2")
def read_zamba2(fields: Fields) -> ModelSpec:
    """Zamba2: Mamba-2 everywhere; some layers first apply a shared block of attention to twice the width.

    The block's weights are shared, its cache is not: each of these layers has Keys and Values of its own.

    Raises:
        InputError: the layers that attend are not named.
    """
    num_layers, num_heads = fields.layers(), fields.heads()
    kinds = _kinds(fields, num_layers, ("layers_block_type", "layer_types"))
    chosen = fields.get("hybrid_layer_ids")
    if kinds is None and isinstance(chosen, list | tuple):
        kinds = ["hybrid" if i in chosen else "linear_attention" for i in range(num_layers)]
    if kinds is None:
        raise InputError(
            "the config has neither layers_block_type nor hybrid_layer_ids: which layers attend is not known",
            "配置中既无 layers_block_type 也无 hybrid_layer_ids：不知道哪些层带注意力",
        )
    head_dim = 2 * fields.count("hidden_size") // num_heads
    state = _mamba2(fields, _inner(fields), heads="n_mamba_heads", groups="mamba_ngroups", usual_heads=8)
    both = Combined((attention(fields.kv_heads(num_heads), head_dim, None), state))
    return fields.spec([both if kind == "hybrid" else state for kind in kinds])


@reader("nemotron_h")
def read_nemotron_h(fields: Fields) -> ModelSpec:
    """Nemotron-H and Nemotron 3: one thing a layer: Mamba-2 (M), attention (*), MLP (-) or experts (E).

    Raises:
        InputError: a letter of `hybrid_override_pattern` is none of these.
    """
    pattern = fields.get("hybrid_override_pattern")
    kinds = _kinds(fields, None, ("layers_block_type", "layer_types"))
    if kinds is None:
        if not isinstance(pattern, str) or not pattern or set(pattern) - set(_LETTERS):
            raise InputError(
                f"hybrid_override_pattern={short(pattern)}: expected a letter for each layer, of M * - E",
                f"hybrid_override_pattern={short(pattern)}：每层应为一个字母，取自 M * - E",
            )
        kinds = [_LETTERS[letter] for letter in pattern]
    heads = fields.count("mamba_num_heads", "state_heads", 128)
    width = heads * fields.count("mamba_head_dim", "state_dim", 64)
    state = _mamba2(fields, width, heads="mamba_num_heads", groups="n_groups|mamba_n_groups", rows="ssm_state_size")
    return fields.spec(_layers(fields, kinds, state, default_head_dim=128))


@reader("lfm2", "lfm2_moe")
def read_lfm2(fields: Fields) -> ModelSpec:
    """LFM2: gated short convolutions of `conv_L_cache` taps, and some layers of attention."""
    num_layers = fields.layers()
    kinds = _kinds(fields, num_layers, ("layer_types",))
    if kinds is None:
        chosen = fields.get("full_attn_idxs")
        full = range(num_layers) if chosen is None else chosen
        kinds = ["full_attention" if i in full else "conv" for i in range(num_layers)]
    taps = fields.count("conv_L_cache", "kernel", 3)
    conv = RecurrentState("short convolution", (StateTensor("conv", fields.count("hidden_size"), taps - 1, 1),))
    return fields.spec(_layers(fields, kinds, conv))


@reader("recurrent_gemma")
def read_recurrent_gemma(fields: Fields) -> ModelSpec:
    """RecurrentGemma (Griffin): two RG-LRU layers, then one with a window; the recurrence is always kept in fp32."""
    num_layers, num_heads = fields.layers(), fields.heads()
    blocks = fields.get("block_types") or ["recurrent", "recurrent", "attention"]
    if not isinstance(blocks, list | tuple) or set(map(str, blocks)) - {"recurrent", "attention"}:
        raise InputError(
            f"block_types={short(blocks)}: expected a list of recurrent and attention",
            f"block_types={short(blocks)}：应为由 recurrent 与 attention 组成的列表",
        )
    width = fields.optional("lru_width", "state_heads") or fields.count("hidden_size")
    taps = fields.count("conv1d_width", "kernel", 4)
    lru = RecurrentState("RG-LRU", (StateTensor("state", width, 1, 1, "fp32"), StateTensor("conv", width, taps - 1, 1)))
    head_dim = fields.count("hidden_size") // num_heads
    window = fields.count("attention_window_size|sliding_window", "window", 2048)
    local = SlidingWindow(fields.kv_heads(num_heads), head_dim, head_dim, window)
    return fields.spec([local if blocks[i % len(blocks)] == "attention" else lru for i in range(num_layers)])


def _layers(
    fields: Fields, kinds: list[str], state: LayerKind | None, default_head_dim: int | None = None
) -> list[LayerKind]:
    """Each word as a kind: attention, the state, both, or nothing."""
    num_heads = fields.heads()
    head_dim = fields.head_dim(num_heads, default_head_dim)
    full = attention(fields.kv_heads(num_heads), head_dim, None)
    known: dict[str, LayerKind | None] = {
        "full_attention": full,
        "linear_attention": state,
        "conv": state,
        "hybrid": Combined((full, state)) if state else None,
        "none": NoCache(),
    }
    found = [known[kind] for kind in kinds]
    return [layer for layer in found if layer is not None]


def _kinds(fields: Fields, num_layers: int | None, names: tuple[str, ...]) -> list[str] | None:
    """The list under the first of these names that is there, in one spelling; None for no list."""
    name = next((name for name in names if fields.get(name) is not None), None)
    if name is None:
        return None
    length = len(fields[name]) if num_layers is None and isinstance(fields[name], list) else num_layers
    words = fields.names(name, length or 1, _NAMES)
    return None if words is None else [_NAMES[word] for word in words]


def _mamba2(
    fields: Fields,
    width: int,
    *,
    heads: str = "mamba_n_heads",
    groups: str = "mamba_n_groups",
    rows: str = "mamba_d_state",
    usual_heads: int = 128,
) -> RecurrentState:
    """A Mamba-2 state of this width; `heads`, `groups` and `rows` are what the family calls them.

    Raises:
        InputError: the heads do not divide it.
    """
    num_heads = fields.count(heads, "state_heads", usual_heads)
    if width % num_heads:
        raise InputError(
            f"{heads}={num_heads} does not divide the inner width of {width}",
            f"{heads}={num_heads} 不能整除内部宽度 {width}",
        )
    state_dim, num_groups = fields.count(rows, "state_dim"), fields.count(groups, "state_heads", 1)
    dtype = state_dtype(fields)
    return mamba2(num_heads, width // num_heads, state_dim, num_groups, _kernel(fields), dtype=dtype)


def _inner(fields: Fields) -> int:
    return fields.count("mamba_expand", "pattern", 2) * fields.count("hidden_size")


def _kernel(fields: Fields) -> int:
    return fields.count("mamba_d_conv|conv_kernel", "kernel", 4)


def _whole_or(fields: Fields, name: str, default: int) -> int:
    """A small whole number that may be 0."""
    return fields.count(name, "max_window_layers", default)

"""Mamba, Mamba-2 and RWKV: no attention at all, so nothing grows with the context."""

from explorer.errors import InputError
from explorer.specs.families._states import state_dtype
from explorer.specs.fields import Fields
from explorer.specs.limits import whole
from explorer.specs.model import ModelSpec
from explorer.specs.readers import reader
from explorer.specs.states import RecurrentState, StateTensor, mamba1, mamba2


@reader("mamba", "falcon_mamba")
def read_mamba(fields: Fields) -> ModelSpec:
    """`expand * hidden_size` channels (or `intermediate_size`), each with `state_size` numbers."""
    num_layers, hidden_size = fields.layers(), fields.count("hidden_size")
    width = fields.optional("intermediate_size", "state_heads") or hidden_size * fields.count("expand", "kernel", 2)
    layer = mamba1(
        whole("state_heads", width, shown_as="expand * hidden_size"),
        fields.count("state_size", "state_dim", 16),
        fields.count("conv_kernel", "kernel", 4),
        dtype=state_dtype(fields),
    )
    return fields.spec([layer] * num_layers, num_heads=0)


@reader("mamba2")
def read_mamba2(fields: Fields) -> ModelSpec:
    """`num_heads` heads of `head_dim`, each with `state_size` numbers; B and C are shared by a group of heads."""
    num_layers, hidden_size = fields.layers(), fields.count("hidden_size")
    heads, head_dim = fields.count("num_heads", "state_heads", 128), fields.count("head_dim", default=64)
    expand = fields.count("expand", "kernel", 2)
    if heads * head_dim != hidden_size * expand:
        raise InputError(
            f"num_heads * head_dim = {heads * head_dim} is not expand * hidden_size = {hidden_size * expand}",
            f"num_heads * head_dim = {heads * head_dim}，不等于 expand * hidden_size = {hidden_size * expand}",
        )
    layer = mamba2(
        heads,
        head_dim,
        fields.count("state_size", "state_dim", 128),
        fields.count("n_groups", "state_heads", 8),
        fields.count("conv_kernel", "kernel", 4),
        dtype=state_dtype(fields),
    )
    return fields.spec([layer] * num_layers, num_heads=0)


@reader("rwkv")
def read_rwkv4(fields: Fields) -> ModelSpec:
    """RWKV-4: numerator, denominator and maximum of each channel in fp32, and two earlier inputs (token shift)."""
    hidden_size = fields.count("hidden_size")
    layer = RecurrentState(
        "RWKV-4", (StateTensor("state", hidden_size, 3, 1, "fp32"), StateTensor("conv", hidden_size, 2, 1))
    )
    return fields.spec([layer] * fields.layers(), num_heads=0)


@reader("rwkv5", "rwkv6", "rwkv7")
def read_rwkv(fields: Fields) -> ModelSpec:
    """RWKV-5 to 7: a `head_dim x head_dim` matrix for each head, and two earlier inputs (token shift)."""
    hidden_size = fields.count("hidden_size")
    head_dim = fields.count("head_dim|head_size|head_size_a", "head_dim", 64)
    if hidden_size % head_dim:
        raise InputError(
            f"hidden_size={hidden_size} is not a multiple of head_dim={head_dim}",
            f"hidden_size={hidden_size} 不是 head_dim={head_dim} 的整数倍",
        )
    heads = hidden_size // head_dim
    layer = RecurrentState(
        f"RWKV-{fields.model_type[-1]}",
        (StateTensor("state", heads, head_dim, head_dim, state_dtype(fields)), StateTensor("conv", heads, 2, head_dim)),
    )
    return fields.spec([layer] * fields.layers(), num_heads=0)

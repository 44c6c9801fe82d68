"""MiniMax: Text-01 keeps a state in seven of eight layers (lightning attention), M2 Keys and Values in all."""

from explorer.errors import InputError
from explorer.specs.families._states import FULL, LINEAR, state_dtype
from explorer.specs.families._windows import attention
from explorer.specs.fields import Fields, missing
from explorer.specs.layers import FullAttention
from explorer.specs.model import ModelSpec
from explorer.specs.readers import reader
from explorer.specs.states import RecurrentState, StateTensor


@reader("minimax", "minimax_text_01", "minimax_m1")
def read_hybrid(fields: Fields) -> ModelSpec:
    """The layout is the file's `layer_types` or `attn_type_list` (1 for softmax, 0 for lightning); never assumed."""
    num_layers, num_heads = fields.layers(), fields.heads()
    head_dim = fields.head_dim(num_heads)
    full = FullAttention(fields.kv_heads(num_heads, 8), head_dim, head_dim)
    state = RecurrentState(
        "Lightning attention", (StateTensor("state", num_heads, head_dim, head_dim, state_dtype(fields)),)
    )
    types = fields.names("layer_types", num_layers, (FULL, LINEAR))
    if types is None:
        listed = fields.each("attn_type_list", num_layers)
        if listed is None:
            raise missing("attn_type_list")
        if any(kind not in (0, 1) or isinstance(kind, bool) for kind in listed):
            raise InputError(
                "attn_type_list: expected 0 (lightning) or 1 (softmax)",
                "attn_type_list：应为 0（lightning）或 1（softmax）",
            )
        types = [FULL if kind else LINEAR for kind in listed]
    return fields.spec([full if kind == FULL else state for kind in types])


@reader("minimax_m2")
def read_m2(fields: Fields) -> ModelSpec:
    """Full attention in every layer; its draft modules are counted where the file names them."""
    num_layers, num_heads = fields.layers(), fields.heads(48)
    layer = attention(fields.kv_heads(num_heads, 8), fields.head_dim(num_heads, 128), None)
    drafts = (fields.optional("num_mtp_modules", "mtp_layers") or 0) if fields.flag("use_mtp") else 0
    return fields.spec([layer] * num_layers, mtp_layers=[layer] * drafts, num_heads=num_heads)

"""Full attention or a sliding window, layer by layer: what many families share."""

from collections.abc import Iterable

from explorer.specs.fields import Fields
from explorer.specs.layers import FullAttention, LayerKind, SlidingWindow

FULL, SLIDING = "full_attention", "sliding_attention"


def attention(num_kv_heads: int, head_dim: int, window: int | None) -> LayerKind:
    """A layer with this window, or without one."""
    if window is None:
        return FullAttention(num_kv_heads, head_dim, head_dim)
    return SlidingWindow(num_kv_heads, head_dim, head_dim, window)


def layer_types(fields: Fields, num_layers: int, fallback: Iterable[str]) -> list[str]:
    """`layer_types` as the config lists it, or the family's own rule where it does not."""
    found = fields.names("layer_types", num_layers, (FULL, SLIDING))
    return list(fallback) if found is None else found


def every_nth_full(num_layers: int, pattern: int) -> list[str]:
    """Layer `pattern`, `2 * pattern`, ... (counted from 1) attends to everything, the others to a window."""
    return [FULL if (i + 1) % pattern == 0 else SLIDING for i in range(num_layers)]


def mixed(types: Iterable[str], num_kv_heads: int, head_dim: int, window: int | None) -> list[LayerKind]:
    """Layers of these types with one size of head; without a window all are full."""
    return [attention(num_kv_heads, head_dim, window if kind == SLIDING else None) for kind in types]

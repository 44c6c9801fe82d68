"""Fields of published `config.json` files: how the tables of architectures write them down."""

from typing import Any


def model(
    model_type: str,
    layers: int,
    hidden: int,
    heads: int,
    kv_heads: int | None,
    head_dim: int | None = None,
    **more: Any,
) -> dict[str, Any]:
    """The fields that nearly every config has, and `more`."""
    fields = {
        "model_type": model_type,
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": head_dim,
    }
    return {name: value for name, value in fields.items() if value is not None} | more


def mostly_sliding(layers: int, every: int) -> list[str]:
    """`layer_types` with a window in all layers but each `every`-th."""
    return ["full_attention" if (index + 1) % every == 0 else "sliding_attention" for index in range(layers)]

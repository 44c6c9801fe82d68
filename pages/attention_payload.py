"""What the browser gets: plain JSON, with arrays as little-endian float32 in base64 (assets/js/attention-draw.js)."""

import base64
from typing import Any

import numpy as np

from explorer.errors import InputError
from pages.attention_reading import Piece, Reading


def packed(array: Any) -> str:
    """An array's float32 numbers, row by row."""
    return base64.b64encode(np.ascontiguousarray(array, dtype="<f4").tobytes()).decode()


def sentence(reading: Reading) -> dict[str, Any]:
    """A sentence's tokens, its continuation, the first token's share in every head, and the model's shape."""
    config, model = reading.trace.config, reading.model
    return {
        "status": "ready",
        "text": reading.text,
        "model": model["name"],
        "dtype": model["dtype"],
        "device": model["device"],
        "layers": config.num_layers,
        "heads": config.num_heads,
        "kvHeads": config.num_kv_heads,
        "dim": config.head_dim,
        "elementBytes": model["element_bytes"],
        "bytesPerToken": model["bytes_per_token"],
        "tokens": [_piece(piece) for piece in reading.prompt],
        "generated": [_piece(piece) for piece in reading.generated],
        "cacheBytes": list(reading.cache_bytes),
        "sinks": packed(reading.trace.sink_share),
    }


def head(reading: Reading, layer: Any, head: Any) -> dict[str, Any]:
    """Everything that one head used.

    Raises:
        InputError: there is no such layer or head.
    """
    for name, value in (("layer", layer), ("head", head)):
        if not isinstance(value, int) or isinstance(value, bool):
            raise InputError(f"{name}: expected a whole number", f"{name}：应为整数")
    trace = reading.trace.layer(layer, head)
    return {
        "status": "ready",
        "length": len(reading.prompt),
        "dim": reading.trace.config.head_dim,
        "kvHead": trace.kv_head,
        "q": packed(trace.query),
        "k": packed(trace.key),
        "v": packed(trace.value),
        "scores": packed(trace.scores),
        "weights": packed(trace.weights),
        "output": packed(trace.output),
    }


def _piece(piece: Piece) -> dict[str, Any]:
    return {"id": piece.token_id, "text": piece.text, "chars": piece.chars, "hex": piece.hex}

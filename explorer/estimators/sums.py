"""A model's layers gathered into few terms: equal layers are one term, so a sum is as long as its kinds of layer."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from explorer.specs import pieces
from explorer.specs.formats import CacheFormat
from explorer.specs.layers import Combined, LayerKind
from explorer.specs.model import ModelSpec
from explorer.specs.pieces import Piece, Rows


@dataclass(frozen=True)
class Group:
    """Equal layers.

    Attributes:
        layer: what each of them keeps; a layer that keeps several things is in several groups.
        indices: their places in the model, in order.
        mtp: they are draft layers, counted after the model's own.
    """

    layer: LayerKind
    indices: tuple[int, ...]
    mtp: bool = False


def groups(spec: ModelSpec, include_mtp: bool = False) -> list[Group]:
    """The model's layers by what they keep, in order of first appearance."""
    found = groups_of(spec.layers)
    return found + groups_of(spec.mtp_layers, len(spec.layers), mtp=True) if include_mtp else found


def groups_of(layers: Iterable[LayerKind], first: int = 0, *, mtp: bool = False) -> list[Group]:
    """Layers by what they keep; the first of them has the place `first`."""
    places: dict[LayerKind, list[int]] = {}
    for index, layer in enumerate(layers, start=first):
        for part in layer.parts if isinstance(layer, Combined) else (layer,):
            places.setdefault(part, []).append(index)
    return [Group(layer, tuple(indices), mtp) for layer, indices in places.items()]


def kept(found: Iterable[Group], form: CacheFormat, tp: int = 1) -> list[Piece]:
    """The terms of all bytes kept for one sequence, like ones added up."""
    return merged((piece, len(group.indices)) for group in found for piece in group.layer.pieces(form, tp))


def read(found: Iterable[Group], form: CacheFormat, tp: int = 1) -> list[Piece]:
    """The terms of all bytes read to decode one token of one sequence."""
    return merged((piece, len(group.indices)) for group in found for piece in group.layer.read_pieces(form, tp))


def merged(counted: Iterable[tuple[Piece, int]]) -> list[Piece]:
    """Pieces, each so many times, with those of one tensor and one number of rows added up."""
    sums: dict[tuple[str, Rows], int] = {}
    for piece, times in counted:
        key = (piece.tensor, piece.rows)
        sums[key] = sums.get(key, 0) + times * piece.row_bytes
    return [Piece(tensor, row_bytes, rows) for (tensor, rows), row_bytes in sums.items() if row_bytes]


def longest(terms: list[Piece], fits: Callable[[int], bool], limit: int) -> int:
    """The largest length in 0..`limit` for which `fits(bytes)` holds for it and all shorter ones.

    A cache that packs its tokens in runs shrinks a little at the end of each run; what counts is then the fullest
    moment on the way, just before the last run closed.
    """
    period = math.lcm(*(piece.rows.every for piece in terms if piece.row_bytes < 0), 1)

    def peak(tokens: int) -> int:
        before = tokens - (tokens + 1) % period
        return max(pieces.total(terms, tokens), pieces.total(terms, before) if before > 0 else 0)

    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(peak(middle)) else (low, middle - 1)
    return low


def piecewise(spec: ModelSpec, form: CacheFormat, tp: int = 1, include_mtp: bool = False) -> dict[str, Any]:
    """All that a browser needs to compute the same bytes exactly: see `explorer/specs/pieces.py` for what a term means.

    Returns:
        `{"keep": [term], "read": [term], "settled_at": tokens, "groups": [{"kind", "num_layers", "keep", "read"}]}`;
        the groups' terms are those of one layer.
    """
    found = groups(spec, include_mtp)
    keep = kept(found, form, tp)
    return {
        "keep": [piece.as_json() for piece in keep],
        "read": [piece.as_json() for piece in read(found, form, tp)],
        "settled_at": pieces.settled_at(keep),
        "groups": [
            {
                "kind": group.layer.kind,
                "num_layers": len(group.indices),
                "mtp": group.mtp,
                "keep": [piece.as_json() for piece in group.layer.pieces(form, tp)],
                "read": [piece.as_json() for piece in group.layer.read_pieces(form, tp)],
            }
            for group in found
        ],
    }

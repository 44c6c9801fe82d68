"""The rows of the page "Models": every model of the catalogue with its slope, its constant and its sizes."""

from fractions import Fraction
from typing import Any

from explorer.estimators import sums
from explorer.estimators.memory import cache_bytes
from explorer.measuring.record import Origin
from explorer.specs import catalog, units
from explorer.specs.catalog import CatalogEntry, PrintedValue
from explorer.specs.formats import cache_format
from explorer.specs.layers import Combined, LayerKind
from explorer.specs.model import ModelSpec
from explorer.text import Lang
from pages._badge import MARKS, MEANINGS, WORDS
from pages._page import Ctx

LENGTHS = (32_768, 131_072, 1_048_576)
FORM = "bf16"


def table_props(ctx: Ctx) -> dict[str, Any]:
    """What the table is made of; sizes at a free length are computed in the browser from `keep` (pieces.py)."""
    entries = catalog.entries()
    return {
        "lengths": list(LENGTHS),
        "start": LENGTHS[1],
        "limits": [1, 2**24],
        "size_page": ctx.href("cache-size"),
        "rows": [row(spec, entries[name], ctx.lang) for name, spec in catalog.models().items()],
        "badges": {
            origin.value: {
                "mark": MARKS[origin],
                "word": WORDS[origin].get(ctx.lang),
                "meaning": MEANINGS[origin].get(ctx.lang),
            }
            for origin in (Origin.COMPUTED, Origin.QUOTED)
        },
    }


def row(spec: ModelSpec, entry: CatalogEntry, lang: Lang) -> dict[str, Any]:
    """One model; sizes in bytes of one sequence in bf16, draft layers not counted."""
    found = cache_bytes(spec, 1, dtype=FORM)
    return {
        "name": spec.name,
        "title": spec.title,
        "organisation": entry.organisation,
        "attention": entry.attention.get(lang),
        "kinds": {kind.kind: kind.title.get(lang) for kind in kinds(spec) if kind.tensors()},
        "slope": _number(found.bytes_per_token_growing),
        "constant": _number(found.constant_bytes),
        "settled": found.settled_at,
        "totals": [cache_bytes(spec, tokens, dtype=FORM).total_bytes for tokens in LENGTHS],
        "keep": [piece.as_json() for piece in sums.kept(sums.groups(spec), cache_format(FORM))],
        "weights": spec.weight_params,
        "active": entry.active_params,
        "stated": spec.max_positions,
        "date": spec.date,
        "source": spec.source,
        "is_verified": entry.is_verified,
        "verified": spec.verified.get(lang) if spec.verified else "",
        "assumed": [line.get(lang) for line in spec.assumptions],
        "listed": entry.context,
        "printed": [_printed(value, lang) for value in entry.printed],
    }


def kinds(spec: ModelSpec) -> list[LayerKind]:
    """One layer of each kind, in order; a layer that keeps several things counts as each of them."""
    parts = [part for layer in spec.layers for part in (layer.parts if isinstance(layer, Combined) else (layer,))]
    return list({part.kind: part for part in reversed(parts)}.values())[::-1]


def _printed(value: PrintedValue, lang: Lang) -> dict[str, Any]:
    return {
        "text": value.text,
        "source": value.source,
        "assumption": value.assumption.get(lang) if value.assumption else "",
        "switches": list(value.switches),
    }


def _number(value: int | Fraction) -> dict[str, Any]:
    """A number of bytes to sort by and to read; the fraction of one is shown to a hundredth."""
    if isinstance(value, int):
        return {"value": value, "text": units.binary(value) if value >= 0 else f"{value:,} B"}
    return {"value": float(value), "text": f"{float(value):,.2f} B"}

"""Cache size: when does what a model keeps of the past outweigh the model itself?"""

from typing import Any

from explorer.measuring.record import Origin
from explorer.specs.catalog import devices
from explorer.specs.limits import LIMITS
from explorer.text import Lang, Text
from pages import cache_size_entries as entries
from pages._badge import MARKS, MEANINGS, WORDS
from pages._blocks import boundaries, columns, heading, html, prose, question, subheading
from pages._explorable import explorable
from pages._page import Ctx, Page
from pages.cache_size_config import MAX_TEXT, read_pasted
from pages.cache_size_tables import devices_table, growth_table, heads_table

START = {"model": "llama-3.1-8b", "tokens": 32_768, "gpu": "h100-sxm-80gb"}
# What the controls offer: inside the estimator's limits, wide enough for every published uniform model.
CONTROLS = {"tokens": (1, 2**24), "batch": (1, 4_096), "layers": (1, 256), "kv_heads": (1, 128), "head_dim": (8, 1_024)}
RANKS = (1, 2, 4, 8, 16, 32, 64)


def widget_props(lang: Lang) -> dict[str, Any]:
    """Everything that the browser computes from: models as tensors, devices, formats and limits."""
    found, lines = entries.catalogue(lang)
    return {
        "start": START,
        "limits": {name: list(limits) for name, limits in CONTROLS.items()},
        "ranks": list(RANKS),
        "token_limit": LIMITS["tokens"].high,
        "text_limit": MAX_TEXT,
        "models": found,
        "lines": lines,
        "own": entries.own_shape(lang),
        "devices": [
            {
                "name": device.name,
                "title": device.title,
                "memory_bytes": device.memory_bytes,
                "source": device.source,
                "memory_source": device.memory_source,
            }
            for device in devices().values()
        ],
        "formats": entries.formats(lang),
        "packed_roles": entries.packed_roles(),
        "badges": {
            origin.value: {
                "mark": MARKS[origin],
                "word": WORDS[origin].get(lang),
                "meaning": MEANINGS[origin].get(lang),
            }
            for origin in (Origin.COMPUTED, Origin.QUOTED)
        },
    }


def build(ctx: Ctx) -> None:
    """Fill the page."""

    # `kv.server` calls it with whatever was sent; it is checked there.
    def read_config(text: Any) -> dict[str, Any]:
        return read_pasted(text, ctx.lang)

    heading(ctx)
    explorable(ctx, "cache-size", widget_props(ctx.lang), "cache-size", server_functions=[read_config])
    question(ctx, "ask")
    prose(ctx, "growth")
    subheading(ctx, "layers-title")
    prose(ctx, "layers")
    subheading(ctx, "growth-title")
    left, right = columns()
    with left:
        html(growth_table(ctx))
    with right:
        prose(ctx, "table")
    subheading(ctx, "heads-title")
    left, right = columns()
    with left:
        html(heads_table(ctx))
    with right:
        prose(ctx, "heads")
    boundaries(ctx, "limits")
    subheading(ctx, "sources-title")
    prose(ctx, "sources")
    html(devices_table(ctx))
    question(ctx, "next")


PAGE = Page("cache-size", 2, 1, Text("Cache size", "缓存有多大"), build)

"""Worked example: one load on Qwen3-32B, from its bytes to the resource that is short and to what is worth trying."""

from typing import Any

from explorer.estimators.memory import cache_bytes
from explorer.measuring.record import Origin
from explorer.specs.catalog import devices, model_named
from explorer.specs.dtypes import DTYPES
from explorer.specs.layers import FullAttention
from explorer.text import Lang, Text
from pages._badge import MARKS, MEANINGS, WORDS
from pages._blocks import boundaries, heading, html, prose, question, subheading
from pages._explorable import explorable
from pages._page import Ctx, Page
from pages.worked_example_tables import axes_table, checks_table, sources_table

MODEL = "qwen3-32b"
# Whose cache may cross a link: the case's own, the shape of the documents' hand-over, and one without grouped heads.
MOVERS = (MODEL, "llama-3.1-8b", "llama-2-7b")
TP = (1, 2, 4, 8, 16)
COUNTS = (1, 4, 8)
BATCHES = (1, 2, 4, 8, 16, 32, 64)
BITS = (16, 8, 4)
BRANCHES = ("capacity", "decode", "prefill", "interference", "quality")
START: dict[str, int | float | str] = {
    "requests": 8,
    "tokens": 32_768,
    "cache": "bf16",
    "weights": "16",
    "gpu": "h100-sxm-80gb",
    "tp": "1",
    "reserve": 4,
    "bandwidth": 3_000,
    "prefix": 16_384,
    "block": 16,
    "mover": MODEL,
    "moved": 32_768,
    "link": 64,
    "prefill": 10_000,
}
LIMITS = {
    "requests": (1, 64),
    "tokens": (256, 131_072),
    "reserve": (0, 32),
    "bandwidth": (100, 10_000),
    "prefix": (16, 131_072),
    "block": (1, 1_024),
    "moved": (256, 131_072),
    "link": (1, 1_000),
    "prefill": (100, 1_000_000),
}
PRESETS = {
    "request": {"mover": MODEL, "moved": 32_768, "link": 64, "prefill": 10_000, "cache": "bf16"},
    "handover": {"mover": "llama-3.1-8b", "moved": 16_384, "link": 64, "prefill": 10_000, "cache": "bf16"},
    # The prefill rate that an engine without offloading reached in the issue that `sources` names.
    "thread": {"mover": "llama-2-7b", "moved": 3_000, "link": 25, "prefill": 44_025, "cache": "bf16"},
}
# The first row is what the others are compared with, the last is the second and the third together.
COMBINATIONS = (
    {"name": "base", "bytes": 2, "bits": 16},
    {"name": "cache", "bytes": 1, "bits": 16},
    {"name": "weights", "bytes": 2, "bits": 8},
    {"name": "both", "bytes": 1, "bits": 8},
)


def widget_props(lang: Lang) -> dict[str, Any]:
    """Everything that the page's sections compute from; all of them get the same."""
    return {
        "start": START,
        "limits": {name: list(limits) for name, limits in LIMITS.items()},
        "model": shape_of(MODEL),
        "movers": [shape_of(name) for name in MOVERS],
        "devices": [
            {
                "name": device.name,
                "title": device.title,
                "memory_bytes": device.memory_bytes,
                "bandwidth_bytes_per_s": device.bandwidth_bytes_per_s,
                "source": device.source,
                "memory_source": device.memory_source,
            }
            for device in devices().values()
        ],
        "dtypes": [
            {"name": form.name, "bytes": form.element_bytes, "note": form.note.get(lang) if form.note else ""}
            for form in DTYPES.values()
        ],
        "bits": list(BITS),
        "tp": list(TP),
        "counts": list(COUNTS),
        "batches": list(BATCHES),
        "presets": PRESETS,
        "branches": list(BRANCHES),
        "combinations": list(COMBINATIONS),
        "badges": {
            origin.value: {
                "mark": MARKS[origin],
                "word": WORDS[origin].get(lang),
                "meaning": MEANINGS[origin].get(lang),
            }
            for origin in (Origin.COMPUTED, Origin.QUOTED)
        },
    }


def shape_of(name: str) -> dict[str, Any]:
    """A catalogue model as the browser takes it: like layers of full attention, Key and Value of one size."""
    spec = model_named(name)
    layer = spec.layers[0]
    assert isinstance(layer, FullAttention) and set(spec.layers) == {layer}, f"{name}: five numbers must describe it"
    assert layer.key_dim == layer.value_dim and spec.weight_params is not None, f"{name}: as above"
    return {
        "name": spec.name,
        "title": spec.title,
        "layers": len(spec.layers),
        "kv_heads": layer.num_kv_heads,
        "head_dim": layer.key_dim,
        "max_positions": spec.max_positions,
        "weight_params": spec.weight_params,
        "bytes_per_token": cache_bytes(spec, 1).total_bytes,
        "source": spec.source,
        "date": spec.date,
    }


def build(ctx: Ctx) -> None:
    """Fill the page."""
    props = widget_props(ctx.lang)
    heading(ctx)
    subheading(ctx, "case-title")
    prose(ctx, "case")
    for letter, name in (("a", "capacity"), ("b", "bandwidth"), ("c", "prefix"), ("d", "move")):
        subheading(ctx, f"{letter}-title")
        explorable(ctx, f"worked-example-{name}", props, f"worked-{name}")
        question(ctx, f"{letter}-ask")
        prose(ctx, name)
        if letter == "a":
            html(checks_table(ctx))
    subheading(ctx, "e-title")
    prose(ctx, "flow")
    explorable(ctx, "worked-example-flow", props, "worked-flow")
    subheading(ctx, "f-title")
    explorable(ctx, "worked-example-combine", props, "worked-combine")
    prose(ctx, "combine")
    subheading(ctx, "axes-title")
    html(axes_table(ctx))
    prose(ctx, "axes")
    boundaries(ctx, "limits")
    subheading(ctx, "sources-title")
    html(sources_table(ctx, (MODEL, *MOVERS[1:])))
    prose(ctx, "sources")
    question(ctx, "next")


PAGE = Page("worked-example", 1, 6, Text("Worked example: Qwen3-32B", "实例推演：Qwen3-32B"), build)

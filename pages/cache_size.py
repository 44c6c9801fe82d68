"""Cache size: when does what a model keeps of the past outweigh the model itself?"""

from fractions import Fraction
from html import escape
from typing import Any

from explorer.estimators.memory import cache_bytes
from explorer.measuring.record import Origin
from explorer.specs import units
from explorer.specs.catalog import devices, model_named, models
from explorer.specs.dtypes import DTYPES
from explorer.specs.layers import FullAttention
from explorer.specs.limits import LIMITS
from explorer.specs.model import ModelSpec
from explorer.text import Lang, Text
from pages._badge import MARKS, MEANINGS, WORDS
from pages._blocks import badge, boundaries, columns, heading, html, prose, question, subheading
from pages._explorable import explorable
from pages._page import Ctx, Page

START = {"model": "llama-3.1-8b", "tokens": 32_768, "gpu": "h100-sxm-80gb"}
# What the controls offer: inside the estimator's limits, wide enough for every published uniform model.
CONTROLS = {"tokens": (1, 2**24), "batch": (1, 4_096), "layers": (1, 256), "kv_heads": (1, 128), "head_dim": (8, 1_024)}
HEADS = (("MHA", 32), ("GQA", 8), ("MQA", 1))
NUM_TOKENS = 131_072
ROW = ' scope="row"'


def widget_props(lang: Lang) -> dict[str, Any]:
    """Everything that the browser computes from: uniform models, devices, formats and limits."""
    return {
        "start": START,
        "limits": {name: list(limits) for name, limits in CONTROLS.items()},
        "token_limit": LIMITS["tokens"].high,
        "models": [entry for spec in models().values() if (entry := _model_entry(spec)) is not None],
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
        "dtypes": [
            {"name": form.name, "bytes": form.element_bytes, "note": form.note.get(lang) if form.note else ""}
            for form in DTYPES.values()
        ],
        "badges": {
            origin.value: {
                "mark": MARKS[origin],
                "word": WORDS[origin].get(lang),
                "meaning": MEANINGS[origin].get(lang),
            }
            for origin in (Origin.COMPUTED, Origin.QUOTED)
        },
    }


def _model_entry(spec: ModelSpec) -> dict[str, Any] | None:
    """A model as the widget takes it, or None: five numbers describe only like layers of full attention."""
    layer = spec.layers[0]
    uniform = isinstance(layer, FullAttention) and layer.key_dim == layer.value_dim and set(spec.layers) == {layer}
    if not uniform or spec.weight_params is None:
        return None
    assert isinstance(layer, FullAttention)
    return {
        "name": spec.name,
        "title": spec.title,
        "layers": len(spec.layers),
        "kv_heads": layer.num_kv_heads,
        "head_dim": layer.key_dim,
        "max_positions": spec.max_positions,
        "weight_params": spec.weight_params,
        "source": spec.source,
        "date": spec.date,
    }


def heads_table(ctx: Ctx) -> str:
    """MHA, GQA and MQA at one length: what one KV head more costs."""
    head = [ctx.t(f"heads-{name}") for name in ("kind", "kv", "token", "total", "ratio", "layer")]
    rows = []
    for name, num_kv_heads in HEADS:
        layer = FullAttention(num_kv_heads, 128, 128)
        spec = ModelSpec(name, (layer,) * 32, num_heads=32, hidden_size=4_096)
        token, total = cache_bytes(spec, 1).total_bytes, cache_bytes(spec, NUM_TOKENS).total_bytes
        share = Fraction(num_kv_heads, HEADS[0][1])
        sizes = [units.binary(size) for size in (token, total, layer.bytes_at(1, 2))]
        rows.append([name, units.count(num_kv_heads), *sizes[:2], str(share), sizes[2]])
    return _table(head, rows, ctx.t("heads-caption"), badge(Origin.COMPUTED, ctx.lang))


def growth_table(ctx: Ctx) -> str:
    """The documents' table: one shape from one token to 131,072."""
    head = [ctx.t(f"growth-{name}") for name in ("tokens", "size", "decimal", "times")]
    spec = model_named("llama-2-7b")
    per_token = units.binary(cache_bytes(spec, 1).total_bytes)
    rows = []
    for tokens in (1, 1_024, 4_096, NUM_TOKENS):
        total = cache_bytes(spec, tokens).total_bytes
        rows.append(
            [units.tokens(tokens), units.binary(total), units.decimal(total), f"{per_token} × {units.count(tokens)}"]
        )
    return _table(head, rows, ctx.t("growth-caption"), badge(Origin.COMPUTED, ctx.lang))


def sources_tables(ctx: Ctx) -> str:
    """The quoted numbers: what the models' configs state and what the data sheets say, and how each was checked."""
    quoted = badge(Origin.QUOTED, ctx.lang)
    head = [ctx.t(f"sources-{name}") for name in ("model", "params", "token", "context", "source", "checked")]
    rows = [
        [
            spec.title,
            units.count(spec.weight_params or 0),
            units.binary(cache_bytes(spec, 1).total_bytes),
            units.tokens(spec.max_positions or 0),
            f"{spec.source}, {spec.date}",
            spec.verified.get(ctx.lang) if spec.verified else "",
        ]
        for spec in models().values()
    ]
    return _table(head, rows, ctx.t("sources-models-caption"), quoted, num_text=2) + _devices_table(ctx, quoted)


def _devices_table(ctx: Ctx, mark: str) -> str:
    head = [ctx.t(f"sources-{name}") for name in ("device", "memory", "bandwidth", "source", "checked")]
    rows = [
        [
            device.title,
            f"{units.binary(device.memory_bytes)} = {units.decimal(device.memory_bytes)}",
            f"{units.decimal(device.bandwidth_bytes_per_s)}/s",
            f"{device.source}; {device.memory_source}",
            device.verified.get(ctx.lang),
        ]
        for device in devices().values()
    ]
    return _table(head, rows, ctx.t("sources-devices-caption"), mark, num_text=2)


def _table(head: list[str], rows: list[list[str]], caption: str, mark: str, num_text: int = 0) -> str:
    """A table with its caption and origin; the last `num_text` columns are running text, the others numbers."""

    def cell(tag: str, column: int, words: str, scope: str = "") -> str:
        text = ' class="is-text"' if column >= len(head) - num_text else ""
        return f"<{tag}{text}{scope}>{escape(words)}</{tag}>"

    top = "".join(cell("th", column, words, ' scope="col"') for column, words in enumerate(head))
    body = ""
    for first, *others in rows:
        cells = "".join(cell("td", column, words) for column, words in enumerate(others, start=1))
        body += f"<tr>{cell('th', 0, first, ROW)}{cells}</tr>"
    return (
        f'<p class="kv-note">{escape(caption)} {mark}</p>'
        f'<div class="kv-table-wrap" tabindex="0" role="region" aria-label="{escape(caption, quote=True)}">'
        f'<table class="kv-table cs-table"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def build(ctx: Ctx) -> None:
    """Fill the page."""
    heading(ctx)
    explorable(ctx, "cache-size", widget_props(ctx.lang), "cache-size")
    question(ctx, "ask")
    prose(ctx, "growth")
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
    html(sources_tables(ctx))
    question(ctx, "next")


PAGE = Page("cache-size", 2, 1, Text("Cache size", "缓存有多大"), build)

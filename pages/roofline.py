"""Roofline: what sets the pace of a step, arithmetic or memory, and why more requests do not help attention."""

from html import escape
from typing import Any

from explorer.estimators.roofline import ridge
from explorer.measuring.record import Origin
from explorer.specs import units
from explorer.specs.catalog import devices
from explorer.text import Lang, Text
from pages._badge import MARKS, WORDS
from pages._blocks import badge, boundaries, columns, heading, html, prose, question, subheading
from pages._explorable import explorable
from pages._lab_panel import lab_panel
from pages._page import Ctx, Page

# The shape of Llama 3 70B on an H100, 16 requests of 8,192 tokens.
START = {
    "device": "h100-sxm-80gb",
    "batch": 16,
    "tokens": 8_192,
    "width": 8_192,
    "heads": 64,
    "kv_heads": 8,
    "head_dim": 128,
    "stored": 2,
}
LIMITS = {"batch": (1, 1_024), "tokens": (1, 2**20), "width": (512, 32_768)}
HEADS = (1, 2, 4, 8, 16, 32, 64, 128)
HEAD_DIMS = (64, 128, 256)
SHORT, LONG, MANY = 1_024, 131_072, 64


def widget_props(lang: Lang) -> dict[str, Any]:
    """What the browser computes from; only devices whose arithmetic is known for certain."""
    return {
        "start": START,
        "limits": {name: list(ends) for name, ends in LIMITS.items()},
        "heads": list(HEADS),
        "head_dims": list(HEAD_DIMS),
        "latent": 512,
        "position": 64,
        "short": SHORT,
        "long": LONG,
        "many": MANY,
        "devices": [
            {"name": item.name, "title": item.title, "flops": item.bf16_flops, "bandwidth": item.bandwidth_bytes_per_s}
            for item in devices().values()
            if item.bf16_flops is not None
        ],
        "badge": {"mark": MARKS[Origin.COMPUTED], "word": WORDS[Origin.COMPUTED].get(lang)},
    }


def ridges_table(ctx: Ctx) -> str:
    """Each device's peak arithmetic, peak bandwidth, and the intensity at which they meet."""
    head = [ctx.t(f"ridges-{name}") for name in ("device", "flops", "bandwidth", "ridge", "source")]
    rows = ""
    for item in devices().values():
        if item.bf16_flops is None:
            continue
        point = float(ridge(item.bf16_flops, item.bandwidth_bytes_per_s))
        cells = (
            f"{item.bf16_flops / 1e12:g} TFLOP/s",
            f"{units.decimal(item.bandwidth_bytes_per_s)}/s",
            f"{point:.0f}",
        )
        numbers = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        source = f'<td class="is-text">{escape(f"{item.source}; {item.flops_source}")}</td>'
        rows += f'<tr><th scope="row">{escape(item.title)}</th>{numbers}{source}</tr>'
    text = ' class="is-text"'
    top = "".join(f'<th scope="col"{text if name == head[-1] else ""}>{escape(name)}</th>' for name in head)
    caption, marks = ctx.t("ridges-caption"), f"{badge(Origin.QUOTED, ctx.lang)} {badge(Origin.COMPUTED, ctx.lang)}"
    return (
        f'<p class="kv-note">{escape(caption)} {marks}</p>'
        f'<div class="kv-table-wrap" tabindex="0" role="region" aria-label="{escape(caption, quote=True)}">'
        f'<table class="kv-table rf-table"><thead><tr>{top}</tr></thead><tbody>{rows}</tbody></table></div>'
    )


def build(ctx: Ctx) -> None:
    """Fill the page."""
    heading(ctx)
    explorable(ctx, "roofline", widget_props(ctx.lang), "roofline")
    question(ctx, "ask")
    prose(ctx, "roof")
    subheading(ctx, "weights-title")
    prose(ctx, "weights")
    subheading(ctx, "attention-title")
    left, right = columns()
    with left:
        prose(ctx, "attention")
    with right:
        prose(ctx, "why")
    prose(ctx, "latent")
    question(ctx, "ask-latent")
    subheading(ctx, "measure-title")
    prose(ctx, "measure")
    lab_panel(ctx, "roofline-device")
    subheading(ctx, "ridges-title")
    html(ridges_table(ctx))
    prose(ctx, "ridges")
    boundaries(ctx, "limits")
    question(ctx, "next")


PAGE = Page("roofline", 4, 1, Text("Roofline", "Roofline 模型"), build)

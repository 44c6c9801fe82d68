"""What the vLLM paper measured, as a table, and the made-up mixes of requests that the block-size figure lays out."""

import random
from html import escape

from explorer.measuring.record import Origin
from pages._blocks import badge
from pages._page import Ctx

# arXiv:2309.06180, figure 2: percent of the KV cache memory; rounded there, so rows add up to 99.9 or 100.
# Token states, reservation, internal fragmentation, external fragmentation and others; None: not labelled there.
MEASURED: tuple[tuple[str, float, float | None, float | None, float | None], ...] = (
    ("Orca (Max)", 20.4, 13.3, 57.3, 8.9),
    ("Orca (Pow2)", 26.8, 17.9, 13.6, 41.6),
    ("Orca (Oracle)", 38.2, 25.2, None, 36.6),
    ("vLLM", 96.3, None, None, None),
)


def lengths(count: int, low: int, high: int) -> list[int]:
    """`count` lengths from `low` to `high` tokens, as many short as long ones by factors; always the same ones."""
    draw = random.Random(f"{count} {low} {high}")
    return [round(low * (high / low) ** draw.random()) for _ in range(count)]


MIXES = {"chat": lengths(64, 20, 900), "short": lengths(64, 5, 120), "long": lengths(16, 4_000, 30_000)}


def waste_table(ctx: Ctx) -> str:
    """Where the memory of four systems went."""
    names = ("system", "used", "reserved", "internal", "external")
    top = "".join(f'<th scope="col">{escape(ctx.t(f"waste-{name}"))}</th>' for name in names)
    body = "".join(
        f'<tr><th scope="row">{escape(name)}</th>'
        + "".join(f"<td>{'–' if value is None else f'{value:.1f}'}</td>" for value in values)
        + "</tr>"
        for name, *values in MEASURED
    )
    caption = ctx.t("waste-caption")
    return (
        f'<p class="kv-note">{escape(caption)} {badge(Origin.QUOTED, ctx.lang)}</p>'
        f'<div class="kv-table-wrap" tabindex="0" role="region" aria-label="{escape(caption, quote=True)}">'
        f'<table class="kv-table"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'
    )

"""The tables of the page "FlashAttention": prefill beside decode, the papers' figures, and what other methods cut."""

from html import escape

from explorer.measuring.record import Origin
from pages._blocks import badge
from pages._page import Ctx

PHASE_ROWS = ("lengths", "scores", "watch", "gain")
# One row a figure: what was compared, the figure, its conditions, its source. Checked against the papers' own tables.
QUOTED_ROWS = ("fa1-attention", "fa1-training", "fa2-kernel", "fa2-training", "fa3-kernel", "fa3-fp8")
OTHER_ROWS = ("heads", "latent", "bits", "paged", "flash")


def phases_table(ctx: Ctx) -> str:
    """Prefill against decode."""
    return _words(ctx, "stage", PHASE_ROWS, ("prefill", "decode"))


def quoted_table(ctx: Ctx) -> str:
    """What the three papers report, with what they measured it on."""
    return _words(ctx, "quoted", QUOTED_ROWS, ("figure", "conditions", "source"), badge(Origin.QUOTED, ctx.lang))


def others_table(ctx: Ctx) -> str:
    """What each method makes smaller."""
    return _words(ctx, "other", OTHER_ROWS, ("aim", "cache"))


def _words(ctx: Ctx, name: str, rows: tuple[str, ...], columns: tuple[str, ...], marks: str = "") -> str:
    """A table of words; its texts are the page's strings `<name>-<row>` and `<name>-<row>-<column>`."""
    head = "".join(f'<th scope="col">{escape(ctx.t(f"{name}-{column}"))}</th>' for column in ("what", *columns))
    body = "".join(
        f'<tr><th scope="row">{escape(ctx.t(f"{name}-{row}"))}</th>'
        + "".join(f"<td>{escape(ctx.t(f'{name}-{row}-{column}'))}</td>" for column in columns)
        + "</tr>"
        for row in rows
    )
    caption = ctx.t(f"{name}-caption")
    return (
        f'<p class="kv-note">{escape(caption)} {marks}</p>'
        f'<div class="kv-table-wrap" tabindex="0" role="region" aria-label="{escape(caption, quote=True)}">'
        f'<table class="kv-table is-text fa-words"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )

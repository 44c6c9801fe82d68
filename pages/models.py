"""Models: what each model keeps of the past, side by side, and the proof that the numbers are those of a real cache."""

from html import escape

from explorer.specs.catalog import left_out
from explorer.text import Text
from pages._blocks import boundaries, heading, html, prose, question, subheading
from pages._explorable import explorable
from pages._lab_panel import lab_panel
from pages._page import Ctx, Page
from pages.models_rows import table_props


def left_out_list(ctx: Ctx) -> str:
    """Models that the documents name and that have no row, each with its reason."""
    items = "".join(
        f"<li><b>{escape(title)}</b>: {escape(reason.get(ctx.lang))}</li>" for title, reason in left_out().values()
    )
    return f'<p class="kv-note">{escape(ctx.t("left-out"))}</p><ul class="kv-note ml-left-out">{items}</ul>'


def build(ctx: Ctx) -> None:
    """Fill the page."""
    heading(ctx)
    explorable(ctx, "models", table_props(ctx), "models-table")
    html(left_out_list(ctx))
    question(ctx, "ask")
    prose(ctx, "reading")
    subheading(ctx, "proof-title")
    prose(ctx, "proof")
    lab_panel(ctx, "estimate-proof")
    prose(ctx, "see")
    boundaries(ctx, "limits")
    question(ctx, "next")


PAGE = Page("models", 1, 5, Text("Models", "各家模型"), build)

"""The blocks that a page is made of. Everything a page author needs, one example each.

    def build(ctx: Ctx) -> None:
        heading(ctx)                                   # part, <h1> (string "headline"), opening lines (section "lede")
        left, right = columns()                        # figure beside text; on a phone the figure comes first
        with left:
            explorable(ctx, "cache-size", {"layers": 32}, "size-figure")
        with right:
            prose(ctx, "growth")                       # Markdown with $...$ and $$...$$, [[computed]], (page:attention)
            question(ctx, "ask")                       # the question that the figure's controls can answer
        subheading(ctx, "measure-title")               # <h2> from the page's strings
        boundaries(ctx, "limits")                      # "What this does not say"

`badge(Origin.MEASURED, ctx.lang)` is an HTML string; `html(markup)` shows trusted markup (escape what is not yours);
`legend(ctx)` is the key to the five origins. Figures: `pages._figure.figure`. Browser-side widgets:
`pages._explorable.explorable` and `assets/js/kv.js`. A page's own styles: `assets/css/<slug>.css` (joined to the rest).

Classes for own markup: `kv-card` (a figure's frame), `kv-note` (small grey text), `kv-num` (tabular numbers), `kv-sr`
(for screen readers only), `kv-table` (numbers to the right; `is-text` for words), `kv-q kv-k kv-v kv-c kv-s` (tensor
fills; with `kv-tensor` a small label), `kv-blk` with `is-used is-free is-shared is-idle is-evicted`, `kv-button`.
Colours are CSS variables, the same in light and dark: assets/css/kv-1-tokens.css.
"""

from html import escape

import gradio as gr

from explorer.measuring.record import Origin
from pages import _content
from pages._badge import MEANINGS, badge
from pages._page import Ctx

__all__ = ["badge", "boundaries", "columns", "heading", "html", "legend", "prose", "question", "subheading"]

_MATH: list[dict[str, str | bool]] = [
    {"left": "$$", "right": "$$", "display": True},
    {"left": "$", "right": "$", "display": False},
]


def html(markup: str, *, elem_id: str | None = None, classes: str = "") -> gr.HTML:
    """Trusted markup. Never give it a visitor's text; escape every value that is not a constant of ours."""
    return gr.HTML(
        markup,
        elem_id=elem_id,
        elem_classes=["kv-html", *classes.split()],
        js_on_load=None,
        apply_default_css=False,
    )


def heading(ctx: Ctx) -> None:
    """The top of a page: its part, its only `<h1>` (string `headline`) and its opening lines (section `lede`)."""
    part = ""
    if ctx.page.part:
        name = _content.label("frame", ctx.lang, f"part.{ctx.page.part}")
        place = _content.label("frame", ctx.lang, "part.place").format(part=ctx.page.part, name=name)
        part = f'<p class="kv-part">{escape(place)}</p>'
    html(f"{part}<h1>{escape(ctx.t('headline'))}</h1>", classes="kv-heading")
    _markdown(ctx.section("lede"), "kv-lede")


def subheading(ctx: Ctx, key: str) -> None:
    """An `<h2>` from the page's strings; its anchor is `#<key>`."""
    html(f'<h2 id="{escape(key, quote=True)}">{escape(ctx.t(key))}</h2>', classes="kv-subheading")


def prose(ctx: Ctx, section: str) -> None:
    """A section of running text, with formulas, badges and page links."""
    _markdown(ctx.section(section), "kv-prose")


def question(ctx: Ctx, section: str) -> None:
    """The question that ends a figure and that its controls can answer."""
    _markdown(ctx.section(section), "kv-ask")


def boundaries(ctx: Ctx, section: str) -> None:
    """What the page does not say: the caveats, set apart."""
    title = _content.label("frame", ctx.lang, "boundaries")
    with gr.Column(elem_classes="kv-bounds", min_width=0):
        html(f"<h2>{escape(title)}</h2>")
        _markdown(ctx.section(section), "kv-prose")


def columns() -> tuple[gr.Column, gr.Column]:
    """A wide column for the figure and a narrow one for the text; fill them with `with left:` and `with right:`."""
    with gr.Row(elem_classes="kv-two"):
        left = gr.Column(elem_classes="kv-two-figure", min_width=0)
        right = gr.Column(elem_classes="kv-two-text", min_width=0)
    return left, right


def legend(ctx: Ctx) -> None:
    """The key to the five origins."""
    rows = "".join(
        f"<dt>{badge(origin, ctx.lang)}</dt><dd>{escape(MEANINGS[origin].get(ctx.lang))}</dd>" for origin in Origin
    )
    html(f'<dl class="kv-legend">{rows}</dl>')


def _markdown(text: str, classes: str) -> gr.Markdown:
    return gr.Markdown(text, latex_delimiters=_MATH, elem_classes=classes.split(), container=False)

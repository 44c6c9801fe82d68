"""A Plotly figure drawn by our own copy of plotly.js: frames and zoom are kept, light and dark followed.

    chart = figure(fig, alt=ctx.t("alt"), description=ctx.t("text"), height=320, lang=ctx.lang, elem_id="growth")
    slider.input(update, slider, chart, show_progress="hidden", api_visibility="private")  # update: as_value(fig)

Colours may be written as CSS variables ("var(--q)", "var(--series-1)"); the page resolves them for light and dark.
Axis titles with units are the author's. Frames get the explorer's own player (play, pause, step, scrub, keyboard).
"""

import json
from typing import Any

import gradio as gr
import plotly.graph_objects as go

from explorer.text import Lang

# Constant: nothing of the figure passes through the template, so no text in a figure can become code.
_TEMPLATE = (
    '<figure class="kv-figure" role="group"><div class="kv-plot" data-renders="0"></div>'
    "<figcaption></figcaption></figure>"
)
_MOUNT = "KV.mountFigure(element, props, watch)"


def figure(
    value: go.Figure | dict[str, Any] | None,
    *,
    alt: str,
    description: str,
    height: int = 340,
    lang: Lang,
    elem_id: str,
) -> gr.HTML:
    """A figure component; as an event's output it takes what `as_value` returns.

    Args:
        value: the figure, or a dict with `data`, `layout`, `frames`; None draws nothing yet.
        alt: its short name, read by a screen reader.
        description: what it shows in words; stands below it as the caption.
        height: pixels.
        lang: the language of plotly's own tool tips.
        elem_id: its id in the page.
    """
    return gr.HTML(
        as_value(value),
        html_template=_TEMPLATE,
        js_on_load=_MOUNT,
        apply_default_css=False,
        elem_id=elem_id,
        elem_classes=["kv-html"],
        figure={"alt": alt, "description": description, "height": height, "lang": lang},
    )


def as_value(value: go.Figure | dict[str, Any] | None, description: str | None = None) -> dict[str, Any] | None:
    """What a handler returns for a `figure`: plain JSON, without plotly's 6 KB default template.

    Args:
        value: the figure.
        description: a new caption, if the words change with the figure.
    """
    if value is None:
        return None
    plain = json.loads(value.to_json()) if isinstance(value, go.Figure) else dict(value)
    plain["layout"] = {key: item for key, item in plain.get("layout", {}).items() if key != "template"}
    if description is not None:
        plain["description"] = description
    return plain

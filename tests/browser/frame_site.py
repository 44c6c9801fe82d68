"""A stand-in site for the frame's browser tests: `python -m tests.browser.frame_site PORT COUNT`.

Every page uses every part of the frame, with hostile text in the data; 16 pages are the size that the site will have.
"""

import shutil
import sys
import tempfile
from pathlib import Path

import gradio as gr
import plotly.graph_objects as go

from explorer.text import Text
from pages import _blocks, _content
from pages._explorable import explorable
from pages._figure import as_value, figure
from pages._page import Ctx, Page
from pages._site import build_site, launch_options

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
HOSTILE = '${window.pwned=1}{{window}}</script><img src=x onerror="window.pwned=1">`\\u{1F600}'


def lines(slope: float) -> go.Figure:
    """Two lines with axis titles."""
    xs = list(range(10))
    return go.Figure(
        [
            go.Scatter(x=xs, y=[slope * x for x in xs], name=HOSTILE, mode="lines+markers"),
            go.Scatter(x=xs, y=[9 - x for x in xs], name="b", mode="lines+markers", line={"color": "var(--q-ink)"}),
        ],
        {"xaxis": {"title": "tokens"}, "yaxis": {"title": "ms"}},
    )


def moving() -> dict:
    """A figure with frames."""
    return {
        "data": [{"type": "scatter", "x": [0], "y": [0], "mode": "markers"}],
        "layout": {"xaxis": {"range": [-1, 5]}, "yaxis": {"range": [-1, 5]}},
        "frames": [{"name": f"{i}", "data": [{"x": [i], "y": [i]}]} for i in range(4)],
    }


def build(ctx: Ctx) -> None:
    """Everything once."""
    _blocks.heading(ctx)
    left, right = _blocks.columns()
    with left:
        widget = explorable(ctx, "stand-in", {"perToken": 1024, "hostile": HOSTILE}, "widget")
    with right:
        _blocks.prose(ctx, "text")
        _blocks.question(ctx, "ask")
    _blocks.subheading(ctx, "figures")
    slope = gr.Slider(1, 9, 3, step=1, label=ctx.t("slider"), elem_id="slope")
    gr.Textbox(label=ctx.t("prompt"), elem_id="prompt")
    chart = figure(
        lines(3), alt=ctx.t("figure"), description=ctx.t("figure-text"), height=300, lang=ctx.lang, elem_id="chart"
    )
    slope.input(lambda k: as_value(lines(k)), slope, chart, show_progress="hidden", api_visibility="private")
    figure(moving(), alt=HOSTILE, description=ctx.t("frames-text"), height=260, lang=ctx.lang, elem_id="frames")
    again = gr.Button(ctx.t("again"), elem_id="again")
    again.click(lambda: {"perToken": 1, "hostile": HOSTILE + "2"}, None, widget, api_visibility="private")
    _blocks.html(f"<p id='value-template'>{_blocks.escape(HOSTILE)}</p>")
    _blocks.legend(ctx)
    _blocks.boundaries(ctx, "limits")


def stand_ins(count: int) -> tuple[Page, ...]:
    """`count` pages in all, the first being the home page."""
    texts = [Text("Everything", "全部部件"), *(Text(f"Page {i}", f"第 {i} 页") for i in range(1, count))]
    return tuple(
        Page(f"stand-in-{i}" if i else "", i, min(6, (i + 2) // 3), title, build) for i, title in enumerate(texts)
    )


def overlay(folder: Path, count: int) -> None:
    """The project's assets with the stand-in's texts, one pair of files a page."""
    for kind in ("css", "js", "strings", "content"):
        shutil.copytree(ROOT / "assets" / kind, folder / kind)
        if (HERE / "frame_assets" / kind).is_dir():
            shutil.copytree(HERE / "frame_assets" / kind, folder / kind, dirs_exist_ok=True)
    for kind, ext in (("strings", "json"), ("content", "md")):
        for lang in ("en", "zh"):
            source = folder / kind / lang / f"stand-in.{ext}"
            for page in stand_ins(count):
                shutil.copy(source, source.with_name(f"{page.name}.{ext}"))


def main(port: int, count: int) -> None:
    """Serve the stand-in site until it is killed."""
    with tempfile.TemporaryDirectory() as folder:
        overlay(Path(folder), count)
        _content.ASSETS = Path(folder)
        pages = stand_ins(count)
        site = build_site(pages).queue(max_size=64, default_concurrency_limit=16)
        site.launch(server_port=port, **launch_options(pages))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))

"""The engine: is what the other pages measure computed rightly, and how near is it to what the memory allows?"""

from explorer.text import Text
from pages._blocks import boundaries, heading, prose, question, subheading
from pages._lab_panel import lab_panel
from pages._page import Ctx, Page


def build(ctx: Ctx) -> None:
    """Fill the page."""
    heading(ctx)
    subheading(ctx, "speed-title")
    prose(ctx, "bound")
    lab_panel(ctx, "decode-speed")
    question(ctx, "ask-speed")
    subheading(ctx, "batch-title")
    prose(ctx, "batch")
    lab_panel(ctx, "batch-decode")
    question(ctx, "ask-batch")
    subheading(ctx, "kernels-title")
    prose(ctx, "kernels")
    lab_panel(ctx, "kernel-speed")
    question(ctx, "ask-kernels")
    subheading(ctx, "parity-title")
    prose(ctx, "parity")
    lab_panel(ctx, "engine-parity")
    subheading(ctx, "made-title")
    prose(ctx, "made")
    boundaries(ctx, "limits")
    question(ctx, "next")


PAGE = Page("engine", 3, 1, Text("The engine, measured", "实测推理引擎"), build)

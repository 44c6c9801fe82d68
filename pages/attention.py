"""Attention and its cache."""

from explorer.text import Text
from pages._blocks import heading
from pages._page import Ctx, Page


def build(ctx: Ctx) -> None:
    """Fill the page."""
    heading(ctx)


PAGE = Page("attention", 1, 1, Text("Attention and its cache", "Attention 与它的缓存"), build)

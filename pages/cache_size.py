"""Cache size."""

from explorer.text import Text
from pages._blocks import heading
from pages._page import Ctx, Page


def build(ctx: Ctx) -> None:
    """Fill the page."""
    heading(ctx)


PAGE = Page("cache-size", 2, 1, Text("Cache size", "缓存有多大"), build)

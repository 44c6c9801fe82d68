"""The explorer's pages. `PAGES` is the table of contents: explicit, in reading order, one module a page."""

from pages import (
    attention,
    cache_size,
    engine,
    flash_attention,
    heads,
    home,
    models,
    paged_attention,
    roofline,
    worked_example,
)
from pages._page import Page

PAGES: tuple[Page, ...] = (
    home.PAGE,
    attention.PAGE,
    cache_size.PAGE,
    engine.PAGE,
    roofline.PAGE,
    heads.PAGE,
    flash_attention.PAGE,
    paged_attention.PAGE,
    models.PAGE,
    worked_example.PAGE,
)

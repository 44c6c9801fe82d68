"""The explorer's pages. `PAGES` is the table of contents: explicit, in reading order, one module a page."""

from pages import attention, cache_size, engine, heads, home, models, roofline, worked_example
from pages._page import Page

PAGES: tuple[Page, ...] = (
    home.PAGE,
    attention.PAGE,
    cache_size.PAGE,
    engine.PAGE,
    roofline.PAGE,
    heads.PAGE,
    models.PAGE,
    worked_example.PAGE,
)

"""The site: every page in both languages on its own route of one `gr.Blocks`, and what `launch` needs to serve it."""

from itertools import product
from typing import Any

import gradio as gr
from starlette.middleware import Middleware

from explorer.text import LANGUAGES
from pages._api import add_api
from pages._assets import AssetServer
from pages._body_limit import BodyLimit
from pages._document import TITLE_MARK, Documents
from pages._page import Ctx, Page
from pages._sessions import CAPACITY, KeepsLittle
from pages._theme import theme


def build_site(pages: tuple[Page, ...]) -> gr.Blocks:
    """All pages in both languages; the first page is the home page.

    Raises:
        ValueError: no home page at the front, pages out of reading order, or an address that is taken.
        KeyError: a page lacks a text.
    """
    _check(pages)
    site = gr.Blocks(title=TITLE_MARK, analytics_enabled=False)
    for page, lang in product(pages, LANGUAGES):
        if path := page.path(lang):
            site.route(page.title.get(lang), path)
    wrong = [path for path, *_ in site.pages if path.startswith("_")]
    if wrong:
        raise ValueError(f"these addresses are taken: {', '.join(wrong)}")
    # Gradio's way, one `with site.route(...)` a page, works out the whole configuration again for each of them: with 16
    # pages in two languages that takes 15 times as long as entering once.
    with site:
        for page, lang in product(pages, LANGUAGES):
            site.current_page = page.path(lang)
            gr.Navbar(visible="hidden")  # type: ignore[arg-type]  # False does not hide it
            page.build(Ctx(lang, page, site, pages))
        site.current_page = ""
        add_api()
        _check_load_events(site)
    return site


def _check(pages: tuple[Page, ...]) -> None:
    if not pages or pages[0].slug:
        raise ValueError("the first page must be the home page (slug '')")
    places = [(page.part, page.order) for page in pages]
    if places != sorted(set(places)):
        raise ValueError(f"pages must stand in reading order, one page a place: {places}")


def _check_load_events(site: gr.Blocks) -> None:
    """Refuse what Gradio attaches when `site` is left: it would run on the last page."""
    for block in site.blocks.values():
        if getattr(block, "load_event_to_attach", None):
            raise ValueError(f"page {block.page!r}: a component's value is a function; use ctx.blocks.load instead")


def launch_options(pages: tuple[Page, ...]) -> dict[str, Any]:
    """Keyword arguments for `launch`: safe for the open internet, offline, with our documents and assets."""
    return {
        "run_history": False,
        "ssr_mode": False,
        "pwa": False,
        "mcp_server": False,
        "share": False,
        "footer_links": [],
        "show_error": False,
        "enable_monitoring": False,
        "max_file_size": "1kb",
        "state_session_capacity": CAPACITY,
        "quiet": True,
        "theme": theme(),
        "app_kwargs": {
            "middleware": [
                Middleware(BodyLimit),
                Middleware(KeepsLittle),
                Middleware(AssetServer),
                Middleware(Documents, pages=pages),
            ]
        },
    }

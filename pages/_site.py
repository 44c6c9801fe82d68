"""The site: every page in both languages on its own route of one `gr.Blocks`, and what `launch` needs to serve it."""

from typing import Any

import gradio as gr
from starlette.middleware import Middleware

from explorer.text import LANGUAGES
from pages._assets import AssetServer
from pages._document import TITLE_MARK, Documents
from pages._page import Ctx, Page
from pages._theme import theme


def build_site(pages: tuple[Page, ...]) -> gr.Blocks:
    """All pages in both languages; the first page is the home page.

    Raises:
        ValueError: no home page at the front, pages out of reading order, or an address that is taken.
        KeyError: a page lacks a text.
    """
    _check(pages)
    with gr.Blocks(title=TITLE_MARK, analytics_enabled=False) as site:
        _fill(pages[0], "en", site, pages)
    for page in pages:
        for lang in LANGUAGES:
            if path := page.path(lang):
                with site.route(page.title.get(lang), path) as blocks:
                    _fill(page, lang, blocks, pages)
    wrong = [path for path, *_ in site.pages if path.startswith("_")]
    if wrong:
        raise ValueError(f"these addresses are taken: {', '.join(wrong)}")
    return site


def _check(pages: tuple[Page, ...]) -> None:
    if not pages or pages[0].slug:
        raise ValueError("the first page must be the home page (slug '')")
    places = [(page.part, page.order) for page in pages]
    if places != sorted(set(places)):
        raise ValueError(f"pages must stand in reading order, one page a place: {places}")


def _fill(page: Page, lang: Any, blocks: gr.Blocks, pages: tuple[Page, ...]) -> None:
    gr.Navbar(visible="hidden")
    page.build(Ctx(lang, page, blocks, pages))


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
        "quiet": True,
        "theme": theme(),
        "app_kwargs": {"middleware": [Middleware(AssetServer), Middleware(Documents, pages=pages)]},
    }

"""What must hold on every page of the explorer, in both languages. A new page is covered as soon as it is in PAGES."""

import json
import re
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page as Tab

from explorer.text import LANGUAGES, Lang
from pages import PAGES
from pages._page import HTML_LANG, Page
from tests.browser.serving import ROOT
from tests.browser.watching import Visitor

COLD_BYTES = 2_500_000
EVERY_PAGE = [pytest.param(page, lang, id=f"{page.name}-{lang}") for page in PAGES for lang in LANGUAGES]


@pytest.mark.parametrize(("page", "lang"), EVERY_PAGE)
def test_a_page_is_whole(page: Page, lang: Lang, visit: Visitor, axe: Callable[[Tab], None]) -> None:
    opened = visit(page.path(lang), fresh=True)
    tab = opened.page
    # Something that the page loads late still counts as a cold page's weight.
    tab.wait_for_load_state("load")
    assert tab.evaluate("document.documentElement.lang") == HTML_LANG[lang]
    assert page.title.get(lang) in tab.title() or not page.slug
    assert tab.locator("h1").count() == 1
    assert tab.locator('.kv-toc [aria-current="page"]').inner_text() == page.title.get(lang)
    assert "__i18n__" not in tab.content()
    axe(tab)
    tab.click("#kv-theme")
    assert tab.evaluate("document.documentElement.dataset.theme") == "dark"
    tab.wait_for_timeout(300)
    axe(tab)
    assert opened.wire_bytes < COLD_BYTES, f"{opened.wire_bytes:,} bytes on the wire"


# A ring may stand around the control itself, what holds it, or its label.
WITHOUT_RING = """() => [...document.querySelectorAll(
        'a[href], button, input, select, textarea, summary, [tabindex="0"]')]
    .filter((n) => n.offsetParent && !n.disabled && n.tabIndex >= 0)
    .filter((n) => {
        n.focus();
        const near = [n, n.parentElement, n.parentElement.parentElement, n.nextElementSibling].filter(Boolean);
        const drawn = (s) => s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 1.5;
        return document.activeElement === n && !near.some((e) => drawn(getComputedStyle(e)));
    }).map((n) => n.outerHTML.slice(0, 120))"""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_has_the_focus_shows_it(page: Page, visit: Visitor) -> None:
    tab = visit(page.path("en")).page
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.matches(':focus-visible')")
    assert tab.evaluate(WITHOUT_RING) == []


@pytest.mark.parametrize(("page", "lang"), EVERY_PAGE)
def test_a_page_fits_a_phone(page: Page, lang: Lang, visit: Visitor, axe: Callable[..., None]) -> None:
    tab = visit(page.path(lang), width=390, height=800).page
    tab.wait_for_timeout(500)
    wide = tab.evaluate(
        """() => [...document.querySelectorAll('body *')].filter(n => {
            for (let a = n; a && a !== document.body; a = a.parentElement) {
                const s = getComputedStyle(a);
                if (s.overflowX !== 'visible' || s.clipPath !== 'none' || s.position === 'fixed') return false;
            }
            return n.getBoundingClientRect().right > innerWidth + 1;
        }).slice(0, 5).map(n => n.outerHTML.slice(0, 120))"""
    )
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390, wide
    tab.click("#kv-menu")
    assert tab.locator(".kv-toc").is_visible()
    axe(tab, contrast=False)
    tab.keyboard.press("Escape")
    assert not tab.locator(".kv-toc").is_visible()


def test_previous_and_next_visit_every_page_in_order(visit: Visitor) -> None:
    tab = visit("").page
    for page in PAGES[1:]:
        tab.click(".kv-next")
        tab.wait_for_url(f"**/{page.slug}")
        tab.wait_for_selector("h1")
    for page in reversed(PAGES[:-1]):
        tab.click(".kv-prev")
        tab.wait_for_url(f"**/{page.slug}")
        tab.wait_for_selector("h1")


def test_no_path_of_this_machine_is_told(app_url: str) -> None:
    pattern = re.compile(
        r"(?<![\w.])/(?:root|home|work|tmp|usr|opt|var|Users)/|site-packages|" + re.escape(str(Path.home()))
    )
    pages = [page.path(lang) for page in PAGES for lang in LANGUAGES]
    for path in (*pages, "config", "gradio_api/info", "openapi.json"):
        with urllib.request.urlopen(app_url + path) as answer:
            text = answer.read().decode()
        assert str(ROOT) not in text
        found = [text[max(0, m.start() - 60) : m.end() + 60] for m in pattern.finditer(text)]
        assert not found, f"{path}: {json.dumps(found[:3])}"

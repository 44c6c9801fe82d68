"""The frame in a real browser, on a stand-in site of 16 pages: switches, controls, formulas, hostile text."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page as Tab

from explorer.specs import units
from tests.browser.watching import Visitor, drawn, query

PATHS = ["", "zh-home"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_part_is_accessible(path: str, theme: str, site: Visitor, axe: Callable[[Tab], None]) -> None:
    opened = site(path, theme=theme, fresh=True)
    drawn(opened.page, "chart")
    drawn(opened.page, "frames")
    assert opened.page.evaluate("document.documentElement.dataset.theme") == theme
    axe(opened.page)
    assert opened.wire_bytes < 2_500_000, f"{opened.wire_bytes:,} bytes with plotly"


def test_every_part_fits_a_phone_with_readable_figures(site: Visitor) -> None:
    tab = site("zh-home", width=390, height=800).page
    drawn(tab, "chart")
    drawn(tab, "frames")
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    sizes = tab.evaluate(
        "[...document.querySelectorAll('.kv-plot svg text')].filter(t => t.textContent.trim()).map(t => {"
        "const m = t.getScreenCTM(); return parseFloat(getComputedStyle(t).fontSize) * Math.hypot(m.a, m.b); })"
    )
    assert len(sizes) > 10 and min(sizes) >= 12


def test_hostile_text_stays_text(site: Visitor) -> None:
    hostile = '${window.pwned=1}{{window}}</script><img src=x onerror="window.pwned=1">`\\u{1F600}'
    tab = site("").page
    drawn(tab, "frames")
    assert tab.inner_text(".hostile") == hostile
    assert tab.inner_text("#value-template") == hostile
    assert tab.get_attribute("#frames figure", "aria-label") == hostile
    tab.click("#again")
    tab.wait_for_function("document.querySelector('.hostile').textContent.endsWith('2')")
    assert tab.evaluate("window.pwned") is None
    assert tab.locator("img[src=x]").count() == 0


def test_the_theme_follows_the_system_until_the_reader_chooses(site: Visitor) -> None:
    tab = site("stand-in-1", theme="dark").page
    background = "getComputedStyle(document.body).backgroundColor"
    dark = tab.evaluate(background)
    tab.emulate_media(color_scheme="light")
    tab.wait_for_function(f"{background} !== '{dark}'")
    node = tab.evaluate_handle("document.querySelector('h1')")
    assert tab.inner_text("#kv-theme") == "Dark"
    tab.click("#kv-theme")
    assert tab.evaluate(background) == dark and tab.inner_text("#kv-theme") == "Light"
    assert tab.evaluate("n => n.isConnected", node), "the switch must not reload the page"
    tab.click(".kv-next")
    tab.wait_for_url("**/stand-in-2")
    # Right from the start: asked before Gradio has mounted anything.
    assert tab.evaluate(background) == dark
    tab.wait_for_selector("h1")
    assert tab.evaluate(background) == dark and tab.evaluate("document.body.classList.contains('dark')")


def test_a_theme_in_the_address_wins(site: Visitor) -> None:
    tab = site("?__theme=dark").page
    assert tab.evaluate("document.documentElement.dataset.theme") == "dark"
    tab.click("#kv-theme")
    assert tab.evaluate("document.documentElement.dataset.theme") == "light"
    assert query(tab) == {"__theme": "light"}


def test_the_language_switch_keeps_the_page_and_its_state(site: Visitor) -> None:
    tab = site("stand-in-3?other=1").page
    tab.locator("[data-control=batch]").fill("7")
    tab.click("#kv-language")
    tab.wait_for_url("**/zh-stand-in-3?other=1&batch=7")
    tab.wait_for_selector("[data-control=batch]")
    assert tab.input_value("[data-control=batch]") == "7"
    assert tab.evaluate("document.documentElement.lang") == "zh-CN"
    tab.locator("#kv-language").focus()
    tab.keyboard.press("Enter")
    tab.wait_for_url(re.compile(r"/stand-in-3\?other=1&batch=7$"))


@pytest.mark.parametrize(("locale", "path", "word"), [("zh-CN", "", "en"), ("en-US", "zh-home", "zh-CN")])
def test_gradios_own_language_follows_the_route(locale: str, path: str, word: str, site: Visitor) -> None:
    tab = site(path, locale=locale).page
    assert tab.evaluate("[navigator.language, navigator.languages[0], document.documentElement.lang]") == [word] * 3
    titles = tab.evaluate("[...document.querySelectorAll('.modebar-btn')].map(b => b.dataset.title)")
    drawn(tab, "chart")
    titles = tab.evaluate("[...document.querySelectorAll('#chart .modebar-btn')].map(b => b.dataset.title)")
    assert ("放大" in titles) == (word == "zh-CN") and ("Zoom in" in titles) == (word == "en")


def test_controls_write_the_address_and_read_it_back(site: Visitor) -> None:
    tab = site("").page
    assert query(tab) == {} and tab.inner_text("#size") == "8.00 MiB"
    slider = tab.locator("input[type=range][data-control=tokens]")
    slider.focus()
    tab.keyboard.press("ArrowRight")
    assert tab.inner_text("#size") == "16.00 MiB" and query(tab) == {"tokens": "8192"}
    assert slider.get_attribute("aria-valuetext") == "8,192 tokens"
    tab.get_by_label("Context, exact value").fill("5000")
    tab.locator("[data-control=dtype]").select_option("1")
    tab.locator("[data-control=note]").fill("a&b=ü漢")
    tab.locator("[data-control=weights]").uncheck()
    assert query(tab) == {"tokens": "5000", "dtype": "1", "note": "a&b=ü漢", "weights": "false"}
    tab.reload()
    tab.wait_for_selector("#size")
    tab.wait_for_function("document.querySelector('#size').textContent")
    assert tab.inner_text("#size") == "4.88 MiB"
    assert tab.input_value("[data-control=note]") == "a&b=ü漢" and not tab.is_checked("[data-control=weights]")


def test_a_value_in_the_address_that_is_not_allowed_is_ignored(site: Visitor) -> None:
    for text in ("tokens=0&dtype=9&weights=maybe", "tokens=1e99", "tokens="):
        tab = site(f"?{text}").page
        assert tab.inner_text("#size") == "8.00 MiB" and tab.is_checked("[data-control=weights]"), text


def test_dragging_asks_the_server_nothing(site: Visitor) -> None:
    opened = site("")
    drawn(opened.page, "frames")
    opened.page.wait_for_timeout(500)
    before = len(opened.asked)
    opened.page.locator("input[type=range][data-control=tokens]").focus()
    for _ in range(5):
        opened.page.keyboard.press("ArrowRight")
    assert opened.page.inner_text("#size") == "256.00 MiB"
    assert opened.asked[before:] == []


def test_formulas_are_set_and_readable(site: Visitor) -> None:
    tab = site("").page
    tab.wait_for_selector(".katex-display .katex-mathml math")
    assert tab.locator(".katex-display math annotation").text_content().startswith("\\text{bytes}")
    assert tab.evaluate("document.fonts.ready.then(() => document.fonts.check('16px KaTeX_Math'))")
    assert tab.locator(".katex-error").count() == 0


def test_the_frame_by_keyboard(site: Visitor) -> None:
    tab = site("").page
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.className") == "kv-skip"
    assert tab.evaluate("document.activeElement.getBoundingClientRect().top") >= 0
    tab.keyboard.press("Enter")
    assert tab.evaluate("document.activeElement.id") == "kv-main"
    assert tab.evaluate("location.pathname + location.hash") == "/#kv-main"
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.dataset.control") == "tokens"
    outline = (
        "getComputedStyle(document.activeElement).outlineStyle + getComputedStyle(document.activeElement).outlineWidth"
    )
    assert tab.evaluate(outline) == "solid2px"


@pytest.mark.parametrize("kind", ["bytes", "decimalBytes"])
def test_bytes_read_as_in_python(kind: str, site: Visitor) -> None:
    values = [0, 1, 999, 1000, 1023, 1024, 1029, 1030, 5000, 23040, 131072, 1048570, 1048576, 999994, 999995, 10**9 - 1]
    values += [2**36, 17179869184, 3 * 10**12 + 5, 2**50 - 1, 2**53 - 1]
    expected = [(units.binary if kind == "bytes" else units.decimal)(value) for value in values]
    assert site("").page.evaluate(f"values => values.map(KV.{kind})", values) == expected

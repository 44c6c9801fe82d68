"""Fixtures of the browser tests: the app in its own process, one browser for all, watched visits, axe."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser import chromium
from tests.browser.serving import free_port, serving
from tests.browser.watching import Visit, Visitor, visits

__all__ = ["Visit", "Visitor", "free_port", "serving", "visits"]

AXE_RULES = ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa", "best-practice"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder drives a browser."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def app_url() -> Iterator[str]:
    """The explorer itself, as a reader starts it."""
    port = free_port()
    with serving([sys.executable, "app.py", "--port", str(port)], port) as url:
        yield url


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One Chromium for all tests."""
    path = chromium.find()
    if path is None or not Path(path).exists():
        pytest.fail(
            "no browser: run `python tests/browser/chromium.py`, or set CHROMIUM=/path/to/chrome", pytrace=False
        )
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=list(chromium.FLAGS))
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def site_url() -> Iterator[str]:
    """The frame's stand-in site (frame_site.py) with 16 pages in two languages."""
    port = free_port()
    command = [sys.executable, "-m", "tests.browser.frame_site", str(port), "16"]
    with serving(command, port, {"GRADIO_ANALYTICS_ENABLED": "False"}) as url:
        yield url


@pytest.fixture
def site(browser: Browser, site_url: str) -> Iterator[Visitor]:
    """Like `visit`, on the stand-in site."""
    yield from visits(browser, site_url)


@pytest.fixture
def visit(browser: Browser, app_url: str) -> Iterator[Visitor]:
    """`visit("zh-attention?x=1", width=390, theme="dark")`: open a page of the explorer; it must stay without problems.

    `fresh=True` comes with an empty cache.
    """
    yield from visits(browser, app_url)


@pytest.fixture(scope="session")
def axe() -> Callable[..., None]:
    """`axe(page)` fails, with the rule and the elements, if axe-core finds anything.

    `contrast=False` leaves out the check of colours, most of the time that it takes, where they were checked already.
    """

    def check(page: Page, contrast: bool = True) -> None:
        # Without the elements that pass: to describe them all takes longer than to check them.
        options = {"runOnly": AXE_RULES, "resultTypes": ["violations"]}
        if not contrast:
            options["rules"] = {"color-contrast": {"enabled": False}}
        found = Axe().run(page, options=options).response["violations"]
        lines = [
            f"{rule['id']}: {rule['help']}: {[node['html'][:160] for node in rule['nodes'][:4]]}" for rule in found
        ]
        assert not lines, f"{page.url} ({page.evaluate('document.documentElement.dataset.theme')})\n" + "\n".join(lines)

    return check

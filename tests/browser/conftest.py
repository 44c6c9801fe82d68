"""Fixtures of the browser tests: the app in its own process, one browser for all, and visits that watch every request."""

import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests.browser import chromium

ROOT = Path(__file__).resolve().parents[2]
AXE_RULES = ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa", "best-practice"]
START_S = 90


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder drives a browser."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.browser)


@dataclass
class Visit:
    """A page that was opened, and all that it did.

    Attributes:
        page: the Playwright page.
        host: the server's host and port; nothing else may be asked.
        urls: every request.
        problems: console errors, uncaught exceptions, failed and foreign requests.
        wire_bytes: bytes received, compressed as they were sent.
    """

    page: Page
    host: str
    urls: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    wire_bytes: int = 0

    def watch(self) -> None:
        """Record from now on."""
        page = self.page
        page.on("request", self._request)
        page.on("requestfailed", self._failed)
        page.on("response", lambda r: r.status >= 400 and self.problems.append(f"{r.status} {r.url}"))
        page.on("console", lambda m: m.type == "error" and self.problems.append(f"console: {m.text}"))
        page.on("pageerror", lambda e: self.problems.append(f"uncaught: {e}"))
        network = page.context.new_cdp_session(page)
        network.send("Network.enable")
        network.on("Network.loadingFinished", self._loaded)

    def _request(self, request: Any) -> None:
        self.urls.append(request.url)
        parts = urlsplit(request.url)
        if parts.scheme not in ("data", "blob") and parts.netloc != self.host:
            self.problems.append(f"another host was asked: {request.url}")

    def _failed(self, request: Any) -> None:
        # Leaving a page cuts off what is still loading; that is no failure of the page.
        if "ERR_ABORTED" not in str(request.failure):
            self.problems.append(f"failed: {request.url} ({request.failure})")

    def _loaded(self, event: dict[str, Any]) -> None:
        self.wire_bytes += int(event["encodedDataLength"])

    def settle(self) -> None:
        """Wait until the page stands: heading, widgets and figures."""
        self.page.wait_for_selector("h1")
        self.page.wait_for_function(
            "[...document.querySelectorAll('.kv-widget')].every(w => w.dataset.ready === '1')", timeout=20_000
        )


Visitor = Callable[..., Visit]


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serving(command: list[str], port: int) -> Iterator[str]:
    """Run a server until the block ends; give its address once it answers."""
    url = f"http://127.0.0.1:{port}/"
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, text=True)
        try:
            _wait(url, process, log)
            yield url
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def _wait(url: str, process: subprocess.Popen[str], log: IO[str]) -> None:
    end = time.monotonic() + START_S
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    log.seek(0)
    pytest.fail(f"no answer from {url} (exit code {process.poll()}):\n{log.read()[-3000:]}", pytrace=False)


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
        pytest.fail("no browser: run `python tests/browser/chromium.py`, or set CHROMIUM=/path/to/chrome", pytrace=False)
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=list(chromium.FLAGS))
        yield opened
        opened.close()


@pytest.fixture
def visit(browser: Browser, app_url: str) -> Iterator[Visitor]:
    """`visit("zh-attention?x=1", width=390, theme="dark")`: open a page of the explorer; it must stay without problems.

    `fresh=True` comes with an empty cache.
    """
    yield from visits(browser, app_url)


def visits(browser: Browser, base: str) -> Iterator[Visitor]:
    """A function that opens pages below `base`; when the test is over, none of them may have had a problem."""
    made: list[Visit] = []

    def open_page(path: str = "", **how: Any) -> Visit:
        made.append(Visit(_context(browser, **how).new_page(), urlsplit(base).netloc))
        made[-1].watch()
        made[-1].page.goto(base + path)
        made[-1].settle()
        return made[-1]

    yield open_page
    problems = [problem for item in made for problem in item.problems]
    for item in made:
        _close(item.page)
    assert not problems, "\n".join(problems)


_shared: dict[tuple[Any, ...], BrowserContext] = {}


def _context(
    browser: Browser,
    *,
    width: int = 1280,
    height: int = 900,
    theme: str = "light",
    locale: str = "en-US",
    reduced_motion: bool = True,
    fresh: bool = False,
) -> BrowserContext:
    """A context with these settings. It is shared, warm cache and all, unless `fresh` asks for a new visitor's."""
    key = (width, height, theme, locale, reduced_motion)
    if not fresh and key in _shared:
        return _shared[key]
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if theme == "dark" else "light",
        locale=locale,
        reduced_motion="reduce" if reduced_motion else "no-preference",
    )
    context.set_default_timeout(15_000)
    if not fresh:
        _shared[key] = context
    return context


def _close(page: Page) -> None:
    context = page.context
    if context in _shared.values():
        # The next test finds no choice of this one.
        page.evaluate("localStorage.clear()")
        page.close()
    else:
        context.close()


@pytest.fixture(scope="session")
def axe() -> Callable[[Page], None]:
    """`axe(page)` fails, with the rule and the elements, if axe-core finds anything."""

    def check(page: Page) -> None:
        found = Axe().run(page, options={"runOnly": AXE_RULES}).response["violations"]
        lines = [f"{rule['id']}: {rule['help']}: {[node['html'][:160] for node in rule['nodes'][:4]]}" for rule in found]
        assert not lines, f"{page.url} ({page.evaluate('document.documentElement.dataset.theme')})\n" + "\n".join(lines)

    return check


# Tests run on two cores beside the app: a CPU library that takes every core would starve the browser.
os.environ.setdefault("OMP_NUM_THREADS", "2")

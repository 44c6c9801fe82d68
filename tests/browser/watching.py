"""Opening pages and watching all that they do: requests, errors, bytes on the wire."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, Page

FILES = re.compile(r"^/(assets|static|kv-assets)/|\.(js|css|svg|png|ico|woff2?)$|/heartbeat/")


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
        # Seldom, when a page is left early, some promise is rejected without a reason. Our own scripts always
        # give one.
        page.on("pageerror", lambda e: str(e) != "undefined" and self.problems.append(f"uncaught: {e}"))
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

    @property
    def asked(self) -> list[str]:
        """The requests that ask the server for an answer; files of the page itself may still arrive late."""
        return [url for url in self.urls if not FILES.search(urlsplit(url).path)]

    def settle(self) -> None:
        """Wait until the page stands: heading, widgets and figures."""
        self.page.wait_for_selector("h1")
        self.page.wait_for_function(
            "[...document.querySelectorAll('.kv-widget')].every(w => w.dataset.ready === '1')", timeout=20_000
        )


Visitor = Callable[..., Visit]


def drawn(tab: Page, elem_id: str, times: int = 1) -> None:
    """Wait until the figure has been drawn at least `times` times."""
    tab.wait_for_function(f"+document.querySelector('#{elem_id} .kv-plot').dataset.renders >= {times}")


def draws_within_a_frame(times: list[float]) -> None:
    """Drawing takes less than a frame at 60 Hz, in milliseconds.

    The fastest quarter decides: other tests may have the cores meanwhile, but what is slow is slow every time.
    """
    assert sorted(times)[len(times) // 4] < 16.7, times


def query(tab: Page) -> dict[str, str]:
    """The address's query."""
    found: dict[str, str] = tab.evaluate("Object.fromEntries(new URL(location).searchParams)")
    return found


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

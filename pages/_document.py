"""The HTML document of each page: our head, frame and language around Gradio's app.

Gradio serves one document for all pages: in English, without a title or a frame, and its own strings follow the
browser's language. This ASGI middleware rewrites it, per route: `<html lang>`, title, description, styles (so that the
first paint is right), the contents. `navigator.language` is replaced before any script runs, because Gradio offers no
other way to choose the language of its own strings by route.
"""

import json
import re
from collections.abc import Callable
from html import escape

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from explorer.text import LANGUAGES, Lang
from pages import _assets, _content, _nav
from pages._page import HTML_LANG, Page

# The title given to gr.Blocks: it stands in the document's configuration, where each page's own title replaces it.
TITLE_MARK = "kv-page-title"
_STRINGS_FOR_SCRIPTS = ("player.", "plot.", "control.", "state.")
_OPEN_HTML = re.compile(r"<html\b[^>]*>")
_FOREIGN = re.compile(r'<meta\s+(?:property="og:|name="twitter:)[^>]*?/?>|<link rel="manifest"[^>]*>|<base\b[^>]*>')
_CLOSE_HEAD = re.compile(r"</head>")
_OPEN_BODY = re.compile(r"<body\b[^>]*>")
_PAGE_LIKE = re.compile(r"^/[^/.]+/?$")
_APP = re.compile(r"(<gradio-app\b.*?</gradio-app>)", re.DOTALL)


class Documents:
    """Rewrites the documents of the known routes; everything else passes untouched."""

    def __init__(self, app: ASGIApp, pages: tuple[Page, ...]):
        self.app = app
        self.pages = pages
        self.routes: dict[str, tuple[Page, Lang]] = {
            "/" + page.path(lang): (page, lang) for page in pages for lang in LANGUAGES
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and rewrite the answer if it is a document of ours or a page that does not exist."""
        if scope["type"] == "http" and scope["method"] == "GET":
            path = _assets.route_path(scope)
            if found := self.routes.get(path):
                send = _Rewriter(send, 200, "text/html", lambda html: rewrite(html, found[0], self.pages, found[1]))
            elif _PAGE_LIKE.match(path) and b"text/html" in dict(scope["headers"]).get(b"accept", b""):
                lang: Lang = "zh" if path.startswith("/zh-") else "en"
                send = _Rewriter(send, 404, "application/json", lambda _: missing(self.pages[0], lang))
        await self.app(scope, receive, send)


class _Rewriter:
    """Holds an answer of the given status and type back until it is complete, then sends it rewritten as HTML."""

    def __init__(self, send: Send, status: int, kind: str, make: Callable[[str], str]):
        self.send, self.status, self.kind, self.make = send, status, kind, make
        self.start: Message | None = None
        self.body = b""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and self._wanted(message):
            self.start = message
        elif self.start is None:
            await self.send(message)
        elif message["type"] == "http.response.body":
            self.body += message.get("body", b"")
            if not message.get("more_body"):
                await self._finish(self.start)

    def _wanted(self, start: Message) -> bool:
        headers = {key.lower(): value for key, value in start["headers"]}
        return start["status"] == self.status and headers.get(b"content-type", b"").startswith(self.kind.encode())

    async def _finish(self, start: Message) -> None:
        body = self.make(self.body.decode()).encode()
        replaced = (b"content-length", b"content-type")
        headers = [(key, value) for key, value in start["headers"] if key.lower() not in replaced]
        headers += [
            (b"content-type", b"text/html; charset=utf-8"),
            (b"content-length", str(len(body)).encode()),
            (b"x-content-type-options", b"nosniff"),
            (b"referrer-policy", b"same-origin"),
        ]
        await self.send({**start, "headers": headers})
        await self.send({"type": "http.response.body", "body": body})


def missing(home: Page, lang: Lang) -> str:
    """The document for an address that no page has."""
    title, text, back = (escape(_content.label("frame", lang, f"missing.{key}")) for key in ("title", "text", "back"))
    return f"""<!doctype html><html lang="{HTML_LANG[lang]}"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="{_ICON}">
<script>{_EARLY_HEAD}</script><link rel="stylesheet" href="{_assets.get("kv.css").href}"></head>
<body><main class="kv-main kv-missing"><h1>{title}</h1><p>{text}</p><p><a href="{home.href(lang)}">{back}</a></p></main>
</body></html>"""


def rewrite(html: str, page: Page, pages: tuple[Page, ...], lang: Lang) -> str:
    """Gradio's document as the document of `page` in `lang`.

    Raises:
        ValueError: Gradio's document is not built as expected (a new version?).
    """
    title = _title(page, lang)
    html = _FOREIGN.sub("", html).replace(TITLE_MARK, json.dumps(title)[1:-1])
    html = _once(_OPEN_HTML, html, f'<html lang="{HTML_LANG[lang]}">')
    html = _once(re.compile(r'<meta charset="utf-8"\s*/?>'), html, '<meta charset="utf-8">' + _head(page, lang, title))
    html = _once(_CLOSE_HEAD, html, f'<link rel="stylesheet" href="{_assets.get("kv.css").href}"></head>')
    html = _once(_OPEN_BODY, html, f"<body>{_EARLY_BODY}{_nav.before(page, pages, lang)}{_noscript(lang)}")
    return _once(_APP, html, None, _nav.after(page, pages, lang))


def _once(pattern: re.Pattern[str], html: str, new: str | None, behind: str = "") -> str:
    found = list(pattern.finditer(html))
    if len(found) != 1:
        raise ValueError(f"{len(found)} places for {pattern.pattern!r} in Gradio's document, expected 1")
    place = found[0]
    return html[: place.start()] + (place[0] if new is None else new) + behind + html[place.end() :]


def _noscript(lang: Lang) -> str:
    return f"<noscript><p>{escape(_content.label('frame', lang, 'noscript'))}</p></noscript>"


def _title(page: Page, lang: Lang) -> str:
    brand = _content.label("frame", lang, "brand")
    return f"{page.title.get(lang)} · {brand}" if page.slug else brand


# Known before the first paint: an address with ?__theme= wins, then the remembered choice, then the system's.
_EARLY_HEAD = """(()=>{const d=document.documentElement;let t=new URL(location).searchParams.get('__theme');
if(t!=='dark'&&t!=='light'){try{t=localStorage.getItem('kv-theme')}catch{t=null}}
if(t!=='dark'&&t!=='light'){t=matchMedia('(prefers-color-scheme: dark)').matches?'dark':'light'}
d.dataset.theme=t;d.classList.toggle('dark',t==='dark')})()"""
_EARLY_BODY = "<script>document.body.classList.toggle('dark',document.documentElement.dataset.theme==='dark')</script>"
# Inline: a browser asks for an icon again with every change of the address, and our controls change it all the time.
_ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E"
    "%3Crect width='32' height='32' rx='7' fill='%230b5a9c'/%3E%3Cg fill='%23fff'%3E%3Cpath d='M6 7h5v18H6z'/%3E"
    "%3Cpath d='M13.5 7h5v18h-5z' opacity='.75'/%3E%3Cpath d='M21 7h5v11h-5z' opacity='.5'/%3E%3C/g%3E%3C/svg%3E"
)


def _head(page: Page, lang: Lang, title: str) -> str:
    code = HTML_LANG[lang]
    describe = escape(_content.label("frame", lang, "description"), quote=True)
    boot = {"lang": lang, "scripts": _assets.scripts(), "strings": _strings(lang)}
    alternates = "".join(
        f'<link rel="alternate" hreflang="{HTML_LANG[item]}" href="{page.href(item)}">' for item in LANGUAGES
    )
    return f"""<title>{escape(title)}</title><meta name="description" content="{describe}">
<meta name="color-scheme" content="light dark">{alternates}
<link rel="icon" href="{_ICON}">
<script>for(const[k,v]of[['language','{code}'],['languages',['{code}']]])Object.defineProperty(navigator,k,{{get:()=>v}});
{_EARLY_HEAD}</script>
<script>window.KV_BOOT={script_json(boot)}</script><script defer src="{_assets.get("kv.js").href}"></script>"""


def _strings(lang: Lang) -> dict[str, str]:
    frame = _content.strings("frame", lang)
    return {key: text for key, text in frame.items() if key.startswith(_STRINGS_FOR_SCRIPTS)}


def script_json(value: object) -> str:
    """`value` as JSON that may stand inside a `<script>` element."""
    text = json.dumps(value, ensure_ascii=False)
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text

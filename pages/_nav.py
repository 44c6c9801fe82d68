"""The frame around a page: skip link, header with the two switches, contents by part, previous and next, footer.

It is plain HTML that arrives with the document, so it is there before any script has run.
"""

from html import escape
from itertools import groupby

from explorer.text import LANGUAGES, Lang
from pages import _content
from pages._page import HTML_LANG, Page


def _t(lang: Lang, key: str) -> str:
    return escape(_content.label("frame", lang, key), quote=True)


def before(page: Page, pages: tuple[Page, ...], lang: Lang) -> str:
    """Everything in front of the page's content."""
    return f"""<a class="kv-skip" href="{page.href(lang)}#kv-main">{_t(lang, "skip")}</a>
<header class="kv-top"><a class="kv-brand" href="{pages[0].href(lang)}">{_t(lang, "brand")}</a>
<div class="kv-tools">{_language_link(page, lang)}{_theme_button(lang)}{_menu_button(lang)}</div></header>
<div class="kv-frame">
<nav class="kv-toc" id="kv-toc" aria-label="{_t(lang, "contents")}">{_contents(page, pages, lang)}</nav>
<div class="kv-main" id="kv-main" tabindex="-1">"""


def after(page: Page, pages: tuple[Page, ...], lang: Lang) -> str:
    """Everything behind the page's content."""
    return f"""{_neighbours(page, pages, lang)}
<footer class="kv-foot"><p>{_t(lang, "footer")}</p></footer></div></div>"""


def _language_link(page: Page, lang: Lang) -> str:
    other: Lang = next(item for item in LANGUAGES if item != lang)
    code, word = HTML_LANG[other], _t(other, "language.name")
    return (
        f'<a class="kv-tool" id="kv-language" data-keep-query href="{page.href(other)}" lang="{code}"'
        f' hreflang="{code}" rel="alternate">{word}</a>'
    )


def _theme_button(lang: Lang) -> str:
    return (
        f'<button class="kv-tool" id="kv-theme" type="button" data-dark="{_t(lang, "theme.dark")}"'
        f' data-light="{_t(lang, "theme.light")}">{_t(lang, "theme.dark")}</button>'
    )


def _menu_button(lang: Lang) -> str:
    return (
        f'<button class="kv-tool kv-menu" id="kv-menu" type="button" aria-expanded="false" aria-controls="kv-toc">'
        f"{_t(lang, 'contents')}</button>"
    )


def _contents(page: Page, pages: tuple[Page, ...], lang: Lang) -> str:
    out = []
    for part, items in groupby(pages, key=lambda item: item.part):
        links = "".join(f"<li>{_link(item, item is page, lang)}</li>" for item in items)
        title = f'<h2 id="kv-part-{part}">{part} {_t(lang, f"part.{part}")}</h2>' if part else ""
        name = f' aria-labelledby="kv-part-{part}"' if part else ""
        out.append(f"{title}<ul{name}>{links}</ul>")
    return "".join(out)


def _link(page: Page, current: bool, lang: Lang) -> str:
    mark = ' aria-current="page"' if current else ""
    return f'<a href="{page.href(lang)}"{mark}>{escape(page.title.get(lang))}</a>'


def _neighbours(page: Page, pages: tuple[Page, ...], lang: Lang) -> str:
    place = pages.index(page)
    back = _neighbour(pages[place - 1], "prev", lang) if place else "<span></span>"
    on = _neighbour(pages[place + 1], "next", lang) if place + 1 < len(pages) else ""
    return f'<nav class="kv-pn" aria-label="{_t(lang, "neighbours")}">{back}{on}</nav>'


def _neighbour(page: Page, rel: str, lang: Lang) -> str:
    word, title = _t(lang, rel), escape(page.title.get(lang))
    return f'<a class="kv-{rel}" rel="{rel}" href="{page.href(lang)}"><span>{word}</span>{title}</a>'

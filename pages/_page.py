"""What a page is: an address, a place in the contents, and a function that builds it in one language."""

import re
from collections.abc import Callable
from dataclasses import dataclass

import gradio as gr

from explorer.text import Lang, Text
from pages import _content

HTML_LANG: dict[Lang, str] = {"en": "en", "zh": "zh-CN"}
NUM_PARTS = 6
_SLUG = re.compile(r"^$|^[a-z0-9]+(-[a-z0-9]+)*$")


@dataclass(frozen=True)
class Page:
    """One topic, shown in both languages.

    Attributes:
        slug: its address, lower case with hyphens; "" is the home page. Never begins with "zh-".
        order: its place inside its part.
        part: which of the documents' six parts it belongs to; 0 is the home page.
        title: its name in the contents and in the browser's tab.
        build: fills the current `gr.Blocks` for one language.
    """

    slug: str
    order: int
    part: int
    title: Text
    build: Callable[["Ctx"], None]

    def __post_init__(self) -> None:
        if not _SLUG.match(self.slug) or self.slug.startswith("zh-") or self.slug == "home":
            raise ValueError(f"slug {self.slug!r}: lower-case words joined by hyphens, not 'home', not 'zh-...'")
        if not 0 <= self.part <= NUM_PARTS:
            raise ValueError(f"part {self.part} of page {self.slug!r}: expected 0 to {NUM_PARTS}")

    @property
    def name(self) -> str:
        """The stem of its text files: the slug, or "home"."""
        return self.slug or "home"

    def path(self, lang: Lang) -> str:
        """Its route in `lang`, without a leading slash: "" or "attention", "zh-home" or "zh-attention"."""
        return f"zh-{self.name}" if lang == "zh" else self.slug

    def href(self, lang: Lang) -> str:
        """A relative link to it, right from every page and below any sub-path."""
        return "./" + self.path(lang)


@dataclass(frozen=True)
class Ctx:
    """What `build` gets: the language, the page's own texts and the handle for its events.

    Attributes:
        lang: "en" or "zh".
        page: the page being built.
        blocks: the page's `gr.Blocks`; `ctx.blocks.load(...)` runs on this page only.
        pages: every page, for links.
    """

    lang: Lang
    page: Page
    blocks: gr.Blocks
    pages: tuple[Page, ...] = ()

    @property
    def strings(self) -> dict[str, str]:
        """All of this page's labels, by key (`assets/strings/<lang>/<name>.json`)."""
        return _content.strings(self.page.name, self.lang)

    def t(self, key: str, **values: object) -> str:
        """The label `key` with its `{names}` filled in.

        Raises:
            KeyError: the page has no such label, or a value is missing.
        """
        return _content.label(self.page.name, self.lang, key).format(**values)

    def section(self, name: str) -> str:
        """The Markdown of one section of `assets/content/<lang>/<name>.md`, badges and page links filled in.

        Raises:
            KeyError: the page has no such section, or it links to a page that does not exist.
        """
        return _content.expand(_content.section(self.page.name, self.lang, name), self.lang, self.href)

    def href(self, slug: str) -> str:
        """A relative link to the page `slug` in this page's language.

        Raises:
            KeyError: there is no such page.
        """
        for page in self.pages:
            if page.slug == slug:
                return page.href(self.lang)
        raise KeyError(f"page {self.page.name!r} links to {slug!r}, which does not exist")

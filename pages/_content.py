"""Texts: flat JSON labels and Markdown sections, one pair of files a page and language. A missing text raises.

A Markdown file is cut into sections by lines `<!-- name -->`. Inside a section, `[[measured]]` becomes the badge of
that origin and `[words](page:cache-size)` a link to that page in the same language.
"""

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

from explorer.measuring.record import Origin
from explorer.text import Lang
from pages._badge import badge

ASSETS = Path(__file__).resolve().parent.parent / "assets"
_SECTION = re.compile(r"^<!--\s*([a-z0-9_-]+)\s*-->\s*$")
_BADGE = re.compile(r"\[\[([a-z]+)\]\]")
_LINK = re.compile(r"\]\(page:([a-z0-9-]*)\)")


@cache
def strings(name: str, lang: Lang) -> dict[str, str]:
    """All labels of one page ("frame" for the frame), by key.

    Raises:
        KeyError: there is no such file.
        ValueError: a value is not text.
    """
    path = ASSETS / "strings" / lang / f"{name}.json"
    if not path.is_file():
        raise KeyError(f"no strings for page {name!r} in {lang!r}: assets/strings/{lang}/{name}.json is missing")
    found = json.loads(path.read_text(encoding="utf-8"))
    wrong = [key for key, value in found.items() if not isinstance(value, str)]
    if wrong:
        raise ValueError(f"assets/strings/{lang}/{name}.json must be flat: {wrong} are not text")
    return found


def label(name: str, lang: Lang, key: str) -> str:
    """One label.

    Raises:
        KeyError: it is missing.
    """
    found = strings(name, lang)
    if key not in found:
        raise KeyError(f"no string {key!r} in assets/strings/{lang}/{name}.json")
    return found[key]


@cache
def sections(name: str, lang: Lang) -> dict[str, str]:
    """All sections of one page's Markdown, in order.

    Raises:
        KeyError: there is no such file.
        ValueError: text stands before the first section, or a section occurs twice.
    """
    path = ASSETS / "content" / lang / f"{name}.md"
    if not path.is_file():
        raise KeyError(f"no text for page {name!r} in {lang!r}: assets/content/{lang}/{name}.md is missing")
    found: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in path.read_text(encoding="utf-8").splitlines():
        if mark := _SECTION.match(line):
            if mark[1] in found:
                raise ValueError(f"{path.name} ({lang}): section {mark[1]!r} occurs twice")
            current = found[mark[1]] = []
        elif current is not None:
            current.append(line)
        elif line.strip():
            raise ValueError(f"{path.name} ({lang}): text before the first section: {line[:40]!r}")
    return {key: "\n".join(lines).strip() for key, lines in found.items()}


def section(name: str, lang: Lang, key: str) -> str:
    """One section's Markdown as written.

    Raises:
        KeyError: it is missing or empty.
    """
    text = sections(name, lang).get(key, "")
    if not text:
        raise KeyError(f"no section {key!r} in assets/content/{lang}/{name}.md")
    return text


def expand(markdown: str, lang: Lang, href: Callable[[str], str]) -> str:
    """`markdown` with `[[origin]]` as badges and `page:` links resolved by `href`.

    Raises:
        ValueError: an origin is unknown.
    """
    markdown = _BADGE.sub(lambda found: badge(Origin(found[1]), lang), markdown)
    return _LINK.sub(lambda found: f"]({href(found[1])})", markdown)

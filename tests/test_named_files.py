"""A comment that sends the reader to a file of ours sends them to one that is there."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("explorer", "pages", "kernels", "assets/js", "assets/css")
SOURCES = [
    ROOT / "app.py",
    *(
        path
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in (".py", ".js", ".css")
    ),
]
NAMED = re.compile(r"\b(?:assets|explorer|kernels|pages|tests)/[\w./-]*\w\.(?:py|js|css|json|md)\b")
STANDS_FOR_ANY = {"assets/js/name.js"}  # in kv.js, the file of a widget called "name"


def named(text: str) -> list[str]:
    return NAMED.findall(text)


def test_the_pattern_finds_names() -> None:
    text = 'see `assets/js/kv-plot.js`, (pages/_site.py) and explorer/specs/units.py. A test; "assets/js/*.js"'
    assert named(text) == ["assets/js/kv-plot.js", "pages/_site.py", "explorer/specs/units.py"]


def test_every_file_named_is_there() -> None:
    found = {(path.relative_to(ROOT), name) for path in SOURCES for name in named(path.read_text(encoding="utf-8"))}
    assert len(found) > 20
    assert {(path, name) for path, name in found if not (ROOT / name).is_file() and name not in STANDS_FOR_ANY} == set()


def test_the_browsers_copy_of_the_units_is_in_the_file_that_units_names() -> None:
    (name,) = named((ROOT / "explorer/specs/units.py").read_text(encoding="utf-8"))
    copy = (ROOT / name).read_text(encoding="utf-8")
    assert "const BINARY" in copy and "const DECIMAL" in copy

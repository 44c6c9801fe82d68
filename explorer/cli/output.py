"""What the command line prints: results on stdout, everything else on stderr, and tables that line up."""

import difflib
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from explorer.errors import InputError
from explorer.text import Text

LONGEST_LINE = 400


def result(text: str) -> None:
    """Print a result to stdout."""
    sys.stdout.write(text.rstrip("\n") + "\n")
    sys.stdout.flush()


def result_json(value: Any) -> None:
    """Print one JSON object as one line of stdout, in ASCII, so that every terminal and program can take it."""
    result(json.dumps(value))


def progress(text: str) -> None:
    """Print a line about what happens now to stderr."""
    sys.stderr.write(one_line(text) + "\n")
    sys.stderr.flush()


def one_line(text: str, longest: int = LONGEST_LINE) -> str:
    """`text` as one printable line of bounded length, whatever a caller put into it."""
    line = "".join(mark if mark.isprintable() else " " for mark in text).strip()
    return line if len(line) <= longest else line[: longest - 3] + "..."


def near(word: str, known: list[str]) -> str:
    """` (did you mean 'x'?)` where a known word is close, else nothing."""
    found = difflib.get_close_matches(word[:80], known, n=1, cutoff=0.55)
    return f" (did you mean {found[0]!r}?)" if found else ""


def table(headings: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Rows under headings, in columns as wide as they need; numbers to the right."""
    cells = [[cell(value) for value in row] for row in rows]
    widths = [max([len(heading), *(len(row[i]) for row in cells)]) for i, heading in enumerate(headings)]
    numeric = [bool(rows) and all(isinstance(row[i], int | float) for row in rows) for i in range(len(headings))]

    def line(values: Sequence[str]) -> str:
        padded = zip(values, widths, numeric, strict=True)
        return "  ".join(v.rjust(width) if right else v.ljust(width) for v, width, right in padded).rstrip()

    return "\n".join([line(headings), line(["-" * width for width in widths]), *map(line, cells)])


def cell(value: Any) -> str:
    """A value as it reads in a table: whole numbers in full, others with four digits that count."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"
    return str(value)


def facts(values: dict[str, Any]) -> str:
    """`name value` on a line each."""
    width = max((len(name) for name in values), default=0)
    return "\n".join(f"  {name.ljust(width)}  {cell(value)}" for name, value in values.items())


def writable(*paths: str | None) -> None:
    """Check, before anything is measured, that each file can be written; None is passed over.

    Raises:
        InputError: one cannot be, or two are the same.
    """
    given = [path for path in paths if path is not None]
    if len({os.path.abspath(path) for path in given}) < len(given):
        raise InputError(Text("two of the files to write are the same; give each its own name", "要写的文件重名了"))
    for path in given:
        _try_to_open(path)


def write(path: str, text: str) -> None:
    """Write a file that `writable` has approved."""
    Path(path).write_text(text, encoding="utf-8")


def _try_to_open(path: str) -> None:
    try:
        new = not os.path.exists(path)
        with open(path, "a", encoding="utf-8"):
            pass
        if new:
            os.unlink(path)
    except (OSError, ValueError):
        shown = one_line(path, 80)
        raise InputError(
            Text(
                f"cannot write the file {shown!r}: give a name in a folder that exists and that you may write to",
                f"无法写入文件 {shown!r}：请给出可写的现有目录中的文件名",
            )
        ) from None

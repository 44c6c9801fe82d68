"""Get a model's weights ahead of time."""

import argparse
import time
from typing import Any

from explorer.cli.output import progress, result, result_json


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "model", metavar="MODEL", nargs="?", help="a Hub id or a local folder (default: the default model)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")


def run(chosen: argparse.Namespace) -> int:
    """Fetch, with progress on stderr."""
    from explorer.weights import DEFAULT_MODEL, resolve

    files = resolve(DEFAULT_MODEL if chosen.model is None else chosen.model, progress=Teller())
    facts = {
        "model": files.name,
        "weight_hash": files.weight_hash,
        "source": files.source,
        "detail": files.detail,
        "folder": str(files.path),
    }
    if chosen.json:
        result_json(facts)
    else:
        result(f"{files.name}, weights {files.weight_hash} ({files.detail})\n{files.path}")
    return 0


class Teller:
    """Prints `WeightProgress`: a line when the words change, then at most one a second."""

    def __init__(self) -> None:
        self._words = ""
        self._told_at = 0.0

    def __call__(self, step: Any) -> None:
        """Take one step's news."""
        now = time.monotonic()
        if step.text.en == self._words and now - self._told_at < 1:
            return
        self._words, self._told_at = step.text.en, now
        share = f" {step.done_bytes / step.total_bytes:.0%}" if step.total_bytes else ""
        progress(f"{step.text.en}{share}")

"""Two lab panels for the browser tests: `python -m tests.browser.lab_site PORT LOCKFILE`. Their labs are toys."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from explorer.labs.base import LABS
from explorer.measuring import lock
from explorer.text import Text
from pages._blocks import html
from pages._lab_panel import lab_panel
from pages._page import Ctx, Page
from pages._site import build_site, launch_options
from tests.explorer.labs.toy import ToyLab


@dataclass(frozen=True)
class SecondToy(ToyLab):
    """The same again, so that a page holds two panels."""

    name: ClassVar[str] = "toy-two"
    title: ClassVar[Text] = Text("Second toy", "第二个示例")


def build(ctx: Ctx) -> None:
    """A page with two panels."""
    html("<h1>Labs</h1><h2>Measure it here</h2>")
    lab_panel(ctx, "toy-sum", deadline_s=30.0)
    lab_panel(ctx, "toy-two", deadline_s=2.0)


PAGES = (Page("", 0, 0, Text("Labs", "实验"), build), Page("other", 1, 1, Text("Other", "另一页"), build))


def main(port: int, lock_file: str) -> None:
    """Serve until killed."""
    for lab in (ToyLab, SecondToy):
        LABS.register(lab)
    lock._SHARED.append(lock.DeviceLock(Path(lock_file)))
    site = build_site(PAGES).queue(max_size=64, default_concurrency_limit=16)
    site.launch(server_port=port, **launch_options(PAGES))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])

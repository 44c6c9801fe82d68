"""Order: what needs no browser comes first.

Playwright's synchronous interface keeps an event loop running in the main thread for as long as its browser lives, and
`asyncio.run` refuses to work beside it. Besides, a broken formula is then found before a browser has started.

With `-n 2` two processes share the cores: threads that wait for work must sleep then, not spin, in servers too.
"""

import os
from pathlib import Path

import pytest

if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

BROWSER = Path(__file__).parent / "browser"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Move the browser's tests to the end; the order within each group stays."""
    items.sort(key=lambda item: item.path.is_relative_to(BROWSER))

"""Order: what needs no browser comes first.

Playwright's synchronous interface keeps an event loop running in the main thread for as long as its browser lives, and
`asyncio.run` refuses to work beside it. Besides, a broken formula is then found before a browser has started.
"""

from pathlib import Path

import pytest

BROWSER = Path(__file__).parent / "browser"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Move the browser's tests to the end; the order within each group stays."""
    items.sort(key=lambda item: item.path.is_relative_to(BROWSER))

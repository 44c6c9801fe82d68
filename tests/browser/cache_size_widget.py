"""How the tests of the page "Cache size" handle its widget."""

from collections.abc import Callable

from playwright.sync_api import Locator
from playwright.sync_api import Page as Tab

WIDGET = "#cache-size .kv-widget"


def out(tab: Tab, name: str) -> str:
    return tab.locator(f'[data-out="{name}"]').inner_text()


def control(tab: Tab, name: str) -> Locator:
    return tab.locator(f'{WIDGET} [data-control="{name}"]')


def box(tab: Tab, name: str) -> Locator:
    """The number box of a slider."""
    return tab.locator(f"#{control(tab, name).get_attribute('id')}-exact")


def drawn(tab: Tab, act: Callable[[], object]) -> None:
    """Do something and wait until the widget has drawn again."""
    before = int(tab.locator(WIDGET).get_attribute("data-renders") or 0)
    act()
    tab.wait_for_function(f"Number(document.querySelector('{WIDGET}').dataset.renders) > {before}")


def choose(tab: Tab, name: str) -> None:
    """Take a model of the catalogue: its name typed, then Enter on the entry that is it."""
    field = control(tab, "model")
    field.fill(name)
    option = tab.locator(f'{WIDGET} [role="option"][data-name="{name}"]')
    while option.get_attribute("aria-selected") != "true":
        field.press("ArrowDown")
    drawn(tab, lambda: field.press("Enter"))


def mode(tab: Tab, name: str) -> None:
    """Count a "catalogue" model, an "own" shape or a "config"."""
    drawn(tab, lambda: tab.locator(f'{WIDGET} input[data-mode="{name}"]').check())

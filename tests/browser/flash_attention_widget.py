"""The widgets of the page "FlashAttention" as its browser tests use them, and a softmax to compare with."""

import math
from collections.abc import Callable

import pytest
from playwright.sync_api import Page as Tab

PAGE = "flash-attention"
WIDGET, MERGE, BYTES = (f"#{name} .kv-widget" for name in (PAGE, f"{PAGE}-merge", f"{PAGE}-bytes"))


def exp(x: float) -> float:
    return 0.0 if x == -math.inf else math.exp(x)


def softmax(scores: list[float], values: list[list[float]]) -> list[float]:
    """Over the whole row, with exactly rounded sums; 0 where nothing is visible."""
    top = max(scores)
    if top == -math.inf:
        return [0.0] * len(values[0])
    weights = [exp(s - top) for s in scores]
    total = math.fsum(weights)
    return [math.fsum(w * v[d] for w, v in zip(weights, values, strict=True)) / total for d in range(len(values[0]))]


def out(tab: Tab, name: str) -> str:
    return tab.locator(f'[data-out="{name}"]').inner_text().replace("\xa0", " ")


def table(tab: Tab, name: str) -> dict[str, list[str]]:
    found = tab.locator(f"[data-table={name}] tbody tr").all()
    texts = [row.locator("th, td").all_inner_texts() for row in found]
    return {row[0]: row[1:] for row in texts}


def change(tab: Tab, action: Callable[[], object], widget: str = WIDGET) -> None:
    """Do something and wait until the widget has drawn again."""
    before = int(tab.locator(widget).get_attribute("data-renders") or 0)
    action()
    tab.wait_for_function(f"Number(document.querySelector('{widget}').dataset.renders) > {before}")


def go(tab: Tab, frame: str) -> None:
    """Step on until the first figure shows `frame`, such as "rescale.2"."""
    tab.locator(f'{WIDGET} .kv-player input[type="range"]').press("Home")
    for _ in range(80):
        if tab.locator(WIDGET).get_attribute("data-frame") == frame:
            return
        tab.locator(f"{WIDGET} .kv-play-bar button").nth(2).click()
    pytest.fail(f"there is no frame {frame}")

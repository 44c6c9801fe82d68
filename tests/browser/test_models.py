"""Models in a real browser: the table is searched, filtered and sorted; its numbers equal the estimator's."""

import random
import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page as Tab

from explorer.estimators.memory import cache_bytes
from explorer.specs import catalog, units
from tests.browser.conftest import Visitor

TABLE = "#models-table"
COLUMNS = (
    "title",
    "attention",
    "at",
    "slope",
    "constant",
    "total-0",
    "total-1",
    "total-2",
    "weights",
    "date",
    "checked",
)
CELLS = """(column) => [...document.querySelectorAll('#models-table tbody tr[data-name]')].map((row) =>
  [row.dataset.name, row.querySelector(`[data-column="${column}"]`).innerText.split('\\n')[0].replace(/ \\(.*/, '')])"""


def names(tab: Tab) -> list[str]:
    found: list[str] = tab.locator(f"{TABLE} tbody tr[data-name]").evaluate_all(
        "nodes => nodes.map(n => n.dataset.name)"
    )
    return found


def control(tab: Tab, name: str) -> Any:
    return tab.locator(f'{TABLE} [data-control="{name}"]')


def drawn(tab: Tab, act: Callable[[], object]) -> None:
    widget = f"{TABLE} .kv-widget"
    before = int(tab.locator(widget).get_attribute("data-renders") or 0)
    act()
    tab.wait_for_function(f"Number(document.querySelector('{widget}').dataset.renders || 0) > {before}")


def head(tab: Tab, column: str) -> Any:
    return tab.locator(f'{TABLE} thead th[data-column="{column}"]')


def settled(tab: Tab) -> Tab:
    tab.wait_for_function(f"Number(document.querySelector('{TABLE} .kv-widget').dataset.renders || 0) > 0")
    return tab


def test_every_cell_equals_the_estimator_at_random_lengths(visit: Visitor) -> None:
    """Each length typed into the box, every model: over 1,000 comparisons, and nobody is asked."""
    opened = visit("models")
    tab = settled(opened.page)
    for column, tokens in (("total-0", 32_768), ("total-1", 131_072), ("total-2", 1_048_576)):
        shown = dict(tab.evaluate(CELLS, column))
        assert shown == {n: units.binary(cache_bytes(s, tokens).total_bytes) for n, s in catalog.models().items()}
    field = tab.locator(f"#{control(tab, 'tokens').get_attribute('id')}-exact")
    draw, before, compared = random.Random(7), len(opened.asked), 0
    for tokens in [1, 127, 128, 1_025, 2**24, *[int(2 ** draw.uniform(0, 24)) for _ in range(8)]]:
        if field.input_value() != str(tokens):
            drawn(tab, lambda tokens=tokens: field.fill(str(tokens)))
        shown = dict(tab.evaluate(CELLS, "at"))
        for name, spec in catalog.models().items():
            assert shown[name] == units.binary(cache_bytes(spec, tokens).total_bytes), (name, tokens)
            compared += 1
    assert compared > 1_000 and len(opened.asked) == before


def test_every_column_sorts_both_ways_by_keys(visit: Visitor) -> None:
    tab = settled(visit("models").page)
    models = catalog.models()
    key = {
        "at": lambda n: cache_bytes(models[n], 131_072).total_bytes,
        "slope": lambda n: cache_bytes(models[n], 1).bytes_per_token_growing,
        "constant": lambda n: cache_bytes(models[n], 1).constant_bytes,
        "total-0": lambda n: cache_bytes(models[n], 32_768).total_bytes,
        "total-2": lambda n: cache_bytes(models[n], 2**20).total_bytes,
        "weights": lambda n: models[n].weight_params or -1,
        "date": lambda n: models[n].date,
        "title": lambda n: models[n].title.lower(),
    }
    assert head(tab, "date").get_attribute("aria-sort") == "descending"
    for column in COLUMNS:
        button = head(tab, column).get_by_role("button")
        button.focus()
        ways = []
        for press in ("Enter", " "):
            button.press(press)
            ways.append(head(tab, column).get_attribute("aria-sort"))
            assert tab.locator(f"{TABLE} th[aria-sort]").count() == 1
            if column in key:
                values = [key[column](name) for name in names(tab)]
                assert values == sorted(values, reverse=ways[-1] == "descending"), (column, ways[-1])
            assert sorted(names(tab)) == sorted(models)
        assert set(ways) == {"ascending", "descending"}
        assert f"sort=-{column}" in tab.url or column == "date"


def test_search_and_filters_narrow_the_table_and_live_in_the_address(visit: Visitor) -> None:
    tab = settled(visit("models").page)
    drawn(tab, lambda: control(tab, "q").fill("gemma 2026"))
    assert names(tab) and all(name.startswith("gemma-4") for name in names(tab))
    number = len(names(tab))
    assert tab.locator(f"{TABLE} [role=status]").inner_text() == f"{number} of {len(catalog.models())} models"
    drawn(tab, lambda: control(tab, "q").fill(""))
    drawn(tab, lambda: control(tab, "kind").select_option("recurrent_state"))
    drawn(tab, lambda: control(tab, "maker").select_option("Alibaba (Qwen)"))
    drawn(tab, lambda: control(tab, "year").select_option("2025"))
    assert names(tab) == ["qwen3-next-80b"]
    drawn(tab, lambda: control(tab, "year").select_option("all"))
    drawn(tab, lambda: control(tab, "maker").select_option("all"))
    everything = names(tab)
    drawn(tab, lambda: control(tab, "checked").check())
    left_over = set(everything) - set(names(tab))
    assert left_over and all(not catalog.entries()[name].is_verified for name in left_over)
    query = tab.url.split("?")[1]
    again = settled(visit(f"models?{query}").page)
    assert names(again) == names(tab)
    drawn(tab, lambda: control(tab, "q").fill("<script>no such model"))
    assert names(tab) == [] and "No model matches" in tab.locator(f"{TABLE} [role=status]").inner_text()


@pytest.mark.parametrize("query", ["sort=toString&kind=__proto__&year=x&tokens=1e99", "sort=--at&maker=%3Cb%3E&q=%00"])
def test_a_hostile_address_opens_the_table(visit: Visitor, query: str) -> None:
    tab = settled(visit(f"models?{query}").page)
    assert not re.search(r"NaN|undefined|Infinity", tab.locator(TABLE).inner_text())
    assert head(tab, "date").get_attribute("aria-sort") == "descending"


def test_details_open_by_keys_and_say_where_a_number_comes_from(visit: Visitor) -> None:
    tab = settled(visit("models?q=gemma-4-31b").page)
    more = tab.locator(f"{TABLE} .ml-more")
    assert more.get_attribute("aria-expanded") == "false"
    more.focus()
    more.press("Enter")
    assert more.get_attribute("aria-expanded") == "true" and more.evaluate("n => n === document.activeElement")
    text = tab.locator(f"{TABLE} #{more.get_attribute('aria-controls')}").inner_text()
    for part in (
        "huggingface.co/google/gemma-4-31B-it",
        "2026-04-02",
        "10.78125 GiB",
        "5.390625 GiB",
        "k-eq-v-stored-once",
    ):
        assert part in text
    more.press("Enter")
    assert tab.locator(f"{TABLE} .ml-detail").count() == 0
    tab = settled(visit("models?q=starcoder2").page)
    assert tab.locator(f"{TABLE} .ml-more").inner_text() == "○ not checked"


@pytest.mark.parametrize(("path", "to"), [("models", "cache-size"), ("zh-models", "zh-cache-size")])
def test_a_name_leads_to_its_size(visit: Visitor, path: str, to: str) -> None:
    tab = settled(visit(f"{path}?q=kimi-k2.5").page)
    tab.get_by_role("link", name="Kimi K2.5").click()
    tab.wait_for_selector("#cache-size .kv-widget[data-ready='1']")
    assert f"/{to}?model=kimi-k2.5" in tab.url
    assert tab.locator('#cache-size [data-control="model"]').input_value() == "Kimi K2.5"
    assert tab.locator('[data-out="per-token"]').inner_text() == "68.63 KiB = 70,272 B"


def test_sizes_beyond_the_stated_context_are_marked(visit: Visitor) -> None:
    tab = settled(visit("models?q=llama-2-7b&tokens=4096").page)
    classes = {
        column: tab.locator(f'{TABLE} tr[data-name="llama-2-7b"] [data-column="{column}"]').get_attribute("class") or ""
        for column in ("at", "total-0", "total-2")
    }
    assert "is-beyond" not in classes["at"]
    assert "is-beyond" in classes["total-0"] and "is-beyond" in classes["total-2"]


@pytest.mark.parametrize("path", ["models", "zh-models"])
@pytest.mark.parametrize(("theme", "width"), [("dark", 1280), ("light", 390)])
def test_axe_finds_nothing_with_details_open(
    visit: Visitor, axe: Callable[[Tab], None], path: str, theme: str, width: int
) -> None:
    tab = settled(visit(f"{path}?q=deepseek", theme=theme, width=width).page)
    tab.locator(f"{TABLE} .ml-more").first.click()
    wrap = tab.locator(f"{TABLE} .ml-wrap")
    # A heading half under the names is too small a target for axe; one that gets the focus is scrolled out from there.
    wrap.evaluate("n => { n.scrollLeft = 0; }")
    tab.wait_for_timeout(400)
    axe(tab)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    if width == 390:  # the table scrolls inside its own box, and the names stay in sight
        assert wrap.evaluate("n => { n.scrollLeft = 500; return n.scrollLeft > 300; }")
        name = tab.locator(f"{TABLE} tbody th").first.bounding_box()
        assert name is not None and 0 <= name["x"] < 60
        head(tab, "attention").get_by_role("button").focus()
        button = head(tab, "attention").get_by_role("button").bounding_box()
        assert button is not None and button["x"] >= name["x"] + name["width"] - 1

"""Cache size in a real browser: controls, address, wrong input, keyboard, screen readers, phones, both languages."""

import re
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page as Tab

from tests.browser.cache_size_widget import WIDGET, box, choose, control, drawn, mode, out
from tests.browser.conftest import Visitor


def test_dragging_in_the_figure_moves_the_tokens(visit: Visitor) -> None:
    tab = visit("cache-size").page
    area = tab.locator(".cs-plot").bounding_box()
    assert area is not None
    y = area["y"] + area["height"] / 2
    tab.mouse.move(area["x"] + 120, y)
    tab.mouse.down()
    low = int(box(tab, "tokens").input_value())
    drawn(tab, lambda: tab.mouse.move(area["x"] + area["width"] - 60, y, steps=5))
    tab.mouse.up()
    high = int(box(tab, "tokens").input_value())
    assert 1 <= low < 4_096 < high <= 2**24
    tab.mouse.move(area["x"] + 200, y)
    assert int(box(tab, "tokens").input_value()) == high  # no button down: no move


def test_numbers_that_cannot_be_are_set_to_the_nearest_and_that_is_said(visit: Visitor) -> None:
    tab = visit("cache-size?from=own").page
    for name, typed, kept in (
        ("tokens", "", "32768"),  # nothing typed: the last good value
        ("tokens", "1e400", "10000"),  # 1e4 was one, on the way
        ("tokens", "0", "1"),
        ("tokens", "99999999999", "16777216"),
        ("tokens", "-5", "1"),
        ("tokens", "1.5", "2"),
        ("layers", "1000000000000", "256"),
        ("kv_heads", "0", "1"),
        ("head_dim", "7", "8"),
        ("batch", "5000", "4096"),
    ):
        field = box(tab, name)
        field.fill("")
        field.press_sequentially(typed)
        field.blur()
        message = rf"a whole number from [\d,]+ to [\d,]+ is needed\. Set to {int(kept):,}\."
        assert re.search(message, tab.locator(".cs-panel > .cs-message").inner_text()), (name, typed)
        assert field.input_value() == kept, (name, typed)
        assert not re.search(r"NaN|undefined|Infinity", tab.locator(WIDGET).inner_text())
    drawn(tab, lambda: control(tab, "tokens").press("ArrowRight"))
    assert tab.locator(".cs-panel > .cs-message").inner_text() == ""


def test_the_address_holds_everything_and_opens_the_same(visit: Visitor) -> None:
    tab = visit("cache-size").page
    choose(tab, "qwen3-4b")
    mode(tab, "own")
    control(tab, "gpu").select_option("rtx-4090-24gb")
    control(tab, "dtype").select_option("fp8")
    control(tab, "weights").select_option("4")
    control(tab, "scale").select_option("linear")
    box(tab, "tokens").fill("100000")
    box(tab, "batch").fill("3")
    drawn(tab, lambda: box(tab, "layers").fill("32"))  # the start model's own number, but not this model's
    tab.wait_for_function("location.search.includes('layers')")
    query = urlsplit(tab.url).query
    assert parse_qs(query) == {
        "model": ["qwen3-4b"],
        "from": ["own"],
        "gpu": ["rtx-4090-24gb"],
        "dtype": ["fp8"],
        "weights": ["4"],
        "scale": ["linear"],
        "tokens": ["100000"],
        "batch": ["3"],
        "layers": ["32"],
    }
    again = visit(f"cache-size?{query}").page
    for part in (".cs-answer", ".cs-formula:visible", ".cs-outputs", ".cs-ledger"):
        assert again.locator(part).inner_text() == tab.locator(part).inner_text()
    assert "2,147,483,648" not in again.locator(".cs-formula:visible").inner_text()
    tab.click("#kv-language")
    tab.wait_for_selector(f"{WIDGET}[data-ready='1']")
    assert urlsplit(tab.url).path == "/zh-cache-size"
    assert box(tab, "layers").input_value() == "32" and "Qwen3 4B" in tab.locator(".cs-stage").inner_text()


@pytest.mark.parametrize(
    "query",
    [
        "model=nope&tokens=1e99&layers=-3&dtype=%3Cscript%3E&gpu=..%2F..&batch=NaN",
        "layers=9999999&kv_heads=0&head_dim=abc&weights=2&scale=%00",
        "tokens=" + "9" * 5_000,
        "__proto__=1&model=__proto__&gpu=constructor&dtype=toString",
        "from=toString&assume=__proto__,mtp,nothing&tp=3&params=x&model[]=1",
    ],
)
def test_a_hostile_address_opens_the_start(visit: Visitor, query: str) -> None:
    tab = visit(f"cache-size?{query}").page
    if control(tab, "layers").is_visible():  # an address with a shape in it means an own shape
        mode(tab, "catalogue")
    assert out(tab, "total") == "4.00 GiB (4.29 GB)"
    assert out(tab, "crossing") == "122,533 tokens"


def test_a_changed_shape_is_said_and_taken_back(visit: Visitor) -> None:
    tab = visit("cache-size?from=own").page
    reset = tab.get_by_role("button", name="Back to the model's own shape")
    assert not reset.is_visible()
    drawn(tab, lambda: control(tab, "kv_heads").press("ArrowRight"))
    assert "a shape of your own; the line of the weights is Llama 3.1 8B's" in tab.locator(".cs-stage").inner_text()
    assert "kv_heads=" in tab.url
    drawn(tab, reset.click)
    assert not reset.is_visible()
    mode(tab, "catalogue")
    assert "of your own" not in tab.locator(".cs-stage").inner_text()
    assert box(tab, "kv_heads").input_value() == "8" and "kv_heads" not in tab.url


def test_weights_that_do_not_fit_and_no_gpu(visit: Visitor) -> None:
    tab = visit("cache-size?model=llama-3-70b&gpu=l4-24gb").page
    assert out(tab, "fits") == "none: the weights alone do not fit"
    assert "The weights alone are larger than NVIDIA L4." in tab.locator(".cs-answer").inner_text()
    drawn(tab, lambda: control(tab, "gpu").select_option("none"))
    assert out(tab, "fits") == out(tab, "memory") == "no GPU chosen"
    assert tab.locator(".cs-plot .is-memory").count() == 0
    drawn(tab, lambda: control(tab, "dtype").select_option("int8"))
    assert "int8 needs scales" in tab.locator(".cs-stage").inner_text()
    assert "beyond the 8,192 tokens" in tab.locator(".cs-stage").inner_text()


def test_symbols_of_the_formula_and_controls_light_each_other(visit: Visitor) -> None:
    tab = visit("cache-size?from=own").page
    for name in ("layers", "kv_heads", "head_dim", "tokens", "batch", "dtype"):
        symbol = tab.locator(f'.cs-symbol[data-for="{name}"]:visible')
        symbol.focus()
        assert control(tab, name).evaluate("n => n.closest('.kv-control').classList.contains('is-lit')")
        symbol.press("Enter")  # leads to the control
        assert control(tab, name).evaluate("n => n === document.activeElement")
        assert "is-lit" in (symbol.get_attribute("class") or "")
    tab.locator('.cs-symbol[data-for="tokens"]:visible').hover()
    assert control(tab, "tokens").evaluate("n => n.closest('.kv-control').classList.contains('is-lit')")


def test_keyboard_reaches_every_control_in_order(visit: Visitor) -> None:
    tab = visit("cache-size?from=own").page
    control(tab, "model").focus()
    seen = []
    for _ in range(18):
        seen.append(tab.evaluate("document.activeElement.dataset.control || document.activeElement.id"))
        tab.keyboard.press("Tab")
    wanted = ["model", "gpu", "tokens", "batch", "dtype", "weights", "tp", "layers", "kv_heads", "head_dim", "scale"]
    assert [name for name in seen if name in wanted] == wanted


def test_the_answer_is_read_out_once_the_reader_stops(visit: Visitor) -> None:
    tab = visit("cache-size").page
    control(tab, "tokens").press("ArrowRight")
    tab.wait_for_function("document.querySelector('.cs-stage [role=status]').textContent.includes('outgrows')")
    assert "122,533" in (tab.locator(".cs-plot").get_attribute("aria-label") or "")


@pytest.mark.parametrize("path", ["cache-size", "zh-cache-size"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(visit: Visitor, axe: Callable[[Tab], None], path: str, theme: str) -> None:
    tab = visit(f"{path}?kv_heads=4&tokens=1000000&batch=16", theme=theme).page
    tab.wait_for_timeout(600)
    axe(tab)


@pytest.mark.parametrize("path", ["cache-size", "zh-cache-size"])
def test_a_phone_needs_no_sideways_scrolling(visit: Visitor, path: str) -> None:
    tab = visit(f"{path}?model=llama-3-70b&tokens=16777216&batch=4096", width=390, height=844).page
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    sizes = tab.eval_on_selector_all(
        ".cs-plot text", "nodes => nodes.map(n => parseFloat(getComputedStyle(n).fontSize))"
    )
    assert min(sizes) >= 12
    right = tab.evaluate(
        "Math.max(...[...document.querySelectorAll('.cs-plot text')].map(n => n.getBBox().x + n.getBBox().width))"
    )
    assert right <= tab.evaluate("document.querySelector('.cs-plot').clientWidth") + 1


def test_chinese_page_says_the_same(visit: Visitor) -> None:
    tab = visit("zh-cache-size?model=llama-2-7b&tokens=131072").page
    assert out(tab, "total") == "64.00 GiB（68.72 GB）"
    answer = tab.locator(".cs-answer").inner_text()
    assert "到 25,706 个 token 时，缓存超过权重。" in answer and "已超出 Llama 2 7B 标称的 4,096 个 token" in answer
    assert not re.search(r"[a-z]{4,} [a-z]{3,} [a-z]{3,}", tab.locator(".cs-top").inner_text())  # no English left

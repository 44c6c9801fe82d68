"""The worked example in a real browser: its numbers are Python's, its sections one case; keyboard, address."""

import random
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator
from playwright.sync_api import Page as Tab

from pages.worked_example import BRANCHES, START
from tests.browser.conftest import Visitor
from tests.browser.watching import draws_within_a_frame, query
from tests.browser.worked_example_widget import APPLY, sharing_of, some_settings, wanted

SECTIONS = ["capacity", "bandwidth", "prefix", "move"]


def control(tab: Tab, section: str, name: str) -> Locator:
    return tab.locator(f'#worked-{section} [data-control="{name}"]')


def box(tab: Tab, section: str, name: str) -> Locator:
    """The number box of a slider."""
    return tab.locator(f"#{control(tab, section, name).get_attribute('id')}-exact")


def out(tab: Tab, name: str) -> str:
    return tab.locator(f'[data-out="{name}"]').inner_text()


def settled(tab: Tab) -> None:
    tab.wait_for_function(
        "[...document.querySelectorAll('[id^=worked-] .kv-widget')].every(w => Number(w.dataset.renders) > 0)"
    )


def drawn(tab: Tab, act: Callable[[], object]) -> None:
    """Do something and wait until all sections have drawn again."""
    count = "[...document.querySelectorAll('[id^=worked-] .kv-widget')].map(w => Number(w.dataset.renders))"
    settled(tab)
    before = min(tab.evaluate(count))
    act()
    tab.wait_for_function(f"Math.min(...{count}) > {before}")


def test_every_number_equals_python_over_random_settings_of_the_controls(visit: Visitor) -> None:
    """150 settings through the controls of changing sections: 32 numbers each, digit by digit."""
    draw = random.Random(32_768)
    cases = [dict(START), *(some_settings(draw) for _ in range(150))]
    tab = visit("worked-example").page
    settled(tab)
    seen = tab.evaluate(APPLY, [cases, SECTIONS])
    for case, shown in zip(cases, seen, strict=True):
        expected = wanted(case)
        assert len(expected) == 32
        assert {name: shown[name] for name in expected} == expected, case
    assert len({shown["step-time"] for shown in seen}) > 140  # the settings did reach the page
    assert {"none"} < {shown["fit"] for shown in seen}


def test_the_documents_numbers_stand_on_the_page(visit: Visitor) -> None:
    tab = visit("worked-example").page
    settled(tab)
    presets = tab.locator("#worked-capacity .we-preset")
    assert presets.all_inner_texts() == ["1 request\n8.00 GiB", "4 requests\n32.00 GiB", "8 requests\n64.00 GiB"]
    assert out(tab, "each-time") == "2.863 ms"
    assert out(tab, "step-read") == "65.52 GB + 68.72 GB = 134.24 GB"
    assert (out(tab, "apart"), out(tab, "once"), out(tab, "saved")) == (
        "64.00 GiB = 68.72 GB",
        "36.00 GiB = 38.65 GB",
        "28.00 GiB = 30.06 GB",
    )
    assert out(tab, "one-gb") == "15.625 ms"
    drawn(tab, tab.locator("[data-preset=handover]").click)
    assert out(tab, "move-bytes") == "16,384 × 128.00 KiB = 2.00 GiB = 2.15 GB"
    drawn(tab, tab.locator("[data-preset=thread]").click)
    assert (out(tab, "load-rate"), out(tab, "even-link")) == ("47,684 tokens/s", "23.08 GB/s")
    assert "A margin of 1.08× only" in tab.locator("#worked-move figcaption").inner_text()
    drawn(tab, lambda: box(tab, "move", "link").fill("20"))
    assert "Loading does not pay" in tab.locator("#worked-move figcaption").inner_text()
    assert (
        tab.locator("[data-out=combined]").inner_text().endswith("Multiplied that would be 1.78; together it is 2.00.")
    )


def test_one_case_in_all_sections_in_the_address_and_back(visit: Visitor) -> None:
    tab = visit("worked-example").page
    drawn(tab, lambda: control(tab, "prefix", "requests").press("ArrowRight"))
    for section in ("capacity", "bandwidth", "prefix"):
        assert box(tab, section, "requests").input_value() == "9"
    assert query(tab) == {"requests": "9"}
    drawn(tab, lambda: control(tab, "bandwidth", "cache").select_option("fp8"))
    assert [control(tab, section, "cache").input_value() for section in SECTIONS] == ["fp8"] * 4
    assert query(tab) == {"requests": "9", "cache": "fp8"}
    tab.reload()
    tab.wait_for_selector("#worked-combine [data-renders]")
    settled(tab)
    assert box(tab, "capacity", "requests").input_value() == "9" and out(tab, "rank-each") == "4.00 GiB = 4.29 GB"
    drawn(tab, tab.locator("#worked-capacity .we-reset").click)
    assert query(tab) == {} and not tab.locator("#worked-capacity .we-reset").is_visible()


def test_typing_is_left_alone_and_wrong_values_are_set_right_aloud(visit: Visitor) -> None:
    tab = visit("worked-example").page
    settled(tab)
    for section, name, typed, kept in (
        ("capacity", "tokens", "1", "256"),
        ("capacity", "reserve", "0.5", "0.5"),
        ("capacity", "reserve", "1.3", "1.5"),
        ("prefix", "block", "5000", "1024"),
        ("move", "link", "12.5", "12.5"),
        ("move", "link", "-3", "1"),
        ("move", "prefill", "", "10000"),
    ):
        field = box(tab, section, name)
        field.fill("")
        field.press_sequentially(typed)
        assert field.input_value() == typed
        field.blur()
        assert field.input_value() == kept, (name, typed)
        message = tab.locator(f"#worked-{section} .we-message").inner_text()
        assert bool(message) == (typed != kept) and ("Set to" in message) == (typed != kept), (name, typed, message)
    assert not re.search(r"NaN|undefined|Infinity|object ", tab.locator("main").inner_text())


def test_bars_are_as_long_as_their_numbers(visit: Visitor) -> None:
    """Over the GPU's edge where memory is short; a shared prefix is stored in the first row only."""
    tab = visit("worked-example").page
    settled(tab)
    widths = "nodes => nodes.map(n => n.getBoundingClientRect().width)"
    weights, reserve, keys, values, free = tab.eval_on_selector_all(".we-bar > .we-piece", widths)
    whole = weights + reserve + keys + values
    assert free == 0
    assert weights / whole == pytest.approx(65_524_246_528 / (65_524_246_528 + 68 * 2**30), abs=0.005)
    assert keys == pytest.approx(values, abs=0.5)
    bar, edge = (tab.locator(f"#worked-capacity {name}").bounding_box() for name in (".we-bar", ".we-edge"))
    assert bar and edge
    assert (edge["x"] - bar["x"]) / bar["width"] == pytest.approx(
        85_520_809_984 / (65_524_246_528 + 68 * 2**30), abs=0.005
    )
    drawn(tab, lambda: control(tab, "capacity", "tp").select_option("2"))
    assert tab.eval_on_selector_all(".we-bar > .we-piece", widths)[4] > 10  # now some of it is free
    for requests, prefix in ((8, 16_384), (64, 8_192), (1, 16_384)):
        drawn(
            tab,
            lambda r=requests, p=prefix: (
                box(tab, "prefix", "requests").fill(str(r)),
                box(tab, "prefix", "prefix").fill(str(p)),
            ),
        )
        assert tab.locator(".we-rows").first.locator(".we-row").count() == requests
        assert tab.locator(".we-rows").last.locator(".is-shared").count() == 1
        assert tab.locator(".we-rows").last.locator(".is-pointer").count() == requests - 1
        row = tab.eval_on_selector_all(".we-group:nth-child(2) .we-row:first-child .we-piece", widths)
        share = sharing_of(START | {"requests": requests, "prefix": prefix}).shared_tokens / 32_768
        assert row[0] / sum(row) == pytest.approx(share, abs=0.01)


def test_the_columns_of_a_step_are_stacked_to_scale(visit: Visitor) -> None:
    tab = visit("worked-example").page
    settled(tab)
    heights = """(columns) => columns.map(
        (column) => [...column.querySelectorAll('.we-piece')].map((piece) => piece.getBoundingClientRect().height))"""
    step = tab.eval_on_selector_all(".we-chart:first-child .we-column", heights)
    token = tab.eval_on_selector_all(".we-chart:last-child .we-column", heights)
    assert len(step) == len(token) == 7
    assert {round(column[2], 1) for column in step} == {round(step[0][2], 1)}  # weights: the same for each batch
    assert sum(step[-1]) / sum(step[0]) == pytest.approx((65.524 + 64 * 8.590) / (65.524 + 8.590), rel=0.02)
    assert {round(column[0], 0) for column in token} == {round(token[0][0], 0)}  # cache: the same for each token
    assert token[0][2] / token[3][2] == pytest.approx(8, rel=0.05)  # weights: an eighth at batch 8


def test_every_control_draws_within_a_frame_and_asks_nobody(visit: Visitor) -> None:
    opened = visit("worked-example")
    tab = opened.page
    settled(tab)
    tab.wait_for_timeout(1_000)
    before, times = len(opened.asked), []
    for section in SECTIONS:
        for name in tab.locator(f"#worked-{section} [data-control]").evaluate_all("n => n.map(i => i.dataset.control)"):
            shown = tab.locator("main").inner_text()
            if control(tab, section, name).evaluate("n => n.tagName") == "SELECT":
                values = control(tab, section, name).locator("option").evaluate_all("n => n.map(o => o.value)")
                other = next(v for v in values if v != control(tab, section, name).input_value())
                drawn(tab, lambda s=section, n=name, v=other: control(tab, s, n).select_option(v))
            else:
                for key in ("ArrowLeft", "ArrowLeft", "ArrowRight", "ArrowLeft"):
                    drawn(tab, lambda s=section, n=name, k=key: control(tab, s, n).press(k))
            assert tab.locator("main").inner_text() != shown, (section, name)
            times.append(
                sum(map(float, tab.eval_on_selector_all("[data-draw-ms]", "n => n.map(w => w.dataset.drawMs)")))
            )
    drawn(tab, tab.locator(".we-peak").click)
    assert len(opened.asked) == before, opened.asked[before:]
    draws_within_a_frame(times)


def test_the_flow_by_keyboard_knows_the_case_and_stays_in_the_address(visit: Visitor) -> None:
    tab = visit("worked-example?flow=decode").page
    settled(tab)
    branch = tab.locator("details[data-branch]")
    assert branch.evaluate_all("n => n.map(d => d.dataset.branch)") == list(BRANCHES)
    assert tab.locator("details[open]").get_attribute("data-branch") == "decode"
    assert tab.locator(".we-verdict").first.inner_text() == "your case: 49.38 GiB short on each GPU"
    tab.locator("details[data-branch=capacity] summary").focus()
    tab.keyboard.press("Enter")
    tab.wait_for_function("new URL(location).searchParams.get('flow') === 'capacity'")
    assert tab.locator("details[open]").count() == 1
    assert tab.locator("details[open] li").first.is_visible()
    tab.keyboard.press("Space")
    tab.wait_for_function("!new URL(location).searchParams.has('flow')")
    drawn(tab, lambda: control(tab, "capacity", "tp").select_option("2"))
    assert tab.locator(".we-verdict").first.inner_text() == "your case: fits, 13.14 GiB free on each GPU"


def test_the_keyboard_reaches_every_control_in_order(visit: Visitor) -> None:
    tab = visit("worked-example").page
    settled(tab)
    tab.locator("#worked-capacity .we-preset").first.focus()
    seen = []
    for _ in range(60):
        seen.append(
            tab.evaluate(
                "[document.activeElement.closest('[id^=worked-]')?.id, document.activeElement.dataset.control]"
            )
        )
        tab.keyboard.press("Tab")
    for section in SECTIONS[:3]:
        names = tab.locator(f"#worked-{section} [data-control]").evaluate_all("n => n.map(i => i.dataset.control)")
        assert [name for where, name in seen if where == f"worked-{section}" and name] == names


def test_the_answer_is_read_out_once_the_reader_stops(visit: Visitor) -> None:
    tab = visit("worked-example").page
    settled(tab)
    control(tab, "capacity", "requests").press("ArrowLeft")
    tab.wait_for_function(
        "[...document.querySelectorAll('#worked-capacity .kv-sr')].some(n => n.textContent.includes('56.00 GiB'))"
    )
    assert "56.00 GiB" in (tab.locator("#worked-capacity .we-picture").get_attribute("aria-label") or "")
    assert tab.locator("#worked-bandwidth .kv-sr[role=status]").inner_text() == ""  # one voice at a time


@pytest.mark.parametrize("path", ["worked-example", "zh-worked-example"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_at_the_ends_of_the_controls(
    visit: Visitor, axe: Callable[[Tab], None], path: str, theme: str
) -> None:
    tab = visit(
        f"{path}?requests=64&tokens=131072&tp=16&block=1024&prefix=131072&cache=fp8&flow=quality", theme=theme
    ).page
    settled(tab)
    tab.wait_for_timeout(400)
    axe(tab)


def test_chinese_page_says_the_same(visit: Visitor) -> None:
    tab = visit("zh-worked-example", width=390, height=844).page
    settled(tab)
    assert out(tab, "each-time") == "2.863 ms" and out(tab, "once") == "36.00 GiB = 38.65 GB"
    assert (
        "8 条请求存 36.00 GiB，而不是 64.00 GiB，省 28.00 GiB" in tab.locator("#worked-prefix figcaption").inner_text()
    )
    for section in (*SECTIONS, "flow", "combine"):
        words = tab.locator(f"#worked-{section}").evaluate(
            """(node) => {
              const copy = node.cloneNode(true);
              copy.querySelectorAll('option, .kv-note').forEach((part) => part.remove());
              return copy.textContent;
            }"""
        )
        assert not re.search(r"[a-z]{4,} [a-z]{3,} [a-z]{3,}", words), section  # no English sentence left

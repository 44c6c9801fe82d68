"""The lab panel in a browser, on toy labs that take no model: what a visitor sees, leaves, links to and takes away."""

import csv
import io
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.serving import free_port, serving
from tests.browser.watching import Visit, Visitor, visits

TOY = "#lab-toy-sum"


@pytest.fixture(scope="module")
def lab_url(tmp_path_factory) -> Iterator[str]:
    port = free_port()
    lock_file = tmp_path_factory.mktemp("lock") / "device.lock"
    with serving(
        [sys.executable, "-m", "tests.browser.lab_site", str(port), str(lock_file)],
        port,
        {"GRADIO_ANALYTICS_ENABLED": "False"},
    ) as url:
        yield url


@pytest.fixture
def open_lab(browser, lab_url) -> Iterator[Visitor]:
    yield from visits(browser, lab_url)


def settings(**values) -> str:
    return "?" + "&".join(f"toy-sum.{name}={value}" for name, value in values.items())


def press(page: Page, what: str, lab: str = TOY) -> None:
    page.click(f"{lab} .lab-{what}")


def rows(page: Page, lab: str = TOY) -> list[list[str]]:
    """The table's cells, each with its spread below the number."""
    return page.eval_on_selector_all(
        f"{lab} .lab-table tbody tr", "trs => trs.map(tr => [...tr.children].map(c => c.firstChild.textContent))"
    )


def phase(page: Page, words: str, lab: str = TOY, timeout: float = 20_000) -> None:
    expect(page.locator(f"{lab} .lab-status")).to_contain_text(words, timeout=timeout)


def idle(page: Page, lab: str = TOY) -> None:
    page.wait_for_selector(f"{lab} .kv-widget[data-busy='0']", timeout=30_000)


def saved(page: Page, kind: str) -> tuple[str, str]:
    with page.expect_download() as waiting:
        page.click(f"{TOY} .lab-save[data-kind={kind}]")
    found = waiting.value
    return found.suggested_filename, found.path().read_text(encoding="utf-8")


@pytest.mark.parametrize("path", ["", "zh-home"])
def test_a_first_row_within_two_seconds_and_then_the_rest(open_lab, path):
    page = open_lab(path + settings(rows=4, pause_s=0.2)).page
    press(page, "measure")
    page.wait_for_selector(f"{TOY} .lab-table tbody tr", timeout=30_000)  # the first run imports torch on the server
    idle(page)
    start = time.monotonic()
    press(page, "measure")
    page.wait_for_function(
        f"document.querySelectorAll('{TOY} .lab-table tbody tr').length >= 1"
        f" && !document.querySelector('{TOY} .lab-result.is-old')"
    )
    assert time.monotonic() - start < 2
    page.wait_for_function(f"document.querySelectorAll('{TOY} .lab-table tbody tr').length >= 2")
    phase(page, "完成" if path else "Done in")
    assert [row[0] for row in rows(page)] == ["1", "2", "4", "8"]
    drawn = page.eval_on_selector(
        f"{TOY} .lab-plot", "p => ({n: p._fullData[0].y.length, bars: p._fullData[0].error_y.visible})"
    )
    assert drawn == {"n": 4, "bars": True}
    assert page.eval_on_selector(f"{TOY} .lab-plot", "p => p._fullLayout.yaxis.title.text") in (
        "Time (ms)",
        "时间 (ms)",
    )


def test_files_hold_the_record_that_is_shown(open_lab):
    page = open_lab(settings(rows=3, label="a%2Cb")).page
    press(page, "measure")
    phase(page, "Done in")
    name, text = saved(page, "json")
    record = json.loads(text)
    assert name == "toy-sum.json"
    assert list(record) == ["lab", "params", "columns", "rows", "summary", "provenance"]
    assert record["params"] == {"rows": 3, "pause_s": 0, "mode": "plain", "loud": False, "label": "a,b"}
    assert [f"{row['count']:,}" for row in record["rows"]] == [row[0] for row in rows(page)]
    assert [f"{row['sum_ms']:.4g}" for row in record["rows"]] == [row[1] for row in rows(page)]
    assert record["summary"] == {"numbers": 7}
    line = page.inner_text(f"{TOY} .lab-provenance")
    for fact in ("device", "implementation", "torch"):
        assert record["provenance"][fact] in line
    name, text = saved(page, "csv")
    assert name == "toy-sum.csv"
    table = list(csv.DictReader(io.StringIO(text)))
    assert [{key: float(value) for key, value in row.items()} for row in table] == record["rows"]


def test_a_link_carries_every_setting(open_lab):
    page = open_lab().page
    page.fill(f"{TOY} input[type=number] >> nth=0", "7")
    page.select_option(f"{TOY} select", "fault")
    page.check(f"{TOY} input[type=checkbox]")
    page.fill(f"{TOY} input[type=text]", "零 & <b>=1?")
    assert "toy-sum.rows=7" in page.url, "the address follows without a reload"
    link = page.get_attribute(f"{TOY} .lab-link", "href")
    for name in ("rows", "pause_s", "mode", "loud", "label"):
        assert f"toy-sum.{name}=" in link
    assert link.endswith("#lab-toy-sum")
    assert page.inner_text(f"{TOY} .lab-link")
    other = open_lab(link.split("/", 3)[3]).page
    other.wait_for_function(f"Math.abs(document.querySelector('{TOY}').getBoundingClientRect().top) < 120")
    assert other.input_value(f"{TOY} input[type=number] >> nth=0") == "7"
    assert other.input_value(f"{TOY} select") == "fault"
    assert other.is_checked(f"{TOY} input[type=checkbox]")
    assert other.input_value(f"{TOY} input[type=text]") == "零 & <b>=1?"
    assert other.input_value("#lab-toy-two select") == "plain", "a link is for one lab"
    command = other.locator(f"{TOY} .lab-command").text_content()
    assert "python -m explorer run toy-sum --set rows=7" in command
    assert "'label=零 & <b>=1?'" in command


@pytest.mark.parametrize("value", ["rows=9999", "rows=nan", "rows=", "mode=rm", "rows=-1", "pause_s=1e999"])
def test_a_wrong_link_falls_back_to_defaults(open_lab, value):
    page = open_lab(f"?toy-sum.{value}").page
    assert page.input_value(f"{TOY} input[type=number] >> nth=0") == "3"
    assert page.input_value(f"{TOY} select") == "plain"
    press(page, "measure")
    phase(page, "Done in")


def test_the_expected_time_follows_the_settings(open_lab):
    page = open_lab().page
    said = page.locator(f"{TOY} .lab-expected")
    expect(said).to_contain_text("about 0.1 s", timeout=20_000)
    page.fill(f"{TOY} input[type=number] >> nth=1", "3")
    expect(said).to_contain_text("about 9.1 s")
    page.fill(f"{TOY} input[type=number] >> nth=1", "60")
    expect(said).to_contain_text("a run may take 30 s")


def test_stop_keeps_what_was_measured(open_lab):
    page = open_lab(settings(rows=100, pause_s=0.3)).page
    press(page, "measure")
    page.wait_for_function(f"document.querySelectorAll('{TOY} .lab-table tbody tr').length >= 2")
    press(page, "stop")
    phase(page, "Stopped. The rows", timeout=8_000)  # 30 s are left to run
    kept = json.loads(saved(page, "json")[1])
    assert len(kept["rows"]) == len(rows(page)) >= 2
    assert kept["provenance"]["complete"] is False
    assert page.get_attribute(f"{TOY} .lab-stop", "aria-disabled") == "true"
    assert page.get_attribute(f"{TOY} .lab-measure", "aria-disabled") == "false"
    expect(page.locator(f"{TOY} .lab-answer")).to_contain_text("An incomplete run")


def test_stop_before_the_first_row(open_lab):
    page = open_lab(settings(pause_s=60)).page
    press(page, "measure")
    phase(page, "row 1")
    press(page, "stop")
    phase(page, "Stopped. Nothing was measured.")
    assert rows(page) == []


def test_two_visitors_queue_politely(open_lab):
    first = open_lab(settings(rows=2, pause_s=2), fresh=True).page
    second = open_lab("zh-home" + settings(rows=1), fresh=True).page
    press(first, "measure")
    phase(first, "row 1")
    press(second, "measure")
    phase(second, "前面还有 1 个")
    assert rows(second) == []
    phase(first, "Done in")
    phase(second, "完成")
    assert len(rows(first)) == 2 and len(rows(second)) == 1


def test_closing_the_tab_stops_the_work(open_lab):
    leaving = open_lab(settings(pause_s=60), fresh=True).page
    press(leaving, "measure")
    phase(leaving, "row 1")
    staying = open_lab(settings(rows=1), fresh=True).page
    press(staying, "measure")
    phase(staying, "Ahead of yours: 1")
    start = time.monotonic()
    leaving.close()
    phase(staying, "Done in", timeout=6_000)
    assert time.monotonic() - start < 5


def test_leaving_the_queue_gives_the_place_up(open_lab):
    busy = open_lab(settings(pause_s=60), fresh=True).page
    press(busy, "measure")
    phase(busy, "row 1")
    impatient = open_lab(settings(rows=1), fresh=True).page
    press(impatient, "measure")
    phase(impatient, "Ahead of yours: 1")
    press(impatient, "stop")
    phase(impatient, "Stopped. Nothing")
    press(busy, "stop")
    phase(busy, "Stopped")
    press(impatient, "measure")
    phase(impatient, "Done in")


def test_one_run_at_a_time_for_each_visitor(open_lab):
    page = open_lab(settings(pause_s=60)).page
    press(page, "measure")
    phase(page, "row 1")
    press(page, "measure", "#lab-toy-two")
    expect(page.locator("#lab-toy-two .lab-error")).to_contain_text("still running", timeout=15_000)
    press(page, "stop")
    phase(page, "Stopped")
    press(page, "measure", "#lab-toy-two")
    phase(page, "Done in", "#lab-toy-two")


def test_an_error_is_one_line_and_the_last_result_stays(open_lab):
    page = open_lab("zh-home").page
    press(page, "measure")
    phase(page, "完成")
    before = rows(page)
    page.select_option(f"{TOY} select", "fault")
    press(page, "measure")
    phase(page, "没有完成")
    line = page.inner_text(f"{TOY} .lab-error")
    assert line.startswith("运行失败（KeyError）") and "\n" not in line and "/secret" not in line
    assert rows(page) == before
    assert saved(page, "csv")[1].count("\n") == 4
    assert not page.locator(".toast-body").count()


def test_the_deadline_is_told(open_lab):
    page = open_lab("?toy-two.pause_s=60").page
    press(page, "measure", "#lab-toy-two")
    expect(page.locator("#lab-toy-two .lab-error")).to_contain_text("longer than the 2 s it may", timeout=20_000)


@pytest.mark.parametrize(("path", "width"), [("", 1280), ("zh-home", 390)])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_and_narrow_screens(open_lab, axe, path, width, theme):
    page = open_lab(path, width=width, theme=theme).page
    axe(page)
    page.select_option(f"{TOY} select", "plain")
    press(page, "measure")
    idle(page)
    page.locator(f"{TOY} details").last.locator("summary").click()
    page.select_option("#lab-toy-two select", "fault")
    press(page, "measure", "#lab-toy-two")
    idle(page, "#lab-toy-two")
    axe(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_an_earlier_result_can_be_read_while_the_next_one_is_made(open_lab, axe, theme):
    page = open_lab(settings(rows=2, pause_s=0.1), theme=theme).page
    press(page, "measure")
    idle(page)
    # The next run is asked for and never answered.
    page.route("**/queue/join*", lambda route: None)
    press(page, "measure")
    page.wait_for_selector(f"{TOY} .lab-result.is-old")
    axe(page)


def test_it_works_by_keyboard_and_speaks(open_lab):
    page = open_lab(settings(rows=1, pause_s=0.6)).page
    page.focus(f"{TOY} .lab-measure")
    page.keyboard.press("Enter")
    phase(page, "row 1")
    assert page.get_attribute(f"{TOY} .lab-status", "aria-live") == "polite"
    idle(page)
    assert page.evaluate("document.activeElement.className").endswith("lab-measure"), "the focus is not lost"
    table = page.locator(f"{TOY} table")
    assert "Toy sum 1 row" in table.locator("caption").text_content()
    assert table.locator("thead th[scope=col]").count() == 2
    assert table.locator("tbody th[scope=row]").count() == 1
    assert table.locator("thead").inner_text().count("measured") == 1
    align = page.eval_on_selector(f"{TOY} tbody td", "cell => getComputedStyle(cell).textAlign")
    assert align == "right"


def test_nothing_of_the_machine_is_in_the_page(open_lab):
    visit: Visit = open_lab()
    text = visit.page.content()
    for leak in (str(Path(__file__).parents[2]), str(Path.home()), "site-packages", "device.lock"):
        assert leak not in text

import asyncio
import json
import math
import time
from contextlib import aclosing
from typing import ClassVar

import gradio as gr
import pytest

from explorer.errors import InputError
from explorer.labs.base import LABS, Chart
from explorer.measuring import lock
from explorer.measuring.record import Column, Origin, Record
from explorer.params import param, specs_of
from explorer.registry import Registry
from explorer.text import LANGUAGES, Text
from pages import _content, _lab_job, _lab_panel
from pages._lab_declaration import declaration, shown
from pages._lab_panel import lab_panel
from pages._lab_result import cell, ending, figure, provenance_line, result, spread, summary
from pages._page import Ctx, Page
from tests.explorer.labs.toy import ToyLab

RUN = "0123456789abcdef"


@pytest.fixture(autouse=True)
def toys(monkeypatch):
    labs: Registry = Registry("lab", "explorer.labs")
    labs._discovered = True
    labs.register(ToyLab)
    monkeypatch.setattr(_lab_job, "LABS", labs)
    monkeypatch.setattr(_lab_panel, "LABS", labs)
    monkeypatch.setattr(lock, "_SHARED", [lock.DeviceLock()])


def sent(**values):
    return {"run": RUN, "values": values}


def states_of(what, *, session="s", lang="en", deadline_s=20.0):
    async def collect():
        async with aclosing(_lab_job.measure("toy-sum", what, session, lang, deadline_s)) as states:
            return [state async for state in states]

    return asyncio.run(collect())


def test_a_run_ends_with_everything_that_is_shown():
    states = states_of(sent(rows=2))
    last = states[-1]
    assert (last["phase"], last["run"], last["complete"]) == ("done", RUN, True)
    assert [row[0] for row in last["rows"]] == [["1", None], ["2", None]]
    assert [len(row) for row in last["rows"]] == [2, 2], "the spread stands beside its number"
    assert "–" in last["rows"][0][1][1]
    record = Record.from_json(last["json"])
    assert last["csv"] == record.to_csv()
    assert last["figure"]["data"][0]["y"] == [row["sum_ms"] for row in record.rows]
    assert last["answer"] is None and last["summary"] == [["numbers", "3"]]
    assert len({state["beat"] for state in states}) == len(states)
    json.dumps(states)


def test_states_come_even_when_nothing_happens():
    """Only between two states does Gradio see that a visitor has left."""
    states = states_of(sent(rows=1, pause_s=1.7))
    assert sum(state["phase"] == "running" and not state["rows"] for state in states) >= 4


@pytest.mark.parametrize(
    ("what", "line"),
    [
        (None, "not understood"),
        ("x", "not understood"),
        ([], "not understood"),
        ({}, "not understood"),
        ({"run": RUN}, "not understood"),
        ({"run": "x", "values": {}}, "not understood"),
        ({"run": RUN.upper(), "values": {}}, "not understood"),
        ({"run": 5, "values": {}}, "not understood"),
        ({"run": RUN, "values": []}, "not understood"),
        (sent(**{f"v{i}": 1 for i in range(51)}), "not understood"),
        (sent(rows=None), "not understood"),
        (sent(rows=[1]), "not understood"),
        (sent(rows={"a": 1}), "not understood"),
        (sent(rows=10**30), "expected 1 to 500"),
        (sent(rows=-5), "expected 1 to 500"),
        (sent(rows=1e999), "whole number"),
        (sent(rows=float("nan")), "whole number"),
        (sent(rows="0x10"), "whole number"),
        (sent(rows=""), "whole number"),
        (sent(mode="<script>"), "one of plain"),
        (sent(label="x" * 100_000), "1 to 20 characters"),
        (sent(label=""), "1 to 20 characters"),
        (sent(lines=1), "no parameter 'lines'"),
        (sent(**{"x" * 100_000: 1}), "no parameter"),
        (sent(**{"a\nb\x00": 1}), "no parameter"),
    ],
    ids=range(25),
)
def test_whatever_is_sent_gets_one_line(what, line):
    (state,) = states_of(what)
    assert state["phase"] == "refused"
    assert line in state["error"]
    assert len(state["error"]) <= 300 and state["error"].isprintable()
    assert not _lab_job._SESSIONS and not _lab_job._RUNS


def test_errors_come_in_the_pages_language():
    (state,) = states_of(sent(rows=-5), lang="zh")
    assert "应为1 到 500" in state["error"]
    (state,) = states_of(None, lang="zh")
    assert "看不懂这个请求" in state["error"]


@pytest.mark.parametrize("mode", ["fault", "memory", "bad-row"])
def test_a_failing_run_says_so_in_one_line(mode):
    last = states_of(sent(mode=mode))[-1]
    assert last["phase"] == "failed"
    assert last["error"].isprintable()
    assert "/secret" not in json.dumps(last) and "Traceback" not in json.dumps(last)


def test_the_deadline_is_the_panels():
    last = states_of(sent(pause_s=50), deadline_s=0.4)[-1]
    assert last["phase"] == "failed" and "0.4 s" in last["error"]


async def first(states, truth):
    async for state in states:
        if truth(state):
            return state
    raise AssertionError("it ended before")


async def gone():
    ends_at = time.monotonic() + 3
    while lock.device_lock().jobs():
        assert time.monotonic() < ends_at, "the device is still taken"
        await asyncio.sleep(0.02)


def test_stop_keeps_the_rows():
    async def story():
        async with aclosing(_lab_job.measure("toy-sum", sent(rows=100, pause_s=0.1), "s", "en", 30)) as states:
            await first(states, lambda state: len(state["rows"]) >= 2)
            assert not _lab_job.stop("f" * 16)
            assert not _lab_job.stop(None) and not _lab_job.stop(["x"]) and not _lab_job.stop({})
            assert _lab_job.stop(RUN)
            last = [state async for state in states][-1]
        assert last["phase"] == "stopped" and "kept" in last["text"]
        assert 2 <= len(Record.from_json(last["json"]).rows) < 100
        assert last["complete"] is False
        await gone()

    asyncio.run(story())


@pytest.mark.parametrize("phase", ["running", "queued"])
def test_leaving_frees_the_device_at_once(phase):
    async def story():
        held = lock.device_lock().take() if phase == "queued" else None
        states = _lab_job.measure("toy-sum", sent(pause_s=50), "s", "en", 60)
        await first(states, lambda state: state["phase"] == phase)
        await states.aclose()
        if held is not None:
            held.leave()
        await gone()
        assert not _lab_job._SESSIONS and not _lab_job._RUNS

    asyncio.run(story())


def test_the_plain_generator_for_zero_gpu():
    states = list(_lab_job.measure_on_zero_gpu("toy-sum", sent(rows=2), "en", 20.0))
    assert states[-1]["phase"] == "done" and len(states[-1]["rows"]) == 2
    (refused,) = _lab_job.measure_on_zero_gpu("toy-sum", sent(rows=-1), "zh", 20.0)
    assert refused["phase"] == "refused"
    failed = list(_lab_job.measure_on_zero_gpu("toy-sum", sent(mode="fault"), "en", 20.0))[-1]
    assert failed["phase"] == "failed" and "KeyError" in failed["error"]
    assert _lab_job._wanted_s("toy-sum", sent(rows=10, pause_s=1), "en", 120.0) == 35
    assert _lab_job._wanted_s("toy-sum", sent(rows=500, pause_s=1), "en", 120.0) == 120


def test_one_run_a_session_and_a_polite_queue():
    async def story():
        a = _lab_job.measure("toy-sum", sent(rows=1, pause_s=0.6), "a", "en", 30)
        await first(a, lambda state: state["phase"] == "running")
        again = [state async for state in _lab_job.measure("toy-sum", {"run": "b" * 16, "values": {}}, "a", "en", 30)]
        assert [state["phase"] for state in again] == ["refused"] and "still running" in again[0]["error"]
        stolen = [state async for state in _lab_job.measure("toy-sum", sent(), "thief", "en", 30)]
        assert stolen[0]["phase"] == "refused", "another run's id is no key to it"
        b = _lab_job.measure("toy-sum", {"run": "b" * 16, "values": {"rows": 1}}, "b", "zh", 30)
        waiting = await first(b, lambda state: state["phase"] == "queued")
        assert "前面还有 1 个" in waiting["text"]
        rest_a, rest_b = await asyncio.gather(drain(a), drain(b))
        assert rest_a[-1]["phase"] == rest_b[-1]["phase"] == "done"

    asyncio.run(story())


async def drain(states):
    return [state async for state in states]


def test_a_full_queue_is_said(monkeypatch):
    monkeypatch.setattr(lock, "MOST_WAITING", 0)
    (state,) = states_of(sent())
    assert state["phase"] == "refused" and "waiting already" in state["error"]
    assert not _lab_job._SESSIONS


@pytest.mark.parametrize(
    ("values", "line", "wrong"),
    [
        ({"rows": 2}, "Takes about 0.1 s on this machine (CPU).", False),
        ({"rows": 10, "pause_s": 10}, "Would take about 100 s here; a run may take 20 s.", False),
        ({"rows": 501}, "rows=501: expected 1 to 500", True),
        (None, "not understood", True),
        ("x" * 10, "not understood", True),
        ({"rows": [[]]}, "not understood", True),
    ],
    ids=range(6),
)
def test_plan(values, line, wrong):
    found = _lab_job.plan("toy-sum", values, "en", 20.0)
    assert line in found["text"] and found["wrong"] is wrong


def test_declaration_follows_the_lab():
    for lang in LANGUAGES:
        found = declaration(ToyLab, lang)
        json.dumps(found)
        kinds = {entry["name"]: entry["kind"] for entry in found["controls"]}
        assert kinds == {"rows": "range", "pause_s": "range", "mode": "select", "loud": "check", "label": "text"}
        assert all(entry["key"] == f"toy-sum.{entry['name']}" for entry in found["controls"])
    assert found["controls"][0]["scale"] == "log2", "500 to 1 is wide"
    assert found["controls"][3]["help"] == "多说一些。"
    assert [column["name"] for column in found["columns"]] == ["count", "sum_ms"]


@pytest.mark.parametrize(
    ("lang", "unit", "of_one", "choice"),
    [("en", "tokens", "token", "2,048 tokens"), ("zh", "个 token", "个 token", "2,048 个 token")],
)
def test_units_stand_behind_values_as_the_language_has_them(lang, unit, of_one, choice):
    controls = {c["name"]: c for c in declaration(LABS["paged-attention"], lang)["controls"]}
    assert (controls["kv_len"]["unit"], controls["kv_len"]["unitOfOne"]) == (unit, of_one)
    labels = [
        label
        for control in declaration(LABS["fragmentation"], lang)["controls"]
        for _, label in control.get("choices", [])
    ]
    assert choice in labels


def test_a_number_without_a_range_has_no_control():
    class Endless(ToyLab):
        pass

    Endless.__dataclass_fields__ = dict(ToyLab.__dataclass_fields__)
    field = param(1, Text("n", "n"))
    field.name, field.type = "n", int
    Endless.__dataclass_fields__["n"] = field
    field._field_type = ToyLab.__dataclass_fields__["rows"]._field_type
    assert specs_of(Endless)[-1].name == "n"
    with pytest.raises(ValueError, match="needs a minimum"):
        declaration(Endless, "en")


@pytest.mark.parametrize("lab", list(LABS), ids=lambda lab: lab.name)
@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_real_lab_can_be_shown(lab, lang):
    found = declaration(lab, lang)
    assert found["controls"] and found["columns"]
    assert set(lab.column_titles) >= {column.name for column in lab.columns}
    chart = lab.chart
    if chart:
        names = {column.name: column for column in lab.columns}
        assert {chart.x, *chart.y, *chart.low.values(), *chart.high.values()} <= set(names)
        assert len({names[y].unit for y in chart.y}) == 1, "one axis, one unit"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (23040, "23,040"),
        (True, "yes"),
        (0.123456, "0.1235"),
        (123456.7, "123,457"),
        (float("nan"), "–"),
        (None, "–"),
        ("bf16", "bf16"),
        (0, "0"),
        (0.0, "0"),
    ],
)
def test_cell(value, text):
    assert cell(value, "en") == text


def made(chart, rows):
    class Charted(ToyLab):
        pass

    Charted.chart = chart
    names = ("n", "a_ms", "low", "high")
    Charted.columns = tuple(Column(name, "ms" if name != "n" else "tokens", Origin.MEASURED) for name in names)
    Charted.column_titles = {name: Text(name.upper(), name) for name in names}
    return Charted, Record("toy-sum", {}, Charted.columns, rows)


def test_figure_has_axes_units_and_spread():
    chart = Chart(x="n", y=("a_ms",), log_x=True, low={"a_ms": "low"}, high={"a_ms": "high"})
    rows = [
        {"n": 8, "a_ms": 3.0, "low": 2.5, "high": 4.0},
        {"n": 2, "a_ms": 1.0, "low": 0.5, "high": 1.25},
        {"n": 4, "a_ms": None, "low": None, "high": None},
    ]
    lab, record = made(chart, rows)
    drawn = figure(lab, record, "en")
    (trace,) = drawn["data"]
    assert trace["x"] == [2, 4, 8]
    assert trace["y"] == [1.0, None, 3.0]
    assert trace["error_y"]["array"] == [0.25, None, 1.0]
    assert trace["error_y"]["arrayminus"] == [0.5, None, 0.5]
    assert drawn["layout"]["xaxis"]["title"]["text"] == "N (tokens)"
    assert drawn["layout"]["xaxis"]["type"] == "log"
    assert drawn["layout"]["yaxis"]["title"]["text"] == "A_MS (ms)"
    assert [column.name for column in shown(lab)] == ["n", "a_ms"]


def test_bars_are_named_and_keep_their_order():
    lab, record = made(Chart(x="n", y=("a_ms",), kind="bar"), [{"n": "b", "a_ms": 1}, {"n": "a", "a_ms": 2}])
    (trace,) = figure(lab, record, "en")["data"]
    assert (trace["type"], trace["x"], trace["y"]) == ("bar", ["b", "a"], [1, 2])


def test_spreads_are_found_by_name_too():
    class Named(ToyLab):
        chart = None
        columns = tuple(
            Column(name, "x", Origin.MEASURED)
            for name in ("ratio", "ratio_p20", "ratio_p80", "a_ms", "a_p20_ms", "a_p80_ms", "lonely_p20", "p20")
        )
        column_titles: ClassVar = {"ratio": Text("Ratio", "倍数")}

    assert [column.name for column in shown(Named)] == ["ratio", "a_ms", "lonely_p20", "p20"]
    assert spread(Named, {"ratio_p20": 1.5, "ratio_p80": 2.5}, "ratio") == "1.5–2.5"
    assert spread(Named, {"a_p20_ms": 1.0, "a_p80_ms": None}, "a_ms") is None
    assert spread(Named, {}, "p20") is None
    values = {"ratio": 2.0, "ratio_p20": 1.5, "ratio_p80": 2.5, "equal": True}
    assert summary(Named, values, "zh") == [["倍数", "2 × (1.5–2.5)"], ["equal", "是"]]


def test_no_chart_or_no_row_no_figure():
    lab, record = made(None, [{"n": 1}])
    assert figure(lab, record, "en") is None
    lab, record = made(Chart(x="n", y=("a_ms",)), [])
    assert figure(lab, record, "en") is None


def test_provenance_line_says_what_is_known():
    facts = {
        "device": "AMD EPYC",
        "threads": 2,
        "dtype": "bf16",
        "implementation": "engine",
        "model": "M",
        "weights": "ab",
    }
    facts |= {"repeats": 5, "warmup": 1, "clock": "perf_counter", "torch": "2", "transformers": "5", "commit": "c"}
    facts |= {"date": "2026-01-02T03:04:05Z", "load_average_1m": 0.5, "jobs_waiting": 2}
    line = provenance_line(Record("x", {}, (), provenance=facts), "en")
    for part in (
        "AMD EPYC, 2 threads",
        "bf16",
        "M (weights ab)",
        "5 repeats",
        "2026-01-02 03:04:05 UTC",
        "2 more waiting",
    ):
        assert part in line
    assert provenance_line(Record("x", {}, (), provenance={"dtype": "bf16"}), "zh") == "bf16"


def test_counts_that_differ_by_part_are_alternatives():
    facts = {"repeats": "5, 31", "warmup": "1, 2", "clock": "perf_counter"}
    line = provenance_line(Record("x", {}, (), provenance=facts), "en")
    assert line == "medians of 5 or 31 repeats after 1 or 2 warm-up runs, perf_counter"
    assert "预热 1 或 2 次，再重复 5 或 31 次" in provenance_line(Record("x", {}, (), provenance=facts), "zh")


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"load_average_1m": 2.5, "load_average_end_1m": 2.5}, False),
        ({"load_average_1m": 0.1, "load_average_end_1m": 2.51}, True),
        ({"load_average_1m": 4.0, "load_average_end_1m": 2.0}, True),
        ({"load_average_1m": None, "load_average_end_1m": None}, False),
    ],
)
@pytest.mark.parametrize(("lang", "words"), [("en", "Other programs were using"), ("zh", "有别的程序")])
def test_an_answer_says_when_others_had_the_machine(facts, said, lang, words):
    record = Record("toy-sum", {}, ToyLab.columns, [], {"numbers": 3}, facts | {"cpu_count": 2})
    assert (words in ending(Answering(), record, lang)["answer"]) == said


def test_one_point_stands_within_two_octaves():
    lab, record = made(Chart(x="n", y=("a_ms",), log_x=True), [{"n": 1, "a_ms": 1.0}])
    assert figure(lab, record, "en")["layout"]["xaxis"]["range"] == [math.log10(0.5), math.log10(2)]
    lab, record = made(Chart(x="n", y=("a_ms",), log_x=True), [{"n": 1, "a_ms": 1.0}, {"n": 2, "a_ms": 1.0}])
    assert "range" not in figure(lab, record, "en")["layout"]["xaxis"]


class Answering(ToyLab):
    def answer(self, summary):
        return Text(f"{summary['numbers']} numbers", f"{summary['numbers']} 个数")


def test_an_answer_takes_the_place_of_names():
    record = Record("toy-sum", {}, ToyLab.columns, [], {"numbers": 3}, {"complete": True})
    found = ending(Answering(), record, "zh")
    assert (found["answer"], found["summary"]) == ("3 个数", [])
    assert result(Answering(), record, "zh")["rows"] == []


def test_both_languages_have_the_same_texts_with_the_same_places():
    en, zh = (_content.strings("lab_panel", lang) for lang in LANGUAGES)
    assert list(en) == list(zh)
    for key in en:
        places = [sorted({part.split("}")[0] for part in text[key].split("{")[1:]}) for text in (en, zh)]
        assert places[0] == places[1], key


def test_the_panel_keeps_its_endpoints_private():
    with gr.Blocks() as blocks:
        panel = lab_panel(Ctx("en", Page("", 0, 0, Text("a", "a"), lambda ctx: None), blocks), "toy-sum")
    assert panel.elem_id == "lab-toy-sum"
    assert all(fn.api_visibility == "private" for fn in blocks.fns.values())
    running = next(fn for fn in blocks.fns.values() if fn.concurrency_id == "device")
    assert running.show_progress == "hidden"
    with pytest.raises(InputError), gr.Blocks() as blocks:
        lab_panel(Ctx("en", Page("", 0, 0, Text("a", "a"), lambda ctx: None), blocks), "nope")

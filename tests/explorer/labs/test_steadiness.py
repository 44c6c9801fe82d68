"""When an answer says that its times should be taken again."""

import os

import pytest

from explorer.labs._steadiness import between, remark, steadiness

ROWS = [
    {"step_p20_ms": 2.0, "step_p80_ms": 3.0, "other_p20_ms": 1.0, "other_p80_ms": 1.1},
    {"step_p20_ms": 5.0, "step_p80_ms": 6.0, "other_p20_ms": 1.0, "other_p80_ms": 2.5},
]
QUIET = {"spread": 1.99, "load_average": 2.5, "cpu_count": 2}


def test_the_largest_spread_of_the_named_times(monkeypatch):
    monkeypatch.setattr(os, "getloadavg", lambda: (5.823, 1.0, 1.0), raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert steadiness(ROWS, "step") == {"spread": 1.5, "load_average": 5.82, "cpu_count": 2}
    assert steadiness(ROWS, "step", "other")["spread"] == 2.5


def test_a_system_that_tells_no_load(monkeypatch):
    monkeypatch.delattr(os, "getloadavg", raising=False)
    found = steadiness(ROWS, "step")
    assert found["load_average"] is None and remark(found).en == remark(found).zh == ""


@pytest.mark.parametrize(
    ("changed", "en", "zh"),
    [
        ({}, "", ""),
        ({"load_average": 2.51}, "load average 2.51, 2 cores", "系统负载 2.51，2 核"),
        ({"spread": 2.0}, "the 80th percentile is 2.0 times the 20th", "2.0 倍"),
        ({"load_average": None, "spread": 9.04}, "9.0 times the 20th", "9.0 倍"),
    ],
)
def test_what_is_said(changed, en, zh):
    said = remark(QUIET | changed)
    assert en in said.en and zh in said.zh
    assert bool(said.en) == bool(said.zh) == bool(changed)


def test_a_range():
    assert between(0.96, 12.34).en == "(1.0 to 12.3)" and between(0.96, 12.34).zh == "（1.0 到 12.3）"

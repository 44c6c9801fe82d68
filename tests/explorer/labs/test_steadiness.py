"""When an answer says that its times should be taken again."""

import pytest

from explorer.labs._steadiness import between, remark, steadiness

ROWS = [
    {"step_p20_ms": 2.0, "step_p80_ms": 3.0, "other_p20_ms": 1.0, "other_p80_ms": 1.1},
    {"step_p20_ms": 5.0, "step_p80_ms": 6.0, "other_p20_ms": 1.0, "other_p80_ms": 2.5},
]


def test_the_largest_spread_of_the_named_times():
    assert steadiness(ROWS, "step") == {"spread": 1.5}
    assert steadiness(ROWS, "step", "other") == {"spread": 2.5}


@pytest.mark.parametrize(
    ("spread", "en", "zh"),
    [
        (1.99, "", ""),
        (2.0, "the 80th percentile is 2.0 times the 20th", "2.0 倍"),
        (9.04, "9.0 times the 20th", "9.0 倍"),
    ],
)
def test_what_is_said(spread, en, zh):
    said = remark({"spread": spread})
    assert en in said.en and zh in said.zh
    assert bool(said.en) == bool(said.zh) == bool(en)


def test_a_range():
    assert between(0.96, 12.34).en == "(1.0 to 12.3)" and between(0.96, 12.34).zh == "（1.0 到 12.3）"

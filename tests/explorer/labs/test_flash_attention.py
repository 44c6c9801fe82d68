"""The lab flash-attention: equal results, and slopes that follow from measured peaks."""

import math
import re

import pytest
import torch

from explorer import params
from explorer.labs import flash_attention as module
from explorer.labs.base import LABS
from explorer.labs.runner import Finished, run_lab


def record_of(name, **settings):
    for event in run_lab(params.build(LABS[name], settings)):
        if isinstance(event, Finished):
            return event.record
    raise AssertionError("the run did not finish")


@pytest.fixture(scope="module")
def record():
    return record_of("flash-attention", max_len=4096, num_heads=2, head_dim=64, rounds=1)


def test_rows(record):
    assert [row["seq_len"] for row in record.rows] == [512, 1024, 2048, 4096]
    assert [row["naive_ms"] is None for row in record.rows] == [False, False, True, True]
    assert record.rows[1]["scores_bytes"] == 2 * 1024 * 1024 * 4
    assert record.summary["max_abs_difference"] < 1e-5
    assert record.summary["compared_at"] == 1024
    assert record.provenance["dtype"] == "fp32"


@pytest.mark.skipif(torch.cuda.is_available(), reason="counts the CPU's allocator")
def test_peaks_hold_what_they_must(record):
    """Stored: Q, K, V, the scores and their softmax at once. Flash: Q, K, V, output, and scratch that does not grow."""
    for row in record.rows:
        one = row["seq_len"] * 2 * 64 * 4
        assert 4 * one <= row["flash_peak_bytes"] <= 6 * one + torch.get_num_threads() * (1 << 20)
        if row["naive_peak_bytes"] is not None:
            assert row["naive_peak_bytes"] >= 3 * one + 2 * row["scores_bytes"]


def test_slopes_follow_from_the_rows(record):
    both = record.rows[:2]
    naive = math.log2(both[1]["naive_peak_bytes"] / both[0]["naive_peak_bytes"])
    assert record.summary["naive_peak_memory_slope"] == pytest.approx(naive)
    flash = math.log2(record.rows[3]["flash_peak_bytes"] / record.rows[1]["flash_peak_bytes"]) / 2
    assert record.summary["flash_peak_memory_slope"] == pytest.approx(flash), "three even steps: the ends decide"
    assert record.summary["peak_memory_slope"] == {"flash": pytest.approx(flash), "naive": pytest.approx(naive)}
    assert naive > 1.6
    for way, rows in (("naive", both), ("flash", record.rows)):
        points = [(row["seq_len"], row[f"{way}_ms"]) for row in rows][-3:]
        assert record.summary[f"{way}_time_slope"] == pytest.approx(module.log_slope(points)), way


def test_log_slope():
    assert module.log_slope([(x, 3 * x**1.5) for x in (2, 4, 8)]) == pytest.approx(1.5)


def test_a_flash_that_stores_its_scores_is_seen(monkeypatch):
    """The same lab with flash replaced by the other: the slopes are then equal."""
    monkeypatch.setattr(
        module, "flash_attention", lambda q, k, v, cu_seqlens, max_q_len: module.naive_attention(q, k, v)
    )
    record = record_of("flash-attention", max_len=4096, num_heads=1, head_dim=64, rounds=1)
    assert record.summary["flash_peak_memory_slope"] > 1.8


def test_the_answer_in_both_languages():
    summary = {
        "naive_peak_memory_slope": 1.891,
        "flash_peak_memory_slope": 0.982,
        "naive_time_slope": 1.773,
        "flash_time_slope": 2.104,
        "compared_at": 1024,
        "peak_memory_ratio": 13.46,
        "time_ratio": 4.04,
    }
    answer = LABS["flash-attention"]().answer(summary)
    assert answer.en == (
        "With stored scores, peak memory grows with the power 1.89 of the length and time with 1.77; with flash, 0.98 "
        "and 2.10. At 1,024 tokens storing them takes 13.5 times flash's memory and 4.0 times its time."
    )
    numbers = re.findall(r"\d[\d,.]*\d", answer.zh)
    assert numbers == ["1.89", "1.77", "0.98", "2.10", "1,024", "13.5", "4.0"]


def test_a_real_run_is_answered(record):
    assert "1,024 tokens" in LABS["flash-attention"]().answer(record.summary).en

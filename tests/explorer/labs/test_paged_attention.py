"""The lab paged-attention: equal answers on pages and on rows, exact bytes, and runs that fit the context."""

import pytest

from explorer import params
from explorer.engine.stores.paged import PagedStore
from explorer.errors import InputError, ResourceError
from explorer.labs.base import LABS
from explorer.labs.paged_attention import run_length
from explorer.labs.runner import Finished, RowAdded, run_lab
from explorer.measuring import memory


def record_of(**settings):
    for event in run_lab(params.build(LABS["paged-attention"], settings)):
        if isinstance(event, Finished):
            return event.record
    raise AssertionError("the run did not finish")


def test_equal_answers_and_bytes_by_hand():
    """2 requests of 300 tokens: 19 blocks of 16 each, 4 slots unfilled; 23,040 B a token in bf16."""
    record = record_of(kv_len=300, batch=2, rounds=3)
    assert [row["kv_len"] for row in record.rows] == [256, 300]
    last = record.rows[-1]
    assert last["read_bytes"] == last["contiguous_bytes"] == 2 * 300 * 23_040
    assert last["paged_bytes"] == 2 * 19 * 16 * 23_040
    assert record.summary["max_abs_difference"] <= 0.01, "bf16: outputs of a mean of 300 normal values"
    assert last["time_ratio_p20"] <= last["time_ratio_p80"]
    assert record.summary["time_ratio"] == last["time_ratio"] > 0
    assert record.provenance["repeats"] == 8, "one round in each of eight placements"
    assert record.provenance["placements"] == 8 and "block_size 16" in record.provenance["implementation"]


def test_full_precision_answers_agree_to_rounding():
    assert record_of(kv_len=70, batch=1, block_size=8, rounds=3, dtype="fp32").summary["max_abs_difference"] <= 1e-5


def test_a_wrong_answer_is_seen(monkeypatch):
    right = PagedStore.attend
    monkeypatch.setattr(PagedStore, "attend", lambda *args: right(*args) + 0.5)
    assert record_of(kv_len=40, batch=1, rounds=3).summary["max_abs_difference"] > 0.4


@pytest.mark.parametrize(
    ("kv_len", "block_size", "run"),
    [(2048, 16, 2048), (2049, 16, 1040), (300, 16, 304), (8192, 256, 2048), (16, 256, 256), (5000, 8, 1672)],
)
def test_runs_fit_the_context(kv_len, block_size, run):
    assert run_length(kv_len, block_size) == run
    assert run % block_size == 0 and -(-kv_len // run) * run - kv_len < (block_size + 1) * -(-kv_len // run)


def test_what_does_not_fit_is_refused_before_anything_is_measured(monkeypatch):
    """Room for 256 tokens of 4 requests, five times over, and not for 300."""
    monkeypatch.setattr(memory, "available_bytes", lambda device: 5 * 4 * 299 * 23_040)
    run, events = run_lab(params.build(LABS["paged-attention"], {"kv_len": 300, "batch": 4, "rounds": 3})), []
    with pytest.raises(ResourceError, match="choose smaller settings"):
        events.extend(run)
    assert not [event for event in events if isinstance(event, RowAdded)]


def test_an_impossible_setting_is_refused():
    with pytest.raises(InputError, match="block_size"):
        params.build(LABS["paged-attention"], {"block_size": 7})


def test_the_answer_in_both_languages():
    answer = LABS["paged-attention"]().answer({"kv_len": 2048, "time_ratio": 1.044, "scattered_ratio": 1.43})
    assert "At 2,048 tokens (8 at a time, blocks of 16)" in answer.en and "1.04 times" in answer.en
    assert "1.04 倍" in answer.zh and "1.43 倍" in answer.zh

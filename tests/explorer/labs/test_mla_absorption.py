"""The lab mla-absorption: three ways to the same result, and bytes that follow from the shapes."""

import pytest

from explorer import params
from explorer.labs import mla_absorption as module
from explorer.labs.base import LABS
from explorer.labs.runner import Finished, run_lab

WAYS = ("absorbed", "expanded", "stored_heads")


def record_of(**settings):
    for event in run_lab(params.build(LABS["mla-absorption"], settings)):
        if isinstance(event, Finished):
            return event.record
    raise AssertionError("the run did not finish")


def test_equal_results_and_bytes_by_hand():
    """300 tokens, 4 heads, latent 128: rows of 192 numbers against heads of 192 + 128; float32."""
    record = record_of(kv_len=300, num_heads=4, latent_dim=128, rounds=3)
    assert [row["kv_len"] for row in record.rows] == [256, 300]
    last = record.rows[-1]
    assert last["latent_bytes"] == 300 * (128 + 64) * 4
    assert last["stored_heads_bytes"] == 300 * 4 * (192 + 128) * 4
    assert last["expansion_bytes"] == 300 * 4 * (128 + 128) * 4
    assert record.summary["bytes_ratio"] == pytest.approx(4 * 320 / 192)
    assert 0 < record.summary["max_abs_difference"] <= 1e-5
    assert record.summary["speedup"] == last["speedup"] > 0
    assert last["speedup_p20"] <= last["speedup"] <= last["speedup_p80"]
    # An average of 300 Values of size 1, by weights of about exp(N(0, 1)): root mean square sqrt(e / 300) = 0.095.
    assert 0.07 < last["result_rms"] < 0.13 and record.summary["smallest_result_rms"] == last["result_rms"]
    times = [(row[f"{name}_p80_ms"], row[f"{name}_p20_ms"]) for row in record.rows for name in WAYS]
    assert record.summary["spread"] == max(high / low for high, low in times) >= 1


def test_one_token():
    record = record_of(kv_len=1, num_heads=4, latent_dim=128, rounds=3, dtype="bf16")
    assert [row["kv_len"] for row in record.rows] == [1]
    assert record.summary["max_abs_difference"] < 0.05


def test_absorbing_is_faster_at_long_context():
    """1,024 tokens and 16 heads of DeepSeek-V2-Lite: an order of magnitude less arithmetic."""
    assert record_of(kv_len=1024, rounds=3).summary["speedup"] > 1.5


def test_a_wrong_result_is_seen(monkeypatch):
    right = module.mla_decode_absorbed
    monkeypatch.setattr(module, "mla_decode_absorbed", lambda *args: right(*args) * 1.01)
    assert record_of(kv_len=64, num_heads=4, latent_dim=128, rounds=3).summary["max_abs_difference"] > 1e-3


def test_the_answer_in_both_languages():
    summary = {"max_abs_difference": 3.2e-7, "speedup": 17.7, "kv_len": 2048, "bytes_ratio": 80 / 9}
    summary |= {"spread": 1.3}
    summary |= {"speedup_p20": 15.04, "speedup_p80": 18.1, "smallest_result_rms": 0.0362}
    answer = LABS["mla-absorption"]().answer(summary)
    assert "3.2e-07" in answer.en and "17.7 times" in answer.en and "8.9 times" in answer.en
    assert "about 0.036" in answer.en and "(15.0 to 18.1)" in answer.en and "unsteady" not in answer.en
    assert "2,048 个 token" in answer.zh and "（15.0 到 18.1）" in answer.zh and "0.036" in answer.zh
    doubtful = LABS["mla-absorption"]().answer(summary | {"spread": 2.84})
    assert "2.8 times the 20th" in doubtful.en and "2.8 倍" in doubtful.zh
    equal = LABS["mla-absorption"]().answer(summary | {"max_abs_difference": 0.0})
    assert equal.en.startswith("The results are equal to the last bit. At") and equal.zh.startswith("结果逐位相等。在")

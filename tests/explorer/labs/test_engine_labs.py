"""The engine's labs on the real model: exact bytes, equal tokens, and figures that follow from the rows."""

import pytest
import torch

from explorer import params
from explorer.engine import runtime
from explorer.errors import InputError
from explorer.labs.base import LABS
from explorer.labs.runner import Finished, run_lab

pytestmark = pytest.mark.model
BYTES_PER_TOKEN = 2 * 30 * 3 * 64 * 2  # Key and Value x layers x KV heads x head_dim x bf16 = 23,040


def record_of(name, **settings):
    for event in run_lab(params.build(LABS[name], settings)):
        if isinstance(event, Finished):
            return event.record
    raise AssertionError("the run did not finish")


def test_engine_parity_with_transformers():
    record = record_of("engine-parity", prompt_len=40)
    assert [row["case"] for row in record.rows] == ["whole prompt", "chunks", "decode", "paged"]
    assert record.summary["max_abs_difference"] <= 1e-3
    assert record.summary["greedy_tokens_equal"] is True
    assert record.summary["greedy_tokens"] == 64
    assert record.provenance["weights"] == runtime.get_model("HuggingFaceTB/SmolLM2-135M-Instruct").files.weight_hash


def test_engine_parity_can_fail(monkeypatch):
    """A final norm that is slightly wrong shows in the lab's summary."""
    model = runtime.get_model(dtype="fp32")
    monkeypatch.setattr(model.decoder.norm, "eps", 1.0)
    record = record_of("engine-parity", prompt_len=8, new_tokens=1)
    assert record.summary["max_abs_difference"] > 1e-2


def test_cache_bytes_are_exact():
    """33 tokens in blocks of 16 take 3 blocks = 48 slots, so 15 slots are unfilled."""
    record = record_of("cache-bytes", kv_len=33, block_size=16)
    plain, paged = record.rows
    assert record.summary["bytes_per_token"] == BYTES_PER_TOKEN
    assert plain["formula_bytes"] == plain["stored_bytes"] == 33 * BYTES_PER_TOKEN == 760_320
    assert record.summary["difference_bytes"] == 0
    assert paged["stored_bytes"] == 48 * BYTES_PER_TOKEN
    assert paged["difference_bytes"] == paged["unfilled_slots_bytes"] == 15 * BYTES_PER_TOKEN
    for row in record.rows:
        assert row["filled_tokens"] == 33
        assert row["allocator_difference_bytes"] == 0 or record.provenance["device_kind"] == "cuda"


@pytest.mark.parametrize(("dtype", "element_bytes"), [("bf16", 2), ("fp32", 4)])
def test_cache_bytes_follow_the_dtype(dtype, element_bytes):
    record = record_of("cache-bytes", kv_len=16, block_size=16, dtype=dtype)
    assert record.summary["bytes_per_token"] == 11_520 * element_bytes
    assert record.summary["paged_difference_bytes"] == 0, "16 tokens fill a block of 16"


def test_cache_and_recompute_write_the_same_tokens():
    record = record_of("cache-vs-recompute", max_context=80, new_tokens=3)
    assert [row["context_len"] for row in record.rows] == [32, 64, 80]
    assert record.summary["tokens_equal"] is True
    assert record.summary["context_at_last"] == 80
    assert record.summary["speedup_at_last"] == record.rows[-1]["speedup"] > 0


def test_decode_speed_counts_the_bytes_of_a_step():
    """A step reads the weights, 134,515,008 x 2 bytes, and the cache of its middle context, here 128.5 tokens."""
    record = record_of("decode-speed", context_len=128, new_tokens=2, rounds=3)
    (row,) = record.rows
    assert row["bytes_read"] == 134_515_008 * 2 + round(128.5 * BYTES_PER_TOKEN)
    assert row["achieved_gb_per_s"] == pytest.approx(row["bytes_read"] / row["engine_ms"] / 1e6)
    assert record.summary["tokens_per_s"] == pytest.approx(1e3 / row["engine_ms"])
    assert record.summary["ratio"] == row["ratio"]
    assert row["ratio_p20"] <= row["ratio"] <= row["ratio_p80"]
    assert record.summary["copy_gb_per_s"] > 1, "a plain copy moves more than 1 GB/s anywhere"


def test_batch_decode_compares_each_batch_with_one_request():
    record = record_of("batch-decode", max_batch=4, context_len=16, rounds=3)
    assert [row["batch"] for row in record.rows] == [1, 2, 4]
    assert record.summary["ratio_16_to_1"] is None, "16 requests were not run"
    assert record.summary["ratio_of_largest"] == record.rows[-1]["ratio_to_one"]
    for row in record.rows:
        assert row["tokens_per_s"] == pytest.approx(row["batch"] * 1e3 / row["step_ms"])


def test_labs_leave_no_inference_mode_behind():
    record_of("cache-bytes", kv_len=1)
    assert not torch.is_inference_mode_enabled()


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("cache-bytes", {"kv_len": 0}),
        ("cache-bytes", {"kv_len": 10**12}),
        ("cache-bytes", {"block_size": "nan"}),
        ("decode-speed", {"dtype": "int4"}),
        ("batch-decode", {"max_batch": 3}),
        ("engine-parity", {"prompt_len": "\U0001f600"}),
    ],
)
def test_settings_out_of_range_are_refused_with_one_line(name, settings):
    with pytest.raises(InputError, match="expected") as refused:
        params.build(LABS[name], settings)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "summary", "words"),
    [
        ("engine-parity", {"max_abs_difference": 8.6e-5, "greedy_tokens": 64, "greedy_tokens_equal": True}, "8.6e-05"),
        ("engine-parity", {"max_abs_difference": 2.0, "greedy_tokens": 64, "greedy_tokens_equal": False}, "differ"),
        (
            "cache-bytes",
            {
                "bytes_per_token": 23_040,
                "difference_bytes": 0,
                "paged_difference_bytes": 345_600,
                "paged_unfilled_slots_bytes": 345_600,
            },
            "345,600 B are the unfilled slots",
        ),
        ("cache-vs-recompute", {"speedup_at_last": 24.96, "context_at_last": 512, "tokens_equal": False}, "not all"),
        ("batch-decode", {"largest_batch": 16, "ratio_of_largest": 9.61}, "9.6 times"),
    ],
)
def test_a_summary_is_told_in_words(name, summary, words):
    answer = LABS[name]().answer(summary)
    assert words in answer.en
    assert answer.zh != answer.en

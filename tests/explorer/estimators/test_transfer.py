"""Bytes over bandwidth, by hand: the documents' figures, a step's traffic, loading against computing again."""

import pytest

from explorer.errors import InputError
from explorer.estimators.ranks import Ranks
from explorer.estimators.transfer import decode_step, divided, duration, move, transfer_ns
from explorer.specs.catalog import model_named
from explorer.specs.layers import FullAttention, SlidingWindow
from explorer.specs.model import ModelSpec

GIB = 2**30
QWEN = model_named("qwen3-32b")


def test_the_documents_times_by_hand():
    """8 GiB = 8,589,934,592 B over 3e12 B/s is 2.8633... ms; 1e9 B over 64e9 B/s is 1/64 s = 15.625 ms."""
    assert transfer_ns(8 * GIB, 3 * 10**12) == 2_863_312  # 2,863,311.53
    assert duration(transfer_ns(8 * GIB, 3 * 10**12)) == "2.863 ms"
    assert transfer_ns(10**9, 64 * 10**9) == 15_625_000
    assert duration(15_625_000) == "15.625 ms"


def test_gib_is_not_gb():
    """8 GB instead of 8 GiB would have been 2.667 ms: the document's "about 2.7 ms"."""
    assert duration(transfer_ns(8 * 10**9, 3 * 10**12)) == "2.667 ms"


@pytest.mark.parametrize(
    ("above", "below", "wanted"), [(1, 2, 1), (3, 2, 2), (1, 3, 0), (2, 3, 1), (0, 7, 0), (5, 1, 5)]
)
def test_division_rounds_half_up(above, below, wanted):
    assert divided(above, below) == wanted


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (1_000, "1.000 µs"),
        (999_999, "999.999 µs"),
        (1_000_000, "1.000 ms"),
        (999_999_499, "999.999 ms"),
        (999_999_500, "1.000 s"),
        (3_600_000_000_000, "3,600.000 s"),
    ],
)
def test_durations_choose_their_unit(ns, text):
    assert duration(ns) == text


def test_a_step_of_the_worked_example():
    """Weights 65,524,246,528 B once; eight caches of 8 GiB. They weigh the same at 65.52 / 8.59 = 7.6, so from 8."""
    step = decode_step(QWEN, 32_768, 8, 3 * 10**12)
    assert (step.weight_bytes, step.kv_bytes) == (65_524_246_528, 64 * GIB)
    assert duration(step.kv_ns) == "22.906 ms"
    assert duration(step.ns) == "44.748 ms"  # (65,524,246,528 + 68,719,476,736) / 3e12
    assert step.even_batch == 8
    assert step.bytes_per_token == (65_524_246_528 + 64 * GIB) // 8


def test_weights_are_shared_out_over_the_batch_and_caches_are_not():
    one, eight = (decode_step(QWEN, 32_768, batch, 10**12) for batch in (1, 8))
    assert one.bytes_per_token - eight.bytes_per_token == one.weight_bytes - one.weight_bytes // 8
    assert eight.kv_bytes == 8 * one.kv_bytes and eight.weight_bytes == one.weight_bytes


def test_ranks_share_heads_until_each_has_one():
    """8 KV heads on 4, 8 and 16 ranks: a quarter, an eighth, and still an eighth; weights go on shrinking."""
    steps = [decode_step(QWEN, 32_768, 1, 10**12, ranks=Ranks(tp=tp)) for tp in (1, 4, 8, 16)]
    assert [step.kv_bytes for step in steps] == [8 * GIB, 2 * GIB, GIB, GIB]
    assert [step.weight_bytes for step in steps] == [
        65_524_246_528,
        16_381_061_632,
        8_190_530_816,
        4_095_265_408,
    ]


def test_a_step_reads_what_the_layer_reads():
    """A sliding window is read as far as it reaches: 100 tokens of a 64-token window are 64."""
    spec = ModelSpec("x", (FullAttention(1, 8, 8), SlidingWindow(1, 8, 8, 64)), 1, 8, weight_params=1)
    assert decode_step(spec, 100, 1, 1).kv_bytes == (100 + 64) * 32


def test_hand_over_of_the_documents():
    """16 Ki tokens, 32 layers, 8 KV heads of 128, bf16: 131,072 B each, 2 GiB in all."""
    moved = move(16_384, 131_072, 50 * 10**9, 10_000)
    assert moved.num_bytes == 2 * GIB
    assert duration(moved.load_ns) == "42.950 ms"
    assert moved.load_tokens_per_s == 381_470
    assert moved.recompute_ns == 1_638_400_000


def test_loading_against_recomputing_with_mha_over_a_slow_link():
    """Llama 2 7B, 512 KiB a token, 25 GB/s: 47,684 tok/s, hardly more than 44,000 prefilled; at 128 KiB 190,735."""
    slow = move(4_096, 524_288, 25 * 10**9, 44_000)
    assert slow.load_tokens_per_s == 47_684
    assert 1.0 < slow.recompute_ns / slow.load_ns < 1.1
    assert slow.break_even_bytes_per_s == 44_000 * 524_288  # 23.07 GB/s
    assert move(4_096, 131_072, 25 * 10**9, 44_000).load_tokens_per_s == 190_735


def test_at_the_break_even_both_take_equally_long():
    even = move(1_000, 262_144, 10_000 * 262_144, 10_000)
    assert even.load_ns == even.recompute_ns == 100_000_000


@pytest.mark.parametrize("bad", [0, -1, 1.5, float("nan"), "3", True, 10**16, None])
def test_values_that_cannot_be_are_refused_in_both_languages(bad):
    for call in (
        lambda: transfer_ns(1, bad),
        lambda: move(1, bad, 1, 1),
        lambda: move(1, 1, bad, 1),
        lambda: move(1, 1, 1, bad),
        lambda: decode_step(QWEN, 1, 1, bad),
    ):
        with pytest.raises(InputError, match="expected a whole number") as caught:
            call()
        assert "整数" in caught.value.text.zh


def test_unknown_weights_and_other_ranks_are_refused():
    spec = ModelSpec("mine", (FullAttention(1, 8, 8),), 1, 8)
    with pytest.raises(InputError, match="mine: the number of weights is not known"):
        decode_step(spec, 1, 1, 1)
    for ranks in (Ranks(pp=2), Ranks(dp=2)):
        with pytest.raises(InputError, match="expected pp=1 and dp=1"):
            decode_step(QWEN, 1, 1, 1, ranks=ranks)
    with pytest.raises(InputError, match="cannot be shared evenly"):
        decode_step(QWEN, 1, 1, 1, ranks=Ranks(tp=3))

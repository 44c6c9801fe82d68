"""Arithmetic intensity by hand, against real matrix products counted one by one, and at its limits."""

from fractions import Fraction

import pytest

from explorer.errors import InputError
from explorer.estimators import roofline
from explorer.specs.catalog import device_named


def test_ridges_of_data_sheets():
    """H100 SXM: 989.4 TFLOP/s over 3.35 TB/s; A100: 312 over 2.039."""
    wanted = {"h100-sxm-80gb": 295, "a100-sxm-80gb": 153, "h200-141gb": 206, "l4-24gb": 403, "rtx-4090-24gb": 164}
    for name, point in wanted.items():
        device = device_named(name)
        assert round(roofline.ridge(device.bf16_flops, device.bandwidth_bytes_per_s)) == point, name


def test_a_small_product_counted_by_hand():
    """[2, 3] x [3, 4]: 8 outputs of 3 multiply-adds; 12 weights, 6 inputs and 8 outputs of two bytes."""
    work = roofline.gemm(2, 3, 4)
    assert (work.flops, work.num_bytes) == (8 * 3 * 2, 2 * (12 + 6 + 8))
    assert roofline.gemm(2, 3, 4, weight_bytes=1).num_bytes == 12 + 2 * (6 + 8)


def test_intensity_of_a_projection_is_the_number_of_tokens_while_these_are_few():
    """BS / (1 + 2 BS / d): 1 -> almost 1; for d = 8,192, 295 tokens do 275 and 319 cross the H100's ridge."""
    assert float(roofline.gemm(1, 8_192, 8_192).intensity) == pytest.approx(1, rel=1e-3)
    assert roofline.gemm(295, 8_192, 8_192).intensity == Fraction(295 * 8_192, 8_192 + 590)
    assert round(roofline.gemm(295, 8_192, 8_192).intensity) == 275
    h100 = device_named("h100-sxm-80gb")
    peaks = (h100.bf16_flops, h100.bandwidth_bytes_per_s)
    assert not roofline.gemm(318, 8_192, 8_192).compute_bound(*peaks)
    assert roofline.gemm(319, 8_192, 8_192).compute_bound(*peaks)


@pytest.mark.parametrize("batch", [1, 64])
@pytest.mark.parametrize(("heads", "kv_heads"), [(32, 32), (32, 8), (64, 8), (32, 1)])
def test_attention_does_g_operations_a_byte_whatever_the_batch_and_the_context(heads, kv_heads, batch):
    """g S / (S + g), exactly; batch not in it."""
    g = heads // kv_heads
    for kv_len in (1, 1_024, 131_072):
        work = roofline.grouped_attention(heads, kv_heads, 128, kv_len, batch)
        assert work.intensity == Fraction(g * kv_len, kv_len + g)
    assert float(work.intensity) == pytest.approx(g, rel=1e-3)
    assert roofline.grouped_attention(heads, kv_heads, 128, 131_072, 1, 1).intensity > 1.9 * g, "half the bytes"


def test_attention_counted_element_by_element():
    """Two Queries, one KV head of 2, three tokens: loops that count what they touch."""
    flops = read = 0
    for _query in range(2):
        for _token in range(3):
            flops += 2 * 2  # score: two multiply-adds
            flops += 2 * 2  # weighted sum: two multiply-adds
    for _token in range(3):
        read += 2 + 2  # Key and Value
    read += 2 * 2 + 2 * 2  # Queries and outputs
    work = roofline.grouped_attention(2, 1, 2, 3)
    assert (work.flops, work.num_bytes) == (flops, 2 * read)


def test_latent_attention_by_hand():
    """128 heads, 512 + 64: 128 x 1,088 / 576 = 241.8 in the limit; 30.2 with 16 heads."""
    work = roofline.latent_attention(128, 512, 64, 1)
    assert work.flops == 128 * 2 * (576 + 512)
    assert work.num_bytes == 2 * 576 + 128 * (576 + 512) * 2
    long = roofline.latent_attention(128, 512, 64, 2**30).intensity
    assert float(long) == pytest.approx(128 * 1_088 / 576, rel=1e-3) and round(long) == 242
    assert float(roofline.latent_attention(16, 512, 64, 2**30).intensity) == pytest.approx(30.2, abs=0.05)
    assert roofline.latent_attention(8, 64, 0, 10, 3).flops == 3 * 8 * 2 * 10 * 128


def test_the_bound_is_the_longer_of_arithmetic_and_traffic():
    work = roofline.Work(flops=1_000, num_bytes=100)
    assert work.bound_s(10, 1_000) == 100 and work.compute_bound(10, 1_000)
    assert work.bound_s(10_000, 10) == 10 and not work.compute_bound(10_000, 10)
    assert work.bound_s(100, 10) == 10 and work.compute_bound(100, 10), "on the ridge both take equally long"


def test_8_gib_of_cache_at_3_tb_a_second_take_2_86_ms():
    """The documents' bound for one request: 8 x 2**30 B / 3 x 10**12 B/s = 0.002863 s."""
    work = roofline.Work(flops=1, num_bytes=8 * 2**30)
    assert work.bound_s(989_400_000_000_000, 3_000_000_000_000) == pytest.approx(0.002863, abs=5e-7)


def test_both_orders_of_the_mla_scores():
    assert roofline.score_multiplications(128, 512, 1) == (65_664, 66_048)
    assert roofline.score_multiplications(2, 3, 3) == (3 * 8, 6 + 9)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: roofline.gemm(0, 1, 1),
        lambda: roofline.grouped_attention(8, 3, 64, 10),
        lambda: roofline.grouped_attention(8, 0, 64, 10),
        lambda: roofline.grouped_attention(8, 8, 64, 0),
        lambda: roofline.latent_attention(8, 64, -1, 10),
        lambda: roofline.latent_attention(8, 64, 8, 10, 0),
        lambda: roofline.ridge(1, 0),
    ],
)
def test_wrong_numbers_say_what_would_be_right(wrong):
    with pytest.raises(InputError) as caught:
        wrong()
    text = caught.value.text
    assert "expected" in text.en and "应" in text.zh

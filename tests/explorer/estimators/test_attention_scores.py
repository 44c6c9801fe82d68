"""What attention stores and moves, by hand."""

from fractions import Fraction

import pytest

from explorer.errors import InputError
from explorer.estimators.attention_scores import Attention, moved
from explorer.specs.units import GIB, KIB, MIB, binary

LONG = Attention(32_768, 32_768, num_heads=128)


def test_the_documents_example():
    """32,768 x 32,768 x 2 B = 2^15 * 2^15 * 2 = 2^31; 128 heads: 2^38."""
    assert LONG.head_score_bytes == 2 * GIB and binary(LONG.head_score_bytes) == "2.00 GiB"
    assert LONG.score_bytes == 256 * GIB and binary(LONG.score_bytes) == "256.00 GiB"


def test_what_flash_keeps_is_linear():
    """32,768 x 128 heads x 128 x 2 B = 1 GiB of output; 32,768 x 128 x 4 B = 16 MiB of log-sum-exps."""
    assert LONG.output_bytes == GIB
    assert LONG.lse_bytes == 16 * MIB
    assert LONG.kept_bytes == GIB + 16 * MIB
    double = Attention(65_536, 65_536, num_heads=128)
    assert double.kept_bytes == 2 * LONG.kept_bytes
    assert double.score_bytes == 4 * LONG.score_bytes


def test_decode_has_one_row_of_scores():
    step = Attention(1, 32_768, num_heads=128)
    assert step.head_score_bytes == 64 * KIB
    assert step.score_bytes == 8 * MIB
    assert step.kept_bytes == 128 * (128 * 2 + 4)


def test_batch_and_element_type_multiply():
    assert Attention(1_024, 1_024, 8, 3, 64, "fp32").score_bytes == 3 * 8 * 1_024 * 1_024 * 4
    assert Attention(1_024, 1_024, 8, 3, 64, "fp32").output_bytes == 3 * 8 * 1_024 * 64 * 4


def test_moves_by_hand():
    """4 Queries, 8 Keys, 2 numbers each, bf16: Q and O 16 B, K and V 32 B, scores 64 B. Tiles of 3 Queries: 2."""
    small = Attention(4, 8, head_dim=2)
    assert [(move.name, move.num_bytes) for move in small.naive_moves()] == [
        ("read-qk", 48),
        ("write-s", 64),
        ("read-s", 64),
        ("write-p", 64),
        ("read-pv", 96),
        ("write-o", 16),
    ]
    assert [(move.name, move.num_bytes) for move in small.flash_moves(3)] == [
        ("read-q", 16),
        ("read-kv", 2 * 64),
        ("write-o", 16),
        ("write-lse", 16),
    ]
    assert moved(small.flash_moves(3)) == 176


def test_a_tile_on_the_chip_by_hand():
    """128 Queries: 128 x 128 x 2 B, u 128 x 128 x 4 B, m and l 128 x 2 x 4 B. One Query in decode."""
    assert LONG.tile_bytes(128) == 32 * KIB + 64 * KIB + KIB
    assert Attention(1, 32_768).tile_bytes(128) == 128 * (2 + 4) + 8
    assert Attention(100, 100, 8, 3, 64, "fp32").tile_bytes(256) == 100 * (64 * 8 + 8), "heads and batch do not count"


def test_theorem_2():
    """Four passes over N^2 against 2 N^2 d / block_q: the ratio goes to 2 block_q / d as N grows, and not further."""
    for head_dim, block_q in ((128, 128), (64, 128), (128, 64)):
        one = Attention(2**20, 2**20, head_dim=head_dim)
        ratio = Fraction(moved(one.naive_moves()), moved(one.flash_moves(block_q)))
        assert float(ratio) == pytest.approx(2 * block_q / head_dim, rel=1e-3)
    half = Attention(4_096, 4_096)
    kv = [next(m.num_bytes for m in half.flash_moves(b) if m.name == "read-kv") for b in (64, 128)]
    assert kv[0] == 2 * kv[1], "twice the tile, half the reading"


def test_in_decode_there_is_little_to_save():
    """Keys and Values are read once either way: 2 d + 4 numbers a Key against 2 d."""
    step = Attention(1, 2**20)
    ratio = moved(step.naive_moves()) / moved(step.flash_moves(128))
    assert ratio == pytest.approx((2 * 128 + 4) / (2 * 128), rel=1e-4)


def test_the_work_is_quadratic_either_way():
    """2 products x 2 x 32,768^2 x 128 a head."""
    assert LONG.flops == 128 * 4 * 2**30 * 128
    assert Attention(65_536, 65_536, num_heads=128).flops == 4 * LONG.flops


@pytest.mark.parametrize("bad", [0, -1, 2.5, True, None, "8", float("nan"), 2**31])
@pytest.mark.parametrize("name", ["q_len", "kv_len", "num_heads", "batch", "head_dim"])
def test_what_cannot_be_is_refused_by_name(name, bad):
    with pytest.raises(InputError, match=f"{name}=.*expected a whole number"):
        Attention(**({"q_len": 8, "kv_len": 8} | {name: bad}))


def test_other_arguments_are_checked_too():
    with pytest.raises(InputError, match="dtype='int4'"):
        Attention(8, 8, dtype="int4")
    with pytest.raises(InputError, match="block_q=0"):
        Attention(8, 8).flash_moves(0)
    with pytest.raises(InputError, match="block_q=0"):
        Attention(8, 8).tile_bytes(0)

"""Bytes as text: GiB is 2**30, GB is 10**9, rounded half up without floats."""

import pytest

from explorer.specs import units


@pytest.mark.parametrize(
    ("num_bytes", "binary", "decimal"),
    [
        (0, "0 B", "0 B"),
        (1, "1 B", "1 B"),
        (512, "512 B", "512 B"),
        (1_000, "1,000 B", "1.00 kB"),
        (1_024, "1.00 KiB", "1.02 kB"),
        (131_072, "128.00 KiB", "131.07 kB"),  # llama-3.1-8b, one token
        (17_179_869_184, "16.00 GiB", "17.18 GB"),  # 131,072 of them
        (68_719_476_736, "64.00 GiB", "68.72 GB"),
        (2**40, "1.00 TiB", "1.10 TB"),
        (2**70, "1,048,576.00 PiB", "1,180,591.62 PB"),  # far beyond what a float counts exactly
    ],
)
def test_both_units(num_bytes, binary, decimal):
    assert units.binary(num_bytes) == binary
    assert units.decimal(num_bytes) == decimal


def test_rounding_up_to_the_next_unit_names_the_next_unit():
    """1,023.999 KiB must not print as "1,024.00 KiB"."""
    assert units.binary(2**20 - 1) == "1.00 MiB"
    assert units.binary(2**20 - 6) == "1,023.99 KiB"  # 1,023.994 KiB
    assert units.decimal(999_995) == "1.00 MB"
    assert units.decimal(999_994) == "999.99 kB"


def test_half_is_rounded_up_where_a_float_would_round_down():
    """5.625 GiB (qwen3-4b at 40,960 tokens) is 5.63; Python's own formatting of 5.625 gives 5.62."""
    assert f"{5.625:.2f}" == "5.62"
    assert units.in_unit(45 * units.GIB // 8, units.GIB) == "5.63"


@pytest.mark.parametrize(
    ("number", "text"),
    [(1, "1"), (1_000, "1,000"), (1_024, "1,024 (1 Ki)"), (131_072, "131,072 (128 Ki)"), (2**20, "1,048,576 (1 Mi)")],
)
def test_tokens(number, text):
    assert units.tokens(number) == text

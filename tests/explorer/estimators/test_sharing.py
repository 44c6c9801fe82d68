"""A prefix kept once, by hand and against a plain count of blocks."""

import random

import pytest

from explorer.errors import InputError
from explorer.estimators.sharing import share_prefix

GIB = 2**30
PER_TOKEN = 262_144


def test_eight_requests_with_a_common_half_by_hand():
    """8 x 32 Ki apart: 64 GiB. Half in common: 4 GiB once and 8 x 4 GiB: 36 GiB, 28 GiB less."""
    case = share_prefix(PER_TOKEN, 8, 32_768, 16_384, 16)
    assert (case.apart_bytes, case.shared_bytes, case.saved_bytes) == (64 * GIB, 36 * GIB, 28 * GIB)
    assert (case.shared_tokens, case.unshared_prefix_tokens) == (16_384, 0)
    assert case.saved_prefill_tokens == 7 * 16_384 == 114_688
    assert case.prefill_tokens == 8 * 32_768 - 114_688 == 147_456


def test_only_full_blocks_are_shared():
    """16,000 tokens in blocks of 256: 62 blocks, 15,872 tokens; the other 128 are kept eight times."""
    case = share_prefix(PER_TOKEN, 8, 32_768, 16_000, 256)
    assert (case.shared_tokens, case.unshared_prefix_tokens) == (15_872, 128)
    assert case.saved_bytes == 7 * 15_872 * PER_TOKEN
    assert share_prefix(PER_TOKEN, 8, 32_768, 255, 256).saved_bytes == 0


def test_the_last_token_is_always_computed():
    """A request that is all prefix: 32,767 tokens may be reused, in blocks of 16 that is 2,047 blocks."""
    assert share_prefix(1, 2, 32_768, 32_768, 16).shared_tokens == 2_047 * 16
    assert share_prefix(1, 2, 32_768, 32_768).shared_tokens == 32_767
    assert share_prefix(1, 5, 1, 1).saved_bytes == 0


def test_one_request_and_no_prefix_save_nothing():
    assert share_prefix(PER_TOKEN, 1, 32_768, 16_384, 16).saved_bytes == 0
    assert share_prefix(PER_TOKEN, 8, 32_768, 0, 16).saved_bytes == 0


def test_against_a_count_of_the_blocks_themselves():
    """Block tables written out: a block is the same one if all tokens up to its end are the prefix's."""
    draw = random.Random(16)
    for _ in range(300):
        requests, tokens, size = draw.randint(1, 6), draw.randint(1, 60), draw.randint(1, 9)
        prefix = draw.randint(0, tokens)
        case = share_prefix(3, requests, tokens, prefix, size)
        tables = [
            [
                ("prefix" if end <= min(prefix, tokens - 1) else f"request {number}", end)
                for end in range(size, tokens + size, size)
            ]
            for number in range(requests)
        ]
        assert case.apart_blocks == sum(map(len, tables))
        assert case.shared_blocks == len({block for table in tables for block in table})
        assert case.saved_bytes == (case.apart_blocks - case.shared_blocks) * size * 3
        assert case.apart_bytes + case.tail_bytes == case.apart_blocks * size * 3
        assert case.shared_bytes + case.tail_bytes == case.shared_blocks * size * 3
        assert case.shared_tokens + case.unshared_prefix_tokens == prefix


@pytest.mark.parametrize(
    "values",
    [
        (0, 1, 1, 0, 1),
        (1, 0, 1, 0, 1),
        (1, 1, 0, 0, 1),
        (1, 1, 1, -1, 1),
        (1, 1, 1, 2, 1),
        (1, 1, 1, 0, 0),
        (1, 1, 1, float("nan"), 1),
        (1, 1, 1, False, 1),
        (1, 1, 1.5, 1, 1),
        ("1", 1, 1, 1, 1),
    ],
)
def test_values_that_cannot_be_are_refused(values):
    with pytest.raises(InputError, match="expected") as caught:
        share_prefix(*values)
    assert caught.value.text.zh != caught.value.text.en

"""What blocks cost, by hand, and against the block pool that hands them out."""

import random
from fractions import Fraction

import pytest

from explorer.engine.block_pool import BlockPool
from explorer.errors import InputError
from explorer.estimators.paging import MAX_REQUESTS, expected_unfilled, paging, place


def test_one_request_by_hand():
    """34 tokens in blocks of 16: 3 blocks, 48 slots, 14 empty."""
    found = paging([34], 16)
    assert (found.blocks, found.slots, found.unfilled, found.table_bytes) == (3, 48, 14, 12)
    assert found.unfilled_share == Fraction(14, 48)


def test_several_requests_by_hand():
    """1, 16, 17 and 200 tokens: 1 + 1 + 2 + 13 blocks of 16; 15 + 0 + 15 + 8 empty."""
    found = paging([1, 16, 17, 200], 16)
    assert (found.tokens, found.blocks, found.unfilled) == (234, 17, 38)
    assert found.unfilled_each == Fraction(19, 2)
    assert (paging([1, 16, 17, 200], 1).unfilled, paging([1, 16, 17, 200], 1).blocks) == (0, 234)
    assert paging([1, 16, 17, 200], 256).unfilled == 4 * 256 - 234


@pytest.mark.parametrize("block_size", [1, 2, 7, 16, 32, 1024])
def test_the_mean_over_all_remainders_is_the_expected_one(block_size):
    each_remainder_once = range(5 * block_size, 6 * block_size) if block_size > 1 else [5]
    assert paging(list(each_remainder_once), block_size).unfilled_each == expected_unfilled(block_size)
    assert expected_unfilled(block_size) == Fraction(block_size - 1, 2)


def test_it_is_what_the_block_pool_does():
    draw = random.Random(7)
    for _ in range(50):
        lengths, size = [draw.randint(1, 300) for _ in range(draw.randint(1, 12))], draw.choice([1, 3, 8, 16, 32, 256])
        found = paging(lengths, size)
        pool = BlockPool(found.blocks, size)
        pool.append(dict(enumerate(lengths)))
        assert (pool.num_free, pool.unfilled_slots) == (0, found.unfilled)


def test_places_by_hand():
    assert [place(j, 16) for j in (0, 15, 16, 33, 160)] == [(0, 0), (0, 15), (1, 0), (2, 1), (10, 0)]
    assert place(33, 1) == (33, 0)


@pytest.mark.parametrize(
    ("lengths", "block_size"),
    [([], 16), ([0], 16), ([-1], 16), ([1.5], 16), (["8"], 16), ([1] * (MAX_REQUESTS + 1), 16)]
    + [([1], size) for size in (0, -16, 1025, 2.0, "16", True, None, float("nan"))],
)
def test_values_that_cannot_be_are_refused(lengths, block_size):
    with pytest.raises(InputError) as caught:
        paging(lengths, block_size)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("token", "block_size"), [(-1, 16), (0, 0), (1.0, 16), (True, 16)])
def test_places_that_cannot_be_are_refused(token, block_size):
    with pytest.raises(InputError):
        place(token, block_size)

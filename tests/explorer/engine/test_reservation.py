"""Contiguous reservation: first fit, holes, and where every slot went."""

import random

import pytest

from explorer.engine.reservation import ReservationPool, Row, Waste, waste
from explorer.errors import InputError, ResourceError


def test_every_slot_has_one_name():
    """100 slots; three requests of 30 reserved slots each; the middle one ends and leaves a hole of 30."""
    pool = ReservationPool(100)
    for seq in (0, 1, 2):
        pool.reserve(seq, 30)
        pool.append(seq, 10)
    pool.free(1)
    final = {0: 12, 2: 30}
    assert pool.holes() == [(30, 30), (90, 10)]
    # Request 0 will fill 2 more and leave 18; request 2 will fill 20 more. The hole of 10 is too small for 30.
    assert waste(pool, final, 30) == Waste(used=20, reserved=22, internal=18, external=10, free=30)
    assert waste(pool, final, 31) == Waste(used=20, reserved=22, internal=18, external=40, free=0)


def test_enough_is_free_and_still_nothing_fits():
    pool = ReservationPool(100)
    for seq in range(4):
        pool.reserve(seq, 25)
    pool.free(0)
    pool.free(2)
    with pytest.raises(ResourceError, match="50 are free, the largest hole has 25"):
        pool.reserve(9, 40)
    assert pool.reserve(9, 20) == Row(0, 20), "the first hole that is large enough"


def test_a_request_cannot_outgrow_its_piece():
    pool = ReservationPool(10)
    pool.reserve(0, 4)
    pool.append(0, 4)
    with pytest.raises(ResourceError, match="4 slots; 5 were asked for"):
        pool.append(0, 1)
    assert pool.num_tokens == {0: 4}


def test_impossible_calls_are_refused():
    with pytest.raises(InputError, match="at least 1"):
        ReservationPool(0)
    pool = ReservationPool(4)
    pool.reserve(0, 2)
    for call in (lambda: pool.reserve(0, 1), lambda: pool.reserve(1, 0), lambda: pool.append(7, 1)):
        with pytest.raises(InputError, match="expected"):
            call()


def test_random_traffic_keeps_pieces_apart():
    dice, pool, refused = random.Random(5), ReservationPool(200), 0
    for seq in range(600):
        try:
            pool.reserve(seq, dice.randint(1, 60))
            pool.append(seq, dice.randint(0, pool.rows[seq].length))
        except ResourceError:
            refused += 1
        if pool.rows and dice.random() < 0.4:
            pool.free(dice.choice(sorted(pool.rows)))
        pool.check_invariants()
        found = waste(pool, {s: dice.randint(1, row.length) for s, row in pool.rows.items()}, 40)
        assert found.used + found.reserved + found.internal + found.external + found.free == 200
        assert min(found.used, found.reserved, found.internal, found.external, found.free) >= 0
    assert refused > 50

"""Rows and terms: closed forms against counting one token at a time."""

from fractions import Fraction

import pytest

from explorer.specs import pieces
from explorer.specs.pieces import ALL, Piece, Rows

LENGTHS = [0, 1, 2, 3, 4, 5, 7, 8, 9, 127, 128, 129, 1_000]


def at(terms, kv_len):
    return sum(weight * rows.at(kv_len) for weight, rows in terms)


@pytest.mark.parametrize("kv_len", LENGTHS)
def test_rows_by_counting(kv_len):
    """One row a token; the last 8; one for each complete 4; the rest of the last 4; always 3."""
    seen = list(range(kv_len))
    assert ALL.at(kv_len) == len(seen)
    assert at(pieces.window(8), kv_len) == len(seen[-8:])
    assert at(pieces.one_in(4), kv_len) == len([i for i in seen if i % 4 == 3])
    assert at(pieces.within(4), kv_len) == len(seen[kv_len // 4 * 4 :])
    assert at(pieces.fixed(3), kv_len) == 3


def test_skipped_tokens():
    """The first 5 tokens do not count, and of what follows every second makes a row, at most 3."""
    rows = Rows(every=2, skip=5, cap=3)
    assert [rows.at(kv_len) for kv_len in (0, 5, 6, 7, 8, 9, 11, 100)] == [0, 0, 0, 1, 1, 2, 3, 3]


def test_slope_and_constant():
    """10 B a token, 7 B for every 4th token, 100 B in a window of 6, 50 B always: 10 + 7/4 a token, 600 + 50."""
    terms = [Piece("a", 10, ALL), Piece("b", 7, Rows(4)), Piece("c", 100, Rows(cap=6)), Piece("d", 50, Rows(0, cap=1))]
    assert pieces.slope(terms) == Fraction(47, 4)
    assert pieces.constant(terms) == 650
    assert pieces.settled_at(terms) == 6
    assert pieces.total(terms, 8) == 80 + 14 + 600 + 50
    assert isinstance(pieces.slope(terms[:1]), int)


def test_beyond_the_last_window_the_line_is_exact_on_whole_rows():
    terms = [Piece("a", 10, Rows(skip=3)), Piece("b", 7, Rows(4)), Piece("c", 100, Rows(1, 2, 6))]
    assert pieces.settled_at(terms) == 8
    for kv_len in range(8, 200, 4):
        assert pieces.total(terms, kv_len) == pieces.slope(terms) * kv_len + pieces.constant(terms)


def test_json_of_a_term():
    assert Piece("key", 256, Rows(4, 1, None)).as_json() == {
        "tensor": "key",
        "bytes": 256,
        "every": 4,
        "skip": 1,
        "cap": None,
    }

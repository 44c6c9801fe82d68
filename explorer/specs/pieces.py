"""The one primitive that every cache size is made of: bytes times a number of rows, and how rows follow from tokens.

    rows(T) = min(max(T - skip, 0) // every, cap)        (every = 0: `cap` rows whatever T is)

`every` is 1 for one row a token and 4 or 128 where tokens are compressed; `cap` is a window; `skip` are tokens that are
kept elsewhere. A sum of such terms, each with whole coefficients (some negative), is exact at every length, costs
nothing to evaluate, and is what a browser gets as JSON: {"tensor", "bytes", "every", "skip", "cap"}.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any


@dataclass(frozen=True)
class Rows:
    """How many rows a tensor has once `kv_len` tokens have been seen.

    Attributes:
        every: tokens for one row; 0 if the rows do not depend on tokens.
        skip: tokens that must pass before the first counts.
        cap: most rows there can be; None for no end. With `every` = 0, the number of rows.
    """

    every: int = 1
    skip: int = 0
    cap: int | None = None

    def at(self, kv_len: int) -> int:
        """The number of rows."""
        if not self.every:
            return self.cap or 0
        rows = max(kv_len - self.skip, 0) // self.every
        return rows if self.cap is None else min(rows, self.cap)


ALL = Rows()
# A tensor's rows as a weighted sum: ((1, ALL), (-4, Rows(every=4))) is T mod 4.
Terms = tuple[tuple[int, Rows], ...]
EVERY_TOKEN: Terms = ((1, ALL),)


def fixed(rows: int) -> Terms:
    """`rows` rows, whatever the length."""
    return ((1, Rows(every=0, cap=rows)),)


def window(size: int) -> Terms:
    """The last `size` tokens."""
    return ((1, Rows(cap=size)),)


def one_in(every: int) -> Terms:
    """One row for every `every` tokens that are complete."""
    return ((1, Rows(every=every)),)


def within(every: int, skip: int = 0) -> Terms:
    """`T mod every`: the tokens since the last complete run of `every` (counted from token `skip`)."""
    return ((1, Rows(skip=skip)), (-every, Rows(every=every, skip=skip)))


@dataclass(frozen=True)
class Piece:
    """One term of a size.

    Attributes:
        tensor: what is kept ("key", "value", "latent", "state", ...).
        row_bytes: bytes of one row; negative where a term takes back what another counts.
        rows: how many rows.
    """

    tensor: str
    row_bytes: int
    rows: Rows

    def as_json(self) -> dict[str, Any]:
        """For a browser: five plain values."""
        return {
            "tensor": self.tensor,
            "bytes": self.row_bytes,
            "every": self.rows.every,
            "skip": self.rows.skip,
            "cap": self.rows.cap,
        }


def total(pieces: Iterable[Piece], kv_len: int) -> int:
    """Bytes of all pieces at `kv_len` tokens."""
    return sum(piece.row_bytes * piece.rows.at(kv_len) for piece in pieces)


def slope(pieces: Iterable[Piece]) -> int | Fraction:
    """Bytes that each further token adds in the long run, whatever the length; a Fraction if it is not whole."""
    rate = sum(
        (Fraction(p.row_bytes, p.rows.every) for p in pieces if p.rows.every and p.rows.cap is None), Fraction(0)
    )
    return _plain(rate)


def constant(pieces: Iterable[Piece]) -> int | Fraction:
    """Bytes beside `slope * T` once everything that fills up is full (rounding down to whole rows apart)."""
    found = Fraction(0)
    for piece in pieces:
        if piece.rows.cap is not None:
            found += piece.row_bytes * piece.rows.cap
        else:
            found -= Fraction(piece.row_bytes * piece.rows.skip, piece.rows.every)
    return _plain(found)


def settled_at(pieces: Iterable[Piece]) -> int:
    """The length from which on nothing fills up any more: the largest window, 0 if there is none."""
    ends = [p.rows.skip + p.rows.every * (p.rows.cap or 0) for p in pieces if p.rows.every and p.rows.cap is not None]
    return max(ends, default=0)


def _plain(value: Fraction) -> int | Fraction:
    return value.numerator if value.denominator == 1 else value

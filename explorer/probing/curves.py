"""From a curve of bytes, one value for every length, to the rule that draws it.

Known rules: the same whatever the length; so many bytes a token; the same up to a window; one row for every `n` tokens;
the tokens since the last full run of `n`. A curve that none of them draws exactly, at every length, has no rule.
"""

from collections.abc import Iterator, Sequence

from explorer.specs import pieces
from explorer.specs.pieces import Rows, Terms

_LONGEST_RUN = 128


def rule_of(curve: Sequence[int]) -> tuple[int, Terms] | None:
    """The bytes of one row, and the rows, that give `curve[i]` bytes at `i + 1` tokens for every i; None if none does.

    Args:
        curve: bytes at 1, 2, 3, ... tokens; long enough that whatever fills up has filled up twice.
    """
    for row_bytes, terms in _candidates(curve):
        if row_bytes and all(row_bytes * rows_at(terms, at) == held for at, held in enumerate(curve, start=1)):
            return row_bytes, terms
    return None


def rows_at(terms: Terms, kv_len: int) -> int:
    """The number of rows that `terms` come to."""
    return sum(weight * rows.at(kv_len) for weight, rows in terms)


def _candidates(curve: Sequence[int]) -> Iterator[tuple[int, Terms]]:
    first, last = curve[0], curve[-1]
    yield last, pieces.fixed(1)
    yield first, pieces.EVERY_TOKEN
    if first and last % first == 0:
        yield first, pieces.window(last // first)
    steps = [at for at in range(2, len(curve) + 1) if curve[at - 1] != curve[at - 2]]
    if not first and steps and steps[0] <= _LONGEST_RUN:
        every, row_bytes = steps[0], curve[steps[0] - 1]
        yield row_bytes, pieces.one_in(every)
        yield row_bytes, ((1, Rows(every, cap=1)),)
    falls = [at for at in steps if curve[at - 1] < curve[at - 2]]
    if first and falls and falls[0] <= _LONGEST_RUN:
        yield first, pieces.within(falls[0])

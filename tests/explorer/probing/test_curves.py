"""From bytes at every length back to the rule that made them."""

import pytest

from explorer.probing.curves import rows_at, rule_of
from explorer.specs import pieces


@pytest.mark.parametrize(
    ("row_bytes", "terms"),
    [
        (4096, pieces.fixed(1)),
        (576, pieces.EVERY_TOKEN),
        (2560, pieces.window(23)),
        (1024, pieces.one_in(4)),
        (1024, pieces.one_in(128)),
        (4096, pieces.within(4)),
        (2048, pieces.within(128)),
        (12288, ((1, pieces.Rows(4, cap=1)),)),
    ],
)
def test_known_rules_are_found(row_bytes, terms):
    curve = [row_bytes * rows_at(terms, at) for at in range(1, 141)]
    assert rule_of(curve) == (row_bytes, terms)


def test_what_no_rule_draws_has_none():
    assert rule_of([at * at for at in range(1, 141)]) is None
    straight = [8 * at for at in range(1, 141)]
    straight[100] += 1
    assert rule_of(straight) is None
    assert rule_of([0] * 140) is None

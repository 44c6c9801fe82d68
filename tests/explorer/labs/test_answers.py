"""What all labs' answers have in common: right for one of everything, and the same numbers in both languages."""

import re

import pytest

from explorer.labs._words import counted
from explorer.labs.base import LABS
from explorer.params import specs_of

WORDS = {"failed": ""}  # entries that are text
LEAST = {  # where these begin, whatever is set
    "largest_batch": 2,
    "context_at_last": 64,
    "compared_at": 1_024,
    "contiguous_steps": 2,
    "paged_steps": 2,
}


class Least(dict):
    """A summary in which every number is 1, or as near to it as the lab's settings allow."""

    def __init__(self, lab, **entries):
        super().__init__(entries)
        low = {spec.name: spec.param.minimum for spec in specs_of(lab) if spec.param.minimum is not None}
        self.low = low | WORDS | LEAST

    def __missing__(self, key):
        return self.low.get(key, 1)


def answers(summary_of):
    said = [lab().answer(summary_of(lab)) for lab in LABS]
    return [answer for answer in said if answer is not None]


def test_counted():
    assert [counted(n, "token") for n in (0, 1, 2, 2_048)] == ["0 tokens", "1 token", "2 tokens", "2,048 tokens"]


@pytest.mark.parametrize("failed", ["", "llama"])
def test_one_is_not_many(failed):
    """Not "1 tokens", not "all 1"; "1.0 times" is as right as any other ratio."""
    said = [answer.en for answer in answers(lambda lab: Least(lab, failed=failed))]
    assert len(said) >= 8
    assert [line for line in said if re.search(r"(?<![\d.,])1 [A-Za-z]+s\b|\b[Aa]ll 1\b|\b1 greedy", line)] == []


def test_both_languages_give_the_same_numbers():
    class Odd(dict):
        def __missing__(self, key):
            return WORDS.get(key, 37)

    for answer in answers(lambda lab: Odd()):
        assert re.search("[\u4e00-\u9fff]", answer.zh) and answer.zh.endswith("。")
        numbers = [sorted(re.findall(r"37[\d.]*[\d]|37", text)) for text in (answer.en, answer.zh)]
        assert numbers[0] == numbers[1] != [], answer

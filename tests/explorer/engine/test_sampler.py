"""Sampling keeps to its limits and to its seed; text streams whole characters."""

import pytest
import torch

from explorer.engine.generate import TextStream
from explorer.engine.sampler import Sampler, SamplingParams
from explorer.errors import InputError

CPU = torch.device("cpu")
LOGITS = torch.log(torch.tensor([[0.5, 0.25, 0.15, 0.07, 0.03]]))


def draws(params, count=400):
    sampler = Sampler(params, CPU)
    return [int(sampler(LOGITS)) for _ in range(count)]


def test_greedy_takes_the_largest():
    assert draws(SamplingParams(), 3) == [0, 0, 0]


def test_top_k_keeps_the_k_likeliest():
    assert set(draws(SamplingParams(temperature=1.0, top_k=2))) == {0, 1}


def test_top_p_keeps_the_smallest_set_that_reaches_p():
    """0.5 + 0.25 = 0.75 < 0.8, so the third token is needed as well; the fourth is not."""
    assert set(draws(SamplingParams(temperature=1.0, top_p=0.8))) == {0, 1, 2}
    assert set(draws(SamplingParams(temperature=1.0, top_p=0.5))) == {0}


def test_temperature_one_draws_the_probabilities():
    share = draws(SamplingParams(temperature=1.0), 4000).count(0) / 4000
    assert abs(share - 0.5) < 0.04


def test_same_seed_same_tokens():
    one, two, other = (draws(SamplingParams(temperature=1.0, seed=seed), 50) for seed in (1, 1, 2))
    assert one == two != other


@pytest.mark.parametrize(
    "wrong", [{"max_new_tokens": 0}, {"temperature": -1}, {"temperature": float("nan")}, {"top_k": -1}, {"top_p": 0}]
)
def test_settings_out_of_range_are_refused(wrong):
    with pytest.raises(InputError, match="expected"):
        SamplingParams(**wrong)


class ByteTokenizer:
    def decode(self, token_ids):
        return bytes(token_ids).decode(errors="replace")


def test_text_waits_for_whole_characters():
    text = "缓存 → 🚀\n" * 8
    stream, pieces = TextStream(ByteTokenizer()), []
    for byte in text.encode():
        pieces.append(stream.push(byte))
    assert "".join(pieces) == text
    assert not any("\ufffd" in piece for piece in pieces)

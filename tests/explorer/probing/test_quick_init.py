"""Large weights are a repeated block of random numbers; small ones, and everything outside, are drawn as ever."""

import torch

from explorer.probing.quick_init import BLOCK, QuickInit


def test_a_large_weight_repeats_a_random_block():
    with QuickInit():
        weight = torch.nn.Linear(1000, 1001, dtype=torch.bfloat16).weight.detach().flatten().float()
    assert torch.equal(weight[:BLOCK], weight[BLOCK : 2 * BLOCK])
    rest = len(weight) % BLOCK
    assert torch.equal(weight[-rest:], weight[:rest])
    assert 0.019 < weight.std() < 0.021 and abs(weight.mean()) < 0.001
    assert len(weight[:BLOCK].unique()) > 1000


def test_a_small_weight_and_what_comes_after_are_drawn():
    with QuickInit():
        small = torch.empty(4 * BLOCK).uniform_(2, 3)
        constant = torch.nn.init.constant_(torch.empty(8 * BLOCK), 5.0)
    assert small.min() >= 2 and bool((constant == 5).all())
    after = torch.empty(8 * BLOCK).uniform_(2, 3)
    assert after.min() >= 2

"""Stores keep exactly what they say they keep, and never read a slot that no sequence owns."""

import random

import pytest
import torch

from explorer.engine.graphs import DecodeGraph
from explorer.engine.stores.contiguous import ContiguousStore
from explorer.engine.stores.paged import PagedStore
from explorer.errors import InputError, ResourceError

CPU = torch.device("cpu")
BYTES_PER_TOKEN = 2 * 3 * 2 * 8 * 4  # Key and Value x 3 layers x 2 KV heads x 8 dimensions x 4 bytes = 384


def forward(twins, store, chunks):
    step = store.begin([seq for seq, _ in chunks], [len(ids) for _, ids in chunks])
    tokens = torch.tensor([token for _, ids in chunks for token in ids])
    with torch.inference_mode():
        return twins.decoder.forward(tokens, step, store)


def test_contiguous_bytes_are_the_formula(llama):
    store = ContiguousStore(llama.config, torch.float32, CPU, capacity=33)
    store.begin([0], [33])
    assert store.stored_bytes == store.allocated_bytes == 33 * BYTES_PER_TOKEN
    assert llama.config.cache_bytes_per_token(4) == BYTES_PER_TOKEN


@pytest.mark.parametrize(
    ("kv_len", "blocks", "unfilled"), [(1, 1, 15), (15, 1, 1), (16, 1, 0), (17, 2, 15), (32, 2, 0)]
)
def test_paged_bytes_are_whole_blocks(llama, kv_len, blocks, unfilled):
    """17 tokens in blocks of 16 take 2 blocks, 15 slots of them unfilled."""
    store = PagedStore(llama.config, torch.float32, CPU, num_blocks=4, block_size=16)
    store.begin([0], [kv_len])
    assert store.stored_bytes == blocks * 16 * BYTES_PER_TOKEN
    assert store.unfilled_bytes == unfilled * BYTES_PER_TOKEN
    assert store.stored_bytes - store.unfilled_bytes == kv_len * BYTES_PER_TOKEN


@pytest.mark.parametrize("block_size", [4, 16])
def test_unowned_slots_are_never_read(llama, block_size):
    """Every slot that no token owns holds NaN; the answer stays the same."""
    prompts = [(0, list(range(9))), (1, list(range(40, 57)))]
    clean = PagedStore(llama.config, torch.float32, CPU, num_blocks=16, block_size=block_size)
    dirty = PagedStore(llama.config, torch.float32, CPU, num_blocks=16, block_size=block_size)
    for tensor in (*dirty.keys, *dirty.values):
        tensor.fill_(float("nan"))
    forward(llama, clean, prompts)
    forward(llama, dirty, prompts)
    expected, actual = (forward(llama, store, [(0, [3]), (1, [4])]) for store in (clean, dirty))
    assert torch.equal(actual, expected)
    assert not actual.isnan().any()


def test_a_full_store_refuses_and_keeps_what_it_has(llama):
    paged = PagedStore(llama.config, torch.float32, CPU, num_blocks=3, block_size=4)
    forward(llama, paged, [(0, list(range(8)))])
    with pytest.raises(ResourceError, match="2 blocks are needed and 1 are free"):
        paged.begin([1], [5])
    paged.check_invariants()
    assert paged.num_tokens == {0: 8}
    contiguous = ContiguousStore(llama.config, torch.float32, CPU, capacity=8)
    contiguous.begin([0], [8])
    with pytest.raises(ResourceError, match="holds 8 tokens"):
        contiguous.begin([0], [1])
    with pytest.raises(ResourceError, match="all taken"):
        contiguous.begin([1], [1])
    assert contiguous.num_tokens == {0: 8}


@pytest.mark.parametrize(("seq_ids", "q_lens"), [([0, 0], [1, 1]), ([0], [0]), ([0], [-3]), ([0, 1], [1])])
def test_a_step_that_makes_no_sense_is_refused(llama, seq_ids, q_lens):
    store = ContiguousStore(llama.config, torch.float32, CPU, capacity=8, batch=2)
    with pytest.raises(InputError, match="expected distinct ids"):
        store.begin(seq_ids, q_lens)


def test_random_traffic_keeps_the_block_pool_consistent(llama):
    """400 random steps of begin, truncate and free: no block is ever lost or held twice."""
    dice = random.Random(0)
    store = PagedStore(llama.config, torch.float32, CPU, num_blocks=24, block_size=4)
    refused = 0
    for _ in range(400):
        seq, action = dice.randrange(6), dice.random()
        if action < 0.6:
            try:
                store.begin([seq], [dice.randint(1, 9)])
            except ResourceError:
                refused += 1
        elif seq in store.num_tokens and action < 0.8:
            store.truncate(seq, dice.randint(1, store.num_tokens[seq]))
        else:
            store.free(seq)
        store.check_invariants()
    assert refused > 10, "the pool was never full: the trace tests nothing"


def test_fixed_steps_equal_ordinary_ones(llama):
    """What a CUDA graph would replay (fixed tensors, rounded length, mask) gives the ordinary step's logits."""
    stores = [ContiguousStore(llama.config, torch.float32, CPU, capacity=32, batch=2) for _ in range(2)]
    for store in stores:
        forward(llama, store, [(0, list(range(9))), (1, [5, 6, 7])])
    with torch.inference_mode():
        graph = DecodeGraph(llama.decoder, stores[1], [0, 1], 32, capture=False)
        for tokens in ([3, 4], [8, 9], [1, 2]):
            expected = forward(llama, stores[0], [(0, tokens[:1]), (1, tokens[1:])])
            kv_lens = stores[1].begin([0, 1], [1, 1]).kv_lens
            torch.testing.assert_close(graph.run(tokens, kv_lens), expected, atol=1e-5, rtol=0)

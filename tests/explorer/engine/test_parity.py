"""The decoder gives transformers' logits for every family, however the tokens arrive and wherever they lie."""

import pytest
import torch

from explorer.engine.stores.contiguous import ContiguousStore
from explorer.engine.stores.paged import PagedStore

CPU = torch.device("cpu")
TOLERANCE = 1e-4
PROMPTS = [list(range(5, 30)), [7], [(11 * i) % 97 for i in range(40)]]


def contiguous(config):
    return ContiguousStore(config, torch.float32, CPU, capacity=64, batch=4)


def paged(config):
    """Blocks handed out in a scattered order, as after a long run."""
    store = PagedStore(config, torch.float32, CPU, num_blocks=64, block_size=5)
    store.pool.free_blocks = store.pool.free_blocks[::2] + store.pool.free_blocks[1::2]
    return store


STORES = pytest.mark.parametrize("make_store", [contiguous, paged])


def feed(twins, store, chunks):
    """Feed `[(seq, token_ids), ...]` as one step; logits of every token."""
    step = store.begin([seq for seq, _ in chunks], [len(ids) for _, ids in chunks])
    tokens = torch.tensor([token for _, ids in chunks for token in ids])
    with torch.inference_mode():
        return twins.decoder.forward(tokens, step, store, range(len(tokens)))


def close(actual, expected):
    worst = (actual - expected).abs().max().item()
    assert worst <= TOLERANCE, f"largest difference {worst:.2e}"


@STORES
def test_whole_prompt(twins, make_store):
    close(feed(twins, make_store(twins.config), [(0, PROMPTS[0])]), twins.expected(PROMPTS[0]))


@STORES
def test_prefill_in_chunks(twins, make_store):
    store, ids = make_store(twins.config), PROMPTS[2]
    parts = [feed(twins, store, [(0, ids[a:b])]) for a, b in ((0, 13), (13, 14), (14, 40))]
    close(torch.cat(parts), twins.expected(ids))


@STORES
def test_decode_token_by_token(twins, make_store):
    store, ids = make_store(twins.config), PROMPTS[0]
    parts = [feed(twins, store, [(0, ids[:4])])] + [feed(twins, store, [(0, [token])]) for token in ids[4:]]
    close(torch.cat(parts), twins.expected(ids))


@STORES
def test_ragged_batch_prefill_then_decode(twins, make_store):
    """Three prompts of 25, 1 and 40 tokens in one pass, then four decode steps together."""
    store = make_store(twins.config)
    more = [[3, 1, 4, 1], [5, 9, 2, 6], [5, 3, 5, 8]]
    rows = [feed(twins, store, list(enumerate(PROMPTS)))]
    for i in range(4):
        rows.append(feed(twins, store, [(seq, [more[seq][i]]) for seq in range(3)]))
    for seq, prompt in enumerate(PROMPTS):
        start = sum(map(len, PROMPTS[:seq]))
        actual = torch.cat([rows[0][start : start + len(prompt)]] + [step[seq : seq + 1] for step in rows[1:]])
        close(actual, twins.expected(prompt + more[seq]))


@STORES
def test_prefill_and_decode_share_a_step(twins, make_store):
    store = make_store(twins.config)
    feed(twins, store, [(0, PROMPTS[0])])
    mixed = feed(twins, store, [(0, [42]), (1, PROMPTS[2])])
    close(mixed[:1], twins.expected([*PROMPTS[0], 42])[-1:])
    close(mixed[1:], twins.expected(PROMPTS[2]))


@STORES
def test_batch_of_similar_lengths_is_read_together(twins, make_store):
    """Lengths 20, 18 and 19 take the masked batch path of the contiguous store."""
    store, prompts = make_store(twins.config), [list(range(n)) for n in (20, 18, 19)]
    for seq, prompt in enumerate(prompts):
        feed(twins, store, [(seq, prompt)])
    out = feed(twins, store, [(seq, [50 + seq]) for seq in range(3)])
    for seq, prompt in enumerate(prompts):
        close(out[seq : seq + 1], twins.expected([*prompt, 50 + seq])[-1:])


@STORES
def test_truncate_undoes_a_draft(twins, make_store):
    store = make_store(twins.config)
    feed(twins, store, [(0, PROMPTS[0])])
    feed(twins, store, [(0, [90, 91, 92])])
    store.truncate(0, len(PROMPTS[0]))
    close(feed(twins, store, [(0, [42])]), twins.expected([*PROMPTS[0], 42])[-1:])


@STORES
def test_freed_room_is_used_again(twins, make_store):
    store = make_store(twins.config)
    feed(twins, store, [(0, PROMPTS[2]), (1, PROMPTS[0])])
    store.free(0)
    close(feed(twins, store, [(2, PROMPTS[0])]), twins.expected(PROMPTS[0]))

"""The paged store answers as the contiguous one, through torch and through Triton, and keeps neighbours together."""

import random

import pytest
import torch

from explorer.engine.config import ModelConfig
from explorer.engine.stores.contiguous import ContiguousStore
from explorer.engine.stores.paged import PagedStore, pieces_for
from kernels._triton import HAS_TRITON
from tests.explorer.engine.store_steps import outputs
from tests.kernels.interpreter import Interpreter

TINY = {
    "model_type": "mistral",
    "vocab_size": 7,
    "hidden_size": 54,
    "intermediate_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "head_dim": 6,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1e4,
}
CPU = torch.device("cpu")


def close(answers):
    for i, (paged, contiguous) in enumerate(zip(*answers, strict=True)):
        worst = (paged - contiguous).abs().max().item()
        assert worst < 1e-5, f"answer {i}: largest difference {worst:.1e}"


CASES = pytest.mark.parametrize(("block_size", "window"), [(5, None), (16, 11), (24, None)])


@CASES
def test_torch_answers_as_the_contiguous_store(block_size, window):
    answers, how = outputs(TINY | {"sliding_window": window}, block_size)
    assert "torch" in how
    close(answers)


@pytest.fixture(scope="module")
def interpreter():
    child = Interpreter()
    yield child
    child.close()


@pytest.mark.skipif(not HAS_TRITON, reason="Triton is not installed here (it ships for Linux)")
@CASES
def test_triton_answers_as_the_contiguous_store(interpreter, block_size, window):
    (answers, how), _, _ = interpreter(outputs, TINY | {"sliding_window": window}, block_size)
    assert "interpreter" in how
    close(answers)


@pytest.mark.parametrize(
    ("num_blocks", "block_size", "pieces"),
    [(64, 16, 32), (63, 16, 21), (61, 16, 1), (8, 64, 8), (8, 600, 1), (64, 5, 64), (6, 300, 1)],
)
def test_pieces_divide_the_pool(num_blocks, block_size, pieces):
    assert pieces_for(num_blocks, block_size) == pieces


def test_neighbours_stay_together_while_there_is_room():
    """Eight sequences that grow in turn, block by block, each fill blocks of the pool; when it is full, they share."""
    config = ModelConfig.from_hf(TINY, "tiny")
    store = PagedStore(config, torch.float32, CPU, num_blocks=16 * 32, block_size=16)
    assert store.pieces == 32

    def owners():
        found = {}
        for seq, table in store.pool.tables.items():
            for block in table:
                found.setdefault(block // 32, set()).add(seq)
        return found

    for _ in range(60):
        for seq in range(8):
            store.begin([seq], [16])
    store.check_invariants()
    assert all(len(seqs) == 1 for seqs in owners().values()), "no block of the pool has two owners"
    for table in store.pool.tables.values():
        assert [block % 32 for block in table] == [i % 32 for i in range(60)]
    while store.pool.free_blocks:
        store.begin([9], [16])
        store.check_invariants()
    assert any(len(seqs) == 2 for seqs in owners().values()), "the last blocks were pieces of others' blocks"


def test_a_small_pool_is_used_to_the_last_block():
    config, dice = ModelConfig.from_hf(TINY, "tiny"), random.Random(1)
    store = PagedStore(config, torch.float32, CPU, num_blocks=12, block_size=16)
    for _ in range(200):
        seq = dice.randrange(4)
        free = len(store.pool.free_blocks)
        if free and dice.random() < 0.6:
            store.begin([seq], [dice.randint(1, 16 * free)])
        else:
            store.free(seq)
        store.check_invariants()


@pytest.mark.parametrize("num_blocks", [64, 61])
def test_two_branches_answer_as_two_sequences_of_their_own(num_blocks):
    """A fork shares its parent's blocks; once both have written, each answers as if it had always been alone."""
    config, torch_state = ModelConfig.from_hf(TINY, "tiny"), torch.Generator().manual_seed(0)
    store = PagedStore(config, torch.float32, CPU, num_blocks, block_size=16)
    assert (store.pieces > 1) == (num_blocks == 64)
    alone = ContiguousStore(config, torch.float32, CPU, capacity=64, batch=2)

    def both(seqs, q_lens):
        steps = store.begin(seqs, q_lens), alone.begin(seqs, q_lens)
        for layer in range(config.num_layers):
            wide = torch.randn(sum(q_lens), 9 + 2 * 3, 6, generator=torch_state)
            parts = wide.split((9, 3, 3), dim=1)
            paged, contiguous = (s.attend(layer, *parts, step) for s, step in zip((store, alone), steps, strict=True))
            assert (paged - contiguous).abs().max() < 1e-5

    both([0], [21])
    store.fork(0, 1)
    alone.begin([1], [21])
    for tensor in (*alone.keys, *alone.values):
        tensor[1] = tensor[0]
    stored = store.stored_bytes
    assert stored == 2 * store.block_bytes, "the fork costs nothing"
    for _ in range(3):
        both([0, 1], [1, 1])
    assert store.stored_bytes == stored + store.block_bytes, "one copy of the shared last block"
    both([1], [1])
    store.truncate(1, 18)
    store.free(0)
    store.check_invariants()


@pytest.mark.parametrize("kinds", [["full_attention", "sliding_attention"], ["sliding_attention", "full_attention"]])
def test_layers_with_and_without_a_window_in_one_model(kinds):
    """Each kind of layer reads the pool by a plan of its own."""
    answers, _ = outputs(TINY | {"sliding_window": 11, "layer_types": kinds}, 5)
    close(answers)


def test_blocks_behind_a_shorter_end_go_back_to_the_pool():
    store = PagedStore(ModelConfig.from_hf(TINY, "tiny"), torch.float32, CPU, num_blocks=8, block_size=16)
    store.begin([0], [70])
    store.truncate(0, 33)
    assert store.stored_bytes == 3 * store.block_bytes and store.num_tokens[0] == 33
    store.check_invariants()

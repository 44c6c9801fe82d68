"""A pool whose blocks join several entries of the block table gives what the plain pool gives."""

import pytest
import torch

from kernels.paged_attention import paged_attention_reference
from kernels.paged_attention_cpu import Scoring, attend_step, plan_step
from kernels.paged_attention_plan import Gathered, Layout
from tests.kernels.closeness import assert_close

HEADS, KV_HEADS, HEAD_DIM, BLOCK_SIZE, PIECES = 6, 2, 16, 4, 3
LAYOUT = Layout(BLOCK_SIZE, HEADS, KV_HEADS, PIECES)


def compare(tables, kv_lens, q_lens=None, window=None, num_blocks=36, expect_copy=None):
    """The reference on [num_blocks, kv heads, block_size, head_dim], and the CPU path on the joined pool."""
    torch.manual_seed(0)
    q_lens = q_lens or [1] * len(kv_lens)
    plain = [torch.full((num_blocks, KV_HEADS, BLOCK_SIZE, HEAD_DIM), float("nan")) for _ in range(2)]
    for table, kv_len in zip(tables, kv_lens, strict=True):
        for position in range(kv_len):
            for pool in plain:
                place = pool[table[position // BLOCK_SIZE], :, position % BLOCK_SIZE]
                place.copy_(torch.where(place.isnan(), torch.randn(KV_HEADS, HEAD_DIM), place))
    joined = [
        pool.view(-1, PIECES, KV_HEADS, BLOCK_SIZE, HEAD_DIM).transpose(1, 2).flatten(2, 3).contiguous()
        for pool in plain
    ]
    q, starts = torch.randn(sum(q_lens), HEADS, HEAD_DIM), torch.tensor([0, *q_lens]).cumsum(0)
    longest = max(map(len, tables))
    table = torch.tensor([[*t, *[0] * (longest - len(t))] for t in tables], dtype=torch.int32)
    expected = paged_attention_reference(q, *plain, table, torch.tensor(kv_lens), starts, 0.25, window)
    plan = plan_step(tables, kv_lens, starts.tolist(), LAYOUT, window, scoring_is_plain=False)
    if expect_copy is not None:
        assert [isinstance(part, Gathered) for _, part in plan.decodes] == expect_copy
    for scoring in (Scoring(0.25), Scoring(0.25, return_lse=True), None):
        if scoring is None:  # a plan for plain scoring may copy short sequences
            plan, scoring = plan_step(tables, kv_lens, starts.tolist(), LAYOUT, window), Scoring(0.25)
        out, lse = attend_step(q, *joined, plan, scoring)
        assert_close(out, expected.out, torch.float32, "output")
        if lse is not None:
            assert_close(lse, expected.lse, torch.float32, "LSE")


def test_blocks_of_one_sequence_each_are_read_in_place():
    compare([[3, 4, 5, 0, 1], [12, 13, 14], [6, 7]], [20, 12, 8], expect_copy=[False])


def test_pieces_in_any_order_within_their_block_are_read_in_place():
    compare([[5, 3, 4, 1, 0], [14, 13, 12]], [18, 11], expect_copy=[False])


def test_one_block_each_but_not_in_the_sequences_order():
    """Output and LSE come back in the sequences' order."""
    compare([[6, 7, 8], [3, 4, 5], [9, 10]], [12, 11, 7], expect_copy=[False])


def test_a_block_of_which_little_is_seen_is_copied():
    compare([[3, 9, 15, 21], [24, 30]], [16, 6], expect_copy=[True])


def test_pieces_of_one_block_that_belong_to_two_sequences():
    """Sequence 0 uses pieces 0 and 1 of a block, sequence 1 piece 2 and another block; sequence 2 shares nothing."""
    compare([[0, 1], [2, 9, 10], [12, 13, 14]], [7, 12, 10], expect_copy=[False, True])


def test_shared_pieces_are_copied():
    compare([[0, 1, 2, 3], [0, 1, 2, 6]], [15, 14], expect_copy=[True])


def test_far_segments_and_gaps():
    compare([[0, 1, 2, 6, 7, 8], [60, 61, 62, 72, 73, 74]], [24, 22], num_blocks=90, expect_copy=[False])


@pytest.mark.parametrize("window", [1, 5, 13, 100])
def test_window(window):
    compare([[3, 4, 5, 0, 1], [12, 13, 14]], [18, 12], window=window)


def test_prefill_beside_decode():
    compare([[3, 4, 5, 0, 1], [20, 7, 33], [9]], [18, 9, 3], q_lens=[1, 6, 3])


@pytest.mark.parametrize("kv_len", [1, 4, 11, 12, 13, 24])
def test_one_sequence_at_the_edges(kv_len):
    compare([list(range(6))], [kv_len])
    compare([list(range(6)), list(range(12, 18))], [kv_len, 24])

"""The block pool: the documents' example, sharing, copy-on-write, and nothing ever lost."""

import random

import pytest

from explorer.engine.block_pool import BlockPool
from explorer.errors import InputError, ResourceError

A, B, C = 0, 1, 2


def test_the_documents_example():
    """A's logical blocks lie in 8, 1 and 6, B's in 0 and 3."""
    pool = BlockPool(12, 16, order=[8, 1, 0, 3, 6, 2, 4, 5, 7, 9, 10, 11])
    pool.append({A: 20})
    pool.append({B: 30})
    pool.append({A: 12})  # fills the second block exactly: no new one yet
    assert pool.tables == {A: [8, 1], B: [0, 3]}
    pool.append({A: 1})
    assert pool.tables == {A: [8, 1, 6], B: [0, 3]}
    assert (pool.num_used, pool.num_free, pool.num_shared) == (5, 7, 0)
    assert pool.unfilled_slots == 15 + 2
    pool.check_invariants()


def test_the_last_block_of_a_fork_is_copied_once_and_then_written_in_place():
    pool = BlockPool(8, 4)
    pool.append({A: 6})  # blocks 0 (full) and 1 (half)
    pool.fork(A, B)
    assert pool.tables[B] == [0, 1] and pool.ref_counts[:2] == [2, 2] and pool.num_shared == 2
    assert pool.missing({A: 1, B: 1}) == 1
    assert pool.append({A: 1, B: 1}) == [(1, 2)], "the first writer gets the copy, the last holder keeps the block"
    assert pool.tables == {A: [0, 2], B: [0, 1]}
    assert pool.append({A: 1, B: 1}) == []
    assert pool.ref_counts[:3] == [2, 1, 1] and pool.num_shared == 1, "the full block stays shared"
    pool.check_invariants()


def test_a_full_last_block_is_not_copied():
    pool = BlockPool(8, 4)
    pool.append({A: 4})
    pool.fork(A, B)
    assert pool.append({B: 1}) == []
    assert pool.tables == {A: [0], B: [0, 1]}


def test_three_branches_make_two_copies():
    pool = BlockPool(8, 4)
    pool.append({A: 1})
    pool.fork(A, B)
    pool.fork(B, C)
    assert pool.unfilled_slots == 3, "a shared tail counts once"
    assert pool.missing({A: 1, B: 1, C: 1}) == 2
    assert pool.append({A: 1, B: 1, C: 1}) == [(0, 1), (0, 2)]
    pool.check_invariants()


def test_a_freed_branch_leaves_the_shared_blocks_to_the_other():
    pool = BlockPool(8, 4)
    pool.append({A: 6})
    pool.fork(A, B)
    pool.free(A)
    assert pool.num_free == 6 and pool.tables == {B: [0, 1]}
    assert pool.append({B: 1}) == [], "the only holder writes in place"
    pool.free(B)
    assert pool.num_free == 8
    pool.check_invariants()


def test_what_comes_back_is_given_out_first():
    pool = BlockPool(6, 4)
    pool.append({A: 8, B: 8})
    pool.free(A)
    pool.append({C: 12})
    assert pool.tables == {B: [2, 3], C: [0, 1, 4]}


def test_a_refusal_changes_nothing():
    pool = BlockPool(3, 4)
    pool.append({A: 6})
    pool.fork(A, B)
    before = (dict(pool.tables), list(pool.free_blocks), list(pool.ref_counts), dict(pool.num_tokens))
    with pytest.raises(ResourceError, match="3 blocks are needed and 1 are free"):
        pool.append({A: 1, B: 1, C: 5})
    assert before == (pool.tables, pool.free_blocks, pool.ref_counts, pool.num_tokens)


@pytest.mark.parametrize("make", [lambda: BlockPool(0), lambda: BlockPool(4, 0), lambda: BlockPool(3, order=[0, 1, 1])])
def test_an_impossible_pool_is_refused(make):
    with pytest.raises(InputError, match="expected"):
        make()


def test_an_impossible_fork_or_cut_is_refused():
    pool = BlockPool(4, 4)
    pool.append({A: 3})
    for parent, child in ((B, C), (A, A)):
        with pytest.raises(InputError, match="expected"):
            pool.fork(parent, child)
    with pytest.raises(InputError, match="expected 0 to 3"):
        pool.truncate(A, 4)


@pytest.mark.parametrize("run", [1, 4])
def test_random_traffic_loses_nothing(run):
    """2,000 random steps; what each sequence should hold is kept in a plain dictionary."""
    dice, pool, tokens = random.Random(3), BlockPool(24, 4, run=run), {}
    refused = copied = 0
    for _ in range(2000):
        action, unused = dice.random(), sorted(set(range(8)) - set(tokens))
        if action < 0.55:
            wants = {seq: dice.randint(0, 6) for seq in dice.sample(range(8), dice.randint(1, 3))}
            need, free = pool.missing(wants), pool.num_free
            try:
                copied += len(pool.append(wants))
            except ResourceError:
                refused += 1
            else:
                assert free - pool.num_free == need
                tokens |= {seq: tokens.get(seq, 0) + n for seq, n in wants.items()}
        elif tokens:
            seq = dice.choice(sorted(tokens))
            if action < 0.75 and unused:
                pool.fork(seq, unused[0])
                tokens[unused[0]] = tokens[seq]
            elif action < 0.85:
                tokens[seq] = dice.randint(0, tokens[seq])
                pool.truncate(seq, tokens[seq])
            else:
                pool.free(seq)
                del tokens[seq]
        pool.check_invariants()
        assert pool.num_tokens == tokens and pool.num_free + pool.num_used == 24
    assert refused > 50 and copied > 50, f"{refused} refusals, {copied} copies: the traffic tests too little"


@pytest.mark.parametrize("num_blocks", [1024, 65536])
def test_a_large_pool_is_not_searched_for_a_neighbour(num_blocks):
    """Eight sequences in runs of 32 take a block each: every one looks through the rests of eight runs at most."""

    class Watched(list):
        looks = 0

        def __getitem__(self, at):
            Watched.looks += 1
            return super().__getitem__(at)

        def __reversed__(self):
            raise AssertionError("all free blocks are gone through")

    pool = BlockPool(num_blocks, 16, run=32)
    for seq in range(8):
        pool.append({seq: 16 * 33})
    pool.free_blocks = Watched(pool.free_blocks)
    pool.append(dict.fromkeys(range(8), 16))
    assert [table[-1] - table[-2] for table in pool.tables.values()] == [1] * 8
    assert Watched.looks <= 8 * 8 * 32


@pytest.mark.parametrize("shorter", [A, B])
def test_a_shared_tail_is_as_full_as_its_longest_holder_makes_it(shorter):
    pool = BlockPool(8, 4)
    pool.append({A: 6})
    pool.fork(A, B)
    pool.truncate(shorter, 5)
    assert pool.unfilled_slots == 2

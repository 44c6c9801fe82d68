"""Reference, Triton and CPU path agree on decode, prefill and mixed batches over scattered blocks."""

import pytest
import torch

from kernels.paged_attention import paged_attention, paged_attention_reference
from kernels.paged_attention_cpu import QUERIES_AT_ONCE
from kernels.paged_attention_tiles import splits_for
from tests.kernels.closeness import assert_close
from tests.kernels.one_tile import first_tile

DTYPES = [torch.float32, torch.float16, torch.bfloat16]


def example(q_lens, kv_lens, heads=(9, 3, 64), block_size=16, dtype=torch.float32, spare=5, seed=0):
    """Arguments of `paged_attention`. Blocks are scattered; every slot that no token owns is NaN, spare blocks too.

    Returns:
        q, key_pool, value_pool, block_table, kv_lens, q_starts.
    """
    torch.manual_seed(seed)
    num_heads, num_kv_heads, head_dim = heads
    counts = [-(-n // block_size) for n in kv_lens]
    blocks = torch.randperm(sum(counts) + spare)
    pools = [torch.full((len(blocks), num_kv_heads, block_size, head_dim), float("nan"), dtype=dtype) for _ in range(2)]
    # Entries past a sequence's end would be out of bounds.
    table = torch.full((len(kv_lens), max(counts) + 2), 1 << 30, dtype=torch.int32)
    for seq, (count, kv_len) in enumerate(zip(counts, kv_lens, strict=True)):
        own, blocks = blocks[:count], blocks[count:]
        table[seq, :count] = own
        for position in range(kv_len):
            for pool in pools:
                token = torch.randn(num_kv_heads, head_dim)
                pool[own[position // block_size], :, position % block_size] = token.to(dtype)
    wide = torch.randn(sum(q_lens), num_heads + num_kv_heads, head_dim).to(dtype)
    starts = torch.tensor([0, *q_lens]).cumsum(0).to(torch.int32)
    return wide[:, :num_heads], *pools, table, torch.tensor(kv_lens, dtype=torch.int32), starts


def agree(run_triton, args, **options):
    """All three agree, outputs and LSE."""
    splits = options.pop("num_splits", None)
    options = {"scale": args[0].shape[2] ** -0.5, **options}
    expected = paged_attention_reference(*args, **options)
    how = {"q_starts": args[5], "return_lse": True, **options}
    triton, _ = run_triton(paged_attention, *args[:5], num_splits=splits, **how)
    plain = paged_attention(*args[:5], **how | {"return_lse": False})
    assert plain.lse is None
    for what, found in (("CPU path", paged_attention(*args[:5], **how)), ("Triton", triton)):
        assert found.out.dtype == args[0].dtype and found.lse.dtype == torch.float32
        assert_close(found.out, expected.out, args[0].dtype, what)
        assert_close(found.lse, expected.lse, args[0].dtype, f"{what}, LSE")
    assert_close(plain.out, expected.out, args[0].dtype, "CPU path without LSE")


@pytest.mark.parametrize("kv_len", [1, 15, 16, 17, 33])
def test_decode_at_the_edges_of_blocks(run_triton, kv_len):
    agree(run_triton, example([1], [kv_len]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("heads", "block_size"),
    [((9, 3, 64), 16), ((8, 2, 128), 8), ((5, 5, 80), 24), ((12, 2, 96), 16), ((7, 1, 256), 17), ((32, 1, 64), 256)],
)
def test_decode_of_every_shape(run_triton, dtype, heads, block_size):
    """Sequences of one Key, of a full last block, and of unfilled ones."""
    agree(run_triton, example([1, 1, 1], [1, 2 * block_size, 37], heads, block_size, dtype))


@pytest.mark.parametrize("num_splits", [1, 2, 5, 8])
def test_splits_join_to_the_whole(run_triton, num_splits):
    """200 Keys are 4 tiles of 64 (3.1): with 5 and 8 splits some see nothing, and the short sequence has one tile."""
    args = example([1, 1], [200, 9])
    agree(run_triton, args, num_splits=num_splits)
    found, _ = run_triton(paged_attention, *args[:5], num_splits=num_splits)
    expected = paged_attention_reference(*args, args[0].shape[2] ** -0.5).out
    assert found.lse is None
    assert_close(found.out, expected, torch.float32, "without LSE")


def test_a_tile_writes_its_own_queries_alone(run_triton):
    """16 rows hold 5 Queries of 3 heads; the spare row must not touch the sixth, which another program writes."""
    args = example([7], [20])
    found, _ = run_triton(first_tile, *args[:5], q_starts=args[5], num_splits=1)
    expected = paged_attention_reference(*args, args[0].shape[2] ** -0.5).out
    assert_close(found.out[:5], expected[:5], torch.float32)
    assert found.out[5:].isnan().all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_prefill_in_chunks_and_decode_in_one_ragged_batch(run_triton, dtype):
    """A whole prompt, the second chunk of another, a decode step, and a prompt of one token."""
    agree(run_triton, example([40, 30, 1, 1], [40, 70, 50, 1], dtype=dtype))


@pytest.mark.parametrize(("heads", "block_size"), [((8, 2, 128), 8), ((3, 3, 80), 24), ((6, 1, 256), 16)])
def test_prefill_of_every_shape(run_triton, heads, block_size):
    agree(run_triton, example([25, 3], [25, 40], heads, block_size))


@pytest.mark.parametrize("q_lens", [[4, 0, 0, 0], [0, 2, 0], [0]])
def test_sequences_without_new_tokens(run_triton, q_lens):
    """As many tokens as sequences is not yet a decode step. With 20 heads a Query is a tile of its own."""
    agree(run_triton, example(q_lens, [9] * len(q_lens), (20, 1, 64)))


def test_no_sequence_is_no_work(run_triton):
    q, keys, values, table, kv_lens, _ = example([1], [5])
    args = q[:0], keys, values, table[:0], kv_lens[:0]
    for found in (paged_attention(*args, return_lse=True), run_triton(paged_attention, *args, return_lse=True)[0]):
        assert found.out.shape == (0, 9, 64) and found.lse.shape == (0, 9)


@pytest.mark.parametrize("num_splits", [1, 3])
def test_a_few_drafts_on_a_long_context(run_triton, num_splits):
    agree(run_triton, example([5, 3], [170, 64]), num_splits=num_splits)


def test_a_window_wider_than_32_bits_hides_nothing(run_triton):
    agree(run_triton, example([1, 30], [90, 48]), window=2**40)


OPTIONS = {
    "window": {"window": 7},
    "window of one": {"window": 1},
    "softcap": {"softcap": 2.0},
    "sinks": {"sinks": torch.linspace(-3, 4, 9)},
    "all": {"window": 20, "softcap": 3.0, "sinks": torch.linspace(-3, 4, 9), "scale": 0.3},
}


@pytest.mark.parametrize("num_splits", [1, 3])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_options_in_decode(run_triton, options, num_splits):
    agree(run_triton, example([1, 1, 1], [5, 90, 48]), num_splits=num_splits, **options)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_options_in_prefill(run_triton, options):
    agree(run_triton, example([33, 1], [80, 40]), **options)


def on_cpu(args, **options):
    expected = paged_attention_reference(*args, args[0].shape[2] ** -0.5, **options)
    found = paged_attention(*args[:5], q_starts=args[5], **options)
    assert_close(found.out, expected.out, args[0].dtype, "CPU path")


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_cpu_prefill_of_more_queries_than_are_taken_at_once(options):
    args = example([QUERIES_AT_ONCE + 9], [QUERIES_AT_ONCE + 40])
    expected = paged_attention_reference(*args, **{"scale": 0.125, **options})
    found = paged_attention(*args[:5], q_starts=args[5], return_lse=True, **{"scale": 0.125, **options})
    assert_close(found.out, expected.out, torch.float32, "output")
    assert_close(found.lse, expected.lse, torch.float32, "LSE")


@pytest.mark.parametrize("spare", [0, 60, 400])
def test_cpu_reads_in_place_over_gaps_or_copies(spare):
    """Blocks side by side, in several segments, and so thin that they are copied together."""
    on_cpu(example([1, 1], [100, 61], block_size=8, spare=spare))


def test_cpu_reads_segments_far_apart():
    args = example([1, 1], [64, 64], block_size=8, spare=0)
    moved = [torch.full((300, *pool.shape[1:]), float("nan")) for pool in args[1:3]]
    for pool, old in zip(moved, args[1:3], strict=True):
        pool[:8], pool[200:208] = old[:8], old[8:]
    table = torch.where(args[3] < 8, args[3], args[3] + 192).clamp_max(299)
    on_cpu((args[0], *moved, table, *args[4:]))


def test_cpu_shared_blocks_are_read_for_each_owner():
    """Two sequences share their first two blocks, as after a fork."""
    args = example([1, 1], [40, 40], block_size=16)
    args[3][1, :2] = args[3][0, :2]
    on_cpu(args)


def test_cpu_very_uneven_sequences():
    on_cpu(example([1] * 9, [1, 2, 3, 300, 1, 1, 5, 1, 290], block_size=8))


def test_splits_fill_the_gpu():
    """One request of 8 KV heads and 100,000 Keys on 132 multiprocessors: 4 programs on each of them."""
    assert splits_for(8, 100_000, 132) == 64
    assert splits_for(64 * 8, 8192, 132) == 2
    assert splits_for(1024, 8192, 132) == 1
    assert splits_for(8, 300, 132) == 2, "no split is shorter than worth its merge"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({0: lambda q: q[:, :4]}, "evenly"),
        ({0: lambda q: q.half()}, "one dtype"),
        ({0: lambda q: q.transpose(0, 1).contiguous().transpose(0, 1)}, "one piece"),
        ({1: lambda k: k.transpose(1, 2)}, "expected"),
        ({1: lambda k: k.transpose(0, 1).contiguous().transpose(0, 1)}, "contiguous"),
        ({3: lambda t: t.long()}, "block_table"),
        ({4: lambda n: n[:1]}, "kv_lens"),
        ({5: lambda s: s[:2]}, "q_starts"),
    ],
)
def test_what_does_not_fit_is_refused(change, words):
    args = [change.get(i, lambda x: x)(x) for i, x in enumerate(example([1, 1], [5, 20]))]
    with pytest.raises(ValueError, match=words):
        paged_attention(*args[:5], q_starts=args[5])


@pytest.mark.parametrize(
    ("place", "values", "words"),
    [
        (5, [0, 1, 1], "q_starts"),
        (5, [1, 1, 2], "q_starts"),
        (5, [0, 3, 2], "q_starts"),
        (4, [0, 20], "kv_lens"),
        (4, [5, 65], "kv_lens"),
    ],
)
def test_lengths_that_do_not_fit_are_refused(place, values, words):
    """Two Queries, one each; tables of 4 blocks of 16."""
    args = list(example([1, 1], [5, 20]))
    args[place] = torch.tensor(values, dtype=torch.int32)
    with pytest.raises(ValueError, match=words):
        paged_attention(*args[:5], q_starts=args[5])


@pytest.mark.parametrize("options", [{"window": 0}, {"softcap": -1.0}, {"sinks": torch.zeros(4)}, {"num_splits": 0}])
def test_options_that_make_no_sense_are_refused(options):
    args = example([1, 1], [5, 20])
    with pytest.raises(ValueError, match=next(iter(options))):
        paged_attention(*args[:5], q_starts=args[5], **options)

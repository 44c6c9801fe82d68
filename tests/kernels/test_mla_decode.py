"""Latent attention: reference, CPU path and Triton agree, and so do absorbing and expanding the projections."""

import pytest
import torch

from kernels.mla_decode import mla_decode, mla_decode_reference
from kernels.mla_projection import mla_decode_absorbed, mla_decode_expanded
from kernels.mla_torch import _buckets
from tests.kernels.closeness import assert_close

DTYPES = [torch.float32, torch.float16, torch.bfloat16]

# tokens of each sequence, num_heads, latent_dim, rope_dim, block_size, num_splits
SHAPES = {
    "one token": ((1,), 4, 32, 16, 16, None),
    "ragged, latent of 48": ((1, 5, 33, 16), 6, 48, 16, 8, 1),
    "20 heads, odd blocks, three splits": ((70, 1, 40), 20, 32, 8, 5, 3),
    "DeepSeek's row": ((37,), 2, 512, 64, 64, None),
}


def paged(name, dtype):
    """Queries, a cache with NaN in every slot that no sequence owns, and a table with nonsense past each end."""
    lens, num_heads, latent_dim, rope_dim, block_size, num_splits = SHAPES[name]
    torch.manual_seed(0)
    counts = [-(-n // block_size) for n in lens]
    blocks = torch.randperm(sum(counts) + 2).int()
    cache = torch.full((sum(counts) + 2, block_size, latent_dim + rope_dim), float("nan"))
    table = torch.full((len(lens), max(counts)), -(10**6), dtype=torch.int32)
    for s, kv_len in enumerate(lens):
        table[s, : counts[s]] = blocks[sum(counts[:s]) : sum(counts[: s + 1])]
        for t in range(kv_len):
            cache[table[s, t // block_size], t % block_size] = torch.randn(latent_dim + rope_dim)
    q_latent, q_rope = (torch.randn(len(lens), num_heads, dim).to(dtype) for dim in (latent_dim, rope_dim))
    return (q_latent, q_rope, cache.to(dtype), table, torch.tensor(lens, dtype=torch.int32)), num_splits


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SHAPES)
def test_every_path_equals_the_reference(run_triton, name, dtype):
    args, num_splits = paged(name, dtype)
    out, lse = mla_decode_reference(*args, 0.1)
    results = {
        "CPU path": mla_decode(*args, scale=0.1, return_lse=True),
        "Triton": run_triton(mla_decode, *args, scale=0.1, num_splits=num_splits, return_lse=True)[0],
    }
    for path, (its_out, its_lse) in results.items():
        assert its_out.dtype == dtype
        assert_close(its_out, out, dtype, f"{path}, output")
        assert_close(its_lse, lse, dtype, f"{path}, lse")


def weights(q_nope, args, v_dim):
    num_heads, latent_dim = args[0].shape[1:]
    shapes = (num_heads, q_nope.shape[2], latent_dim), (num_heads, v_dim, latent_dim)
    return [(torch.randn(shape) * latent_dim**-0.5).to(q_nope.dtype) for shape in shapes]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SHAPES)
def test_absorbing_equals_expanding(run_triton, name, dtype):
    args, _ = paged(name, dtype)
    q_nope = torch.randn(*args[0].shape[:2], 24).to(dtype)
    tensors = (q_nope, *args[1:], *weights(q_nope, args, 20))
    exact = mla_decode_expanded(*(x.float() if x.is_floating_point() else x for x in tensors))
    assert exact.shape == (*q_nope.shape[:2], 20)
    for path, out in {
        "absorbed": mla_decode_absorbed(*tensors),
        "expanded": mla_decode_expanded(*tensors),
        "absorbed, Triton": run_triton(mla_decode_absorbed, *tensors)[0],
    }.items():
        assert_close(out, exact, dtype, path)


def test_expanding_is_attention_over_expanded_heads():
    """Head by head from the model's formulas, in float64: k = [W_uk c, k_rope], v = W_uv c."""
    args, _ = paged("ragged, latent of 48", torch.float32)
    _, q_rope, cache, table, kv_lens = args
    q_nope = torch.randn(4, 6, 24)
    w_uk, w_uv = weights(q_nope, args, 20)
    out = mla_decode_absorbed(q_nope, q_rope, cache, table, kv_lens, w_uk, w_uv)
    rows = torch.stack([cache[table[2, t // 8], t % 8] for t in range(33)]).double()
    for h in range(6):
        keys = torch.cat([rows[:, :48] @ w_uk[h].double().T, rows[:, 48:]], 1)
        query = torch.cat([q_nope[2, h], q_rope[2, h]]).double()
        expected = torch.softmax(keys @ query * 40**-0.5, 0) @ (rows[:, :48] @ w_uv[h].double().T)
        assert torch.allclose(out[2, h].double(), expected, atol=1e-6)


def test_the_number_of_splits_does_not_matter(run_triton):
    args, _ = paged("20 heads, odd blocks, three splits", torch.float32)
    whole, whole_lse = run_triton(mla_decode, *args, scale=0.2, num_splits=1, return_lse=True)[0]
    parts, parts_lse = run_triton(mla_decode, *args, scale=0.2, num_splits=4, return_lse=True)[0]
    assert_close(parts, whole, torch.float32)
    assert_close(parts_lse, whole_lse, torch.float32)


def test_buckets_hold_all_and_pad_little():
    lens = [5, 100, 51, 49, 1, 2, 1]
    buckets = _buckets(lens)
    assert sorted(index for members, _ in buckets for index in members) == list(range(7))
    for members, its_lens in buckets:
        assert its_lens == [lens[index] for index in members]
        assert max(its_lens) <= 2 * min(its_lens)


@pytest.mark.parametrize(
    ("place", "value", "complaint"),
    [
        (1, torch.zeros(1, 4, 8), "latent_dim \\+ rope_dim"),
        (2, torch.zeros(3, 16, 48).half(), "dtypes"),
        (2, torch.zeros(3, 48, 16).transpose(1, 2), "contiguous"),
        (4, torch.tensor([17]), "kv_lens"),
        (4, torch.tensor([0]), "kv_lens"),
        (4, torch.tensor([1, 1]), "each of 1"),
        (4, torch.tensor([1.0]), "kv_lens"),
    ],
)
def test_what_does_not_fit_is_refused(place, value, complaint):
    args = list(paged("one token", torch.float32)[0])
    args[place] = value
    with pytest.raises(ValueError, match=complaint):
        mla_decode(*args, scale=1.0)


def test_tables_with_gaps_are_refused():
    """The kernel reads them in one piece."""
    args = list(paged("ragged, latent of 48", torch.float32)[0])
    for place, gaps in ((3, args[3].repeat(1, 2)[:, ::2]), (4, args[4].repeat_interleave(2)[::2])):
        with pytest.raises(ValueError, match="contiguous"):
            mla_decode(*args[:place], gaps, *args[place + 1 :], scale=1.0)


def test_no_split_is_refused(run_triton):
    with pytest.raises(ValueError, match="num_splits=0"):
        mla_decode(*paged("one token", torch.float32)[0], scale=1.0, num_splits=0)


def test_no_sequence_is_no_work(run_triton):
    args = [x[:0] if i != 2 else x for i, x in enumerate(paged("one token", torch.float32)[0])]
    for splits in (None, 1, 3):
        for out, lse in (
            mla_decode(*args, scale=1.0, num_splits=splits, return_lse=True),
            run_triton(mla_decode, *args, scale=1.0, num_splits=splits, return_lse=True)[0],
        ):
            assert out.shape == (0, 4, 32) and lse.shape == (0, 4)


def test_a_wide_table_does_not_change_the_splits_of_a_short_sequence(run_triton):
    """Tables are as wide as the longest sequence may become; splits share what a sequence has."""
    args, _ = paged("20 heads, odd blocks, three splits", torch.float32)
    wide = torch.full((3, 300), -(10**6), dtype=torch.int32)
    wide[:, : args[3].shape[1]] = args[3]
    out, lse = mla_decode_reference(*args, 0.1)
    its_out, its_lse = run_triton(mla_decode, *args[:3], wide, args[4], scale=0.1, num_splits=3, return_lse=True)[0]
    assert_close(its_out, out, torch.float32)
    assert_close(its_lse, lse, torch.float32)


def test_projections_that_do_not_fit_are_refused():
    args, _ = paged("one token", torch.float32)
    with pytest.raises(ValueError, match="w_uk"):
        mla_decode_absorbed(torch.zeros(1, 4, 24), *args[1:], torch.zeros(4, 24, 32), torch.zeros(4, 20, 31))

"""A cache on several devices: shares, copies, stages, replicas; by hand."""

import pytest

from explorer.errors import InputError
from explorer.estimators.memory import cache_bytes
from explorer.estimators.ranks import Ranks
from explorer.specs.latent import LatentAttention
from explorer.specs.layers import FullAttention, SharedFromOwner, SlidingWindow
from explorer.specs.model import ModelSpec


def uniform(num_layers=94, num_kv_heads=4, head_dim=128):
    return ModelSpec("x", (FullAttention(num_kv_heads, head_dim, head_dim),) * num_layers, 64, 4096)


def rank(spec, tokens=1, batch=1, **ranks):
    return cache_bytes(spec, tokens, batch, ranks=Ranks(**ranks)).per_rank


def test_qwen3_235b_on_four_ranks():
    """94 layers x 2 x 1 of 4 KV heads x 128 x 2 B = 48,128 B a token on each; together what one device would keep."""
    found = rank(uniform(), tp=4)
    assert found.bytes_per_token_growing == found.total_bytes == 48_128
    assert found.all_ranks_bytes == 4 * 48_128 == cache_bytes(uniform(), 1).total_bytes


@pytest.mark.parametrize("tp", [4, 8, 16])
def test_beyond_the_kv_heads_the_share_stops_shrinking(tp):
    """Four KV heads: on 8 ranks each head lies on two of them, on 16 on four."""
    found = rank(uniform(), tp=tp)
    assert found.total_bytes == 48_128
    assert found.all_ranks_bytes == tp * 48_128


def test_a_latent_is_on_every_rank():
    """DeepSeek-V3 on 8 ranks: 70,272 B a token on each, 8 times that in all; with dp instead of tp it is split."""
    spec = ModelSpec("mla", (LatentAttention(512, 64),) * 61, 128, 7168)
    assert rank(spec, tp=8).total_bytes == 70_272
    assert rank(spec, tp=8).all_ranks_bytes == 8 * 70_272
    split = rank(spec, batch=16, dp=8)
    assert (split.sequences, split.total_bytes, split.all_ranks_bytes) == (2, 2 * 70_272, 16 * 70_272)


def test_heads_that_do_not_share_evenly():
    """Phi-4's ten KV heads: on 2, 5, 10 or 20 ranks, not on 4."""
    assert rank(uniform(num_kv_heads=10), tp=5).total_bytes == 94 * 2 * 512
    assert rank(uniform(num_kv_heads=10), tp=20).total_bytes == 94 * 512
    with pytest.raises(InputError, match="tp=4: 10 heads of a cache cannot be shared evenly"):
        rank(uniform(num_kv_heads=10), tp=4)


def test_pipeline_stages():
    """Ten layers on three stages: 4, 3 and 3. The fullest counts, which need not be the longest."""
    assert [len(stage) for stage in Ranks(pp=3).stages(uniform(10))] == [4, 3, 3]
    assert rank(uniform(10), pp=3).total_bytes == 4 * 2_048
    assert rank(uniform(10), pp=3).all_ranks_bytes == 10 * 2_048
    window, full = SlidingWindow(4, 128, 128, 8), FullAttention(4, 128, 128)
    mixed = ModelSpec("mixed", (window,) * 4 + (full,) * 3 + (window,) * 3, 64, 4096)
    assert rank(mixed, tokens=100, pp=3).total_bytes == 3 * 100 * 2_048
    assert rank(mixed, tokens=100, pp=3).bytes_per_token_growing == 3 * 2_048
    with pytest.raises(InputError, match="pp=11: the model has 10 layers"):
        rank(uniform(10), pp=11)


def test_stages_must_not_part_a_layer_from_its_owner():
    """Layer 3 reads layer 0's cache: two stages of two layers would put them on different devices."""
    full = FullAttention(4, 128, 128)
    spec = ModelSpec("x", (full, full, full, SharedFromOwner(0, full)), 64, 4096)
    with pytest.raises(InputError, match="pp=2: layer 3 reads the cache of layer 0"):
        rank(spec, pp=2)
    near = ModelSpec("x", (full, full, full, SharedFromOwner(2, full)), 64, 4096)
    assert rank(near, pp=2).total_bytes == 2 * 2_048


def test_draft_layers_lie_on_the_last_stage():
    spec = ModelSpec("x", (FullAttention(4, 128, 128),) * 4, 64, 4096, mtp_layers=(FullAttention(4, 128, 128),) * 2)
    found = cache_bytes(spec, 1, ranks=Ranks(pp=2), include_mtp=True).per_rank
    assert found.total_bytes == 4 * 2_048
    assert found.all_ranks_bytes == 6 * 2_048


def test_replicas_share_the_sequences():
    """Seven sequences on two replicas: four on the fuller one."""
    found = rank(uniform(), tokens=10, batch=7, dp=2)
    assert (found.sequences, found.total_bytes) == (4, 4 * 10 * 192_512)
    assert found.all_ranks_bytes == 7 * 10 * 192_512
    assert Ranks(2, 3, 4).devices == 24


@pytest.mark.parametrize("bad", [{"tp": 0}, {"tp": 1.5}, {"pp": -1}, {"dp": 10**9}, {"tp": "4"}, {"tp": True}])
def test_numbers_of_ranks(bad):
    with pytest.raises(InputError, match=next(iter(bad))):
        Ranks(**bad)


def test_what_is_said():
    lines = [line.en for line in cache_bytes(uniform(), 1, ranks=Ranks(2, 1, 3)).assumptions]
    assert any("6 devices (tp 2, pp 1, dp 3)" in line for line in lines)

"""The size of a cache: values worked by hand, in words."""

import random

import pytest

from explorer.errors import InputError
from explorer.estimators.memory import MAX_TOKENS, cache_bytes, crossing_tokens, largest_tokens_that_fit
from explorer.specs.catalog import model_named, models
from explorer.specs.layers import FullAttention
from explorer.specs.model import ModelSpec

GIB = 2**30


def uniform(num_layers=32, num_kv_heads=8, head_dim=128):
    return ModelSpec("x", (FullAttention(num_kv_heads, head_dim, head_dim),) * num_layers, 32, 4096)


@pytest.mark.parametrize(
    ("name", "per_token"),
    [
        ("llama-2-7b", 2 * 32 * 32 * 128 * 2),  # K and V, 32 layers, 32 heads, 128 wide, 2 bytes: 524,288 = 512 KiB
        ("llama-3.1-8b", 2 * 32 * 8 * 128 * 2),  # 131,072 = 128 KiB
        ("llama-3-70b", 2 * 80 * 8 * 128 * 2),  # 327,680 = 320 KiB
        ("mistral-7b", 131_072),
        ("qwen2.5-7b", 2 * 28 * 4 * 128 * 2),  # 57,344 = 56 KiB
        ("qwen3-4b", 147_456),  # 36 layers x 2 x 8 x 128 x 2; with hidden/heads = 80 it would be 92,160
        ("qwen3-32b", 262_144),  # 256 KiB
        ("smollm2-135m", 23_040),  # 30 layers x 2 x 3 x 64 x 2
    ],
)
def test_bytes_per_token(name, per_token):
    estimate = cache_bytes(model_named(name), 1)
    assert estimate.bytes_per_token_growing == estimate.total_bytes == per_token
    assert estimate.constant_bytes == 0


@pytest.mark.parametrize(
    ("tokens", "total"),
    [(1, 512 * 2**10), (1_024, 512 * 2**20), (4_096, 2 * GIB), (131_072, 64 * GIB)],
)
def test_the_documents_table_for_32_heads(tokens, total):
    """512 KiB a token, so 512 MiB for 1,024, 2 GiB for 4,096 and 64 GiB for 131,072."""
    assert cache_bytes(model_named("llama-2-7b"), tokens).total_bytes == total


@pytest.mark.parametrize(("num_kv_heads", "gib"), [(32, 64), (8, 16), (1, 2)])
def test_mha_gqa_mqa(num_kv_heads, gib):
    """32 layers, 128 wide, bf16, one sequence of 131,072 tokens: MHA 64 GiB, GQA a quarter, MQA one 32nd."""
    assert cache_bytes(uniform(num_kv_heads=num_kv_heads), 131_072).total_bytes == gib * GIB


def test_the_second_documents_example():
    """Llama-3-70B, batch 16, 8,192 tokens: 320 KiB a token gives 40 GiB; with 64 KV heads 2.5 MiB and 320 GiB."""
    assert cache_bytes(model_named("llama-3-70b"), 8_192, 16).total_bytes == 40 * GIB
    assert cache_bytes(uniform(80, 64), 8_192, 16).total_bytes == 320 * GIB


def test_decimal_and_binary_are_not_confused():
    """1,000,000 tokens of a 70B model: 327.68 * 10**9 bytes, which is 305.2 GiB and not 327.68 GiB."""
    total = cache_bytes(model_named("llama-3-70b"), 1_000_000).total_bytes
    assert total == 327_680_000_000
    assert round(total / GIB, 1) == 305.2


@pytest.mark.parametrize(("dtype", "factor"), [("fp32", 2), ("bf16", 1), ("fp16", 1), ("fp8", 0.5), ("int8", 0.5)])
def test_dtypes_scale_it(dtype, factor):
    estimate = cache_bytes(model_named("llama-3.1-8b"), 4_096, 3, dtype)
    assert estimate.total_bytes == 3 * 4_096 * 131_072 * factor
    assert any("scale" in line.en for line in estimate.assumptions) == (factor == 0.5)


def test_ledger_sums_by_equal_layers():
    wide, narrow = FullAttention(8, 128, 128), FullAttention(1, 64, 32)
    spec = ModelSpec("mixed", (wide,) * 3 + (narrow,) * 2 + (wide,), 8, 1024)
    estimate = cache_bytes(spec, 10, 2)
    assert [row.layers for row in estimate.ledger] == [(0, 1, 2, 5), (3, 4)]
    assert [row.bytes_per_token_growing for row in estimate.ledger] == [4 * 4_096, 2 * 192]
    assert estimate.total_bytes == 2 * 10 * (4 * 4_096 + 2 * 192) == sum(row.total_bytes for row in estimate.ledger)
    assert estimate.read_bytes == estimate.total_bytes


def test_assumptions_name_what_is_left_out():
    lines = " ".join(line.en for line in cache_bytes(model_named("llama-2-7b"), 131_072).assumptions)
    for word in ("weights", "activations", "last block", "prefix", "parallelism", "4,096 positions"):
        assert word in lines
    assert not any("positions" in line.en for line in cache_bytes(model_named("llama-2-7b"), 4_096).assumptions)


def test_largest_context_by_hand():
    """81,559 MiB less 16,060,522,496 B of weights leaves 69,460,287,488 B: 529,939 times 131,072 and a rest."""
    spec = model_named("llama-3.1-8b")
    memory, weights = 81_559 * 2**20, 16_060_522_496
    assert (memory - weights) // 131_072 == 529_939
    assert largest_tokens_that_fit(spec, memory, weights) == 529_939
    assert largest_tokens_that_fit(spec, memory, weights, batch=16) == 529_939 // 16
    assert largest_tokens_that_fit(spec, memory, weights, dtype="fp8") == (memory - weights) // 65_536


def test_exactly_full_and_one_byte_short():
    spec = uniform()
    assert largest_tokens_that_fit(spec, 131_072 * 10, 0) == 10
    assert largest_tokens_that_fit(spec, 131_072 * 10 - 1, 0) == 9


def test_weights_alone_too_large():
    assert largest_tokens_that_fit(model_named("qwen3-32b"), 24 * GIB, 65_524_246_528) == 0


def test_no_limit_within_reach():
    spec = uniform(1, 1, 1)
    assert largest_tokens_that_fit(spec, 2**50, 0, dtype="fp8") == MAX_TOKENS
    assert crossing_tokens(spec, 2**50, dtype="fp8") is None


def test_crossing_by_hand():
    """16,060,522,496 / 131,072 is 122,532.06: at 122,532 tokens the cache is the smaller, at 122,533 the larger."""
    spec = model_named("llama-3.1-8b")
    weights = spec.weight_bytes()
    crossing = crossing_tokens(spec, weights)
    assert crossing == 122_533
    assert cache_bytes(spec, crossing).total_bytes > weights >= cache_bytes(spec, crossing - 1).total_bytes
    assert crossing_tokens(spec, weights, batch=65_536) == 2  # 122,532.06 / 65,536 is 1.87


def test_equal_is_not_yet_larger():
    assert crossing_tokens(uniform(), 131_072 * 7) == 8


def test_random_settings_equal_the_formula():
    """2 L H D T B S, for settings up to far beyond 2**53 bytes."""
    draw = random.Random(20261129)
    for _ in range(300):
        layers, heads, dim = draw.randint(1, 1_024), draw.randint(1, 1_024), draw.randint(1, 4_096)
        tokens, batch = draw.randint(1, 2**30), draw.randint(1, 65_536)
        spec = uniform(layers, heads, dim)
        expected = 2 * layers * heads * dim * tokens * batch * 2
        assert cache_bytes(spec, tokens, batch).total_bytes == expected
        memory = draw.randint(0, 2**45)
        room = memory // (2 * layers * heads * dim * batch * 2)
        assert largest_tokens_that_fit(spec, memory, 0, batch) == min(room, MAX_TOKENS)


@pytest.mark.parametrize(
    "bad",
    [
        {"tokens": 0},
        {"tokens": 2**30 + 1},
        {"tokens": 1.5},
        {"batch": 0},
        {"batch": -3},
        {"dtype": "q4"},
        {"tokens": None},
    ],
)
def test_bad_sizes(bad):
    with pytest.raises(InputError, match="expected"):
        cache_bytes(uniform(), **({"tokens": 1} | bad))


def test_every_catalogue_model_is_estimated():
    for spec in models().values():
        assert cache_bytes(spec, 1_024).total_bytes > 0

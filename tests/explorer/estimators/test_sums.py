"""Layers gathered into terms: the same bytes as layer by layer, and enough for a browser to compute them exactly."""

import json

import pytest

from explorer.errors import InputError
from explorer.estimators import sums
from explorer.estimators.memory import cache_bytes, crossing_tokens, format_of, largest_tokens_that_fit
from explorer.specs.from_config import from_config
from explorer.specs.layers import Combined, CrossAttention, FullAttention
from explorer.specs.model import ModelSpec
from explorer.specs.tensors import PACKED
from tests.explorer.specs.family_configs import CONFIGS

LENGTHS = [1, 2, 3, 4, 127, 128, 129, 511, 512, 1_024, 4_097, 8_192, 8_193, 100_000, 2**20]
# Each with the tensors that it is defined for, None for all.
KEY_VALUE = ("key", "value")
FORMATS = {"bf16": None, "fp32": None, "fp8": None, "fp8_head": KEY_VALUE, "q8_0": None, "kivi-2": KEY_VALUE}


def by_rule(terms, tokens):
    """What a browser does with the exported terms; nothing but the rule stated in pieces.py."""
    found = 0
    for term in terms:
        if term["every"]:
            rows = max(tokens - term["skip"], 0) // term["every"]
            rows = rows if term["cap"] is None else min(rows, term["cap"])
        else:
            rows = term["cap"]
        found += term["bytes"] * rows
    return found


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("form", FORMATS)
def test_layer_by_layer_by_terms_and_by_the_exported_rule(name, form):
    spec = from_config(CONFIGS[name])
    if FORMATS[form] is not None and not all(
        tensor.role in FORMATS[form] or tensor.role not in PACKED for layer in spec.layers for tensor in layer.tensors()
    ):
        with pytest.raises(InputError, match=f"kv_format={form}: a layout for Keys"):
            cache_bytes(spec, 1, 1, form)
        return
    exported = json.loads(json.dumps(sums.piecewise(spec, format_of(form), include_mtp=True)))
    for tokens in LENGTHS:
        found = cache_bytes(spec, tokens, 3, form, include_mtp=True)
        layers = (*spec.layers, *spec.mtp_layers)
        assert found.total_bytes == 3 * sum(layer.bytes_at(tokens, form) for layer in layers)
        assert found.read_bytes == 3 * sum(layer.read_bytes_at(tokens, form) for layer in layers)
        assert (
            found.total_bytes == sum(row.total_bytes for row in found.ledger) == 3 * by_rule(exported["keep"], tokens)
        )
        assert found.read_bytes == 3 * by_rule(exported["read"], tokens)
        parts = [group["num_layers"] * by_rule(group["keep"], tokens) for group in exported["groups"]]
        assert 3 * sum(parts) == found.total_bytes


@pytest.mark.parametrize("name", CONFIGS)
def test_slope_and_constant_hold_once_settled(name):
    """At a multiple of 128 (every run of 4 or 128 tokens complete) the size is slope x tokens + constant, exactly."""
    spec = from_config(CONFIGS[name])
    found = cache_bytes(spec, 2**20)
    assert found.settled_at <= 2**20
    assert found.total_bytes == found.bytes_per_token_growing * 2**20 + found.constant_bytes


def test_few_terms_however_many_layers():
    spec = from_config(CONFIGS["gemma-4-31b"])
    assert len(sums.kept(sums.groups(spec), format_of("bf16"))) == 4  # key and value, windowed and not


def test_a_layer_that_keeps_two_things_is_in_two_rows():
    layer = Combined((FullAttention(2, 64, 64), CrossAttention(2, 64, 64, 1_500)))
    spec = ModelSpec("decoder", (layer,) * 6, 8, 512)
    found = cache_bytes(spec, 10)
    assert [(row.kind, row.num_layers, row.total_bytes) for row in found.ledger] == [
        ("full_attention", 6, 6 * 10 * 512),
        ("cross_attention", 6, 6 * 1_500 * 512),
    ]
    assert found.total_bytes == sum(row.total_bytes for row in found.ledger)


def test_a_cache_that_shrinks_at_the_end_of_a_run_is_judged_by_its_fullest_moment():
    """KIVI, one head of 128: 127 tokens take 65,024 B; token 128 packs the Keys and the whole is smaller. A memory of
    65,023 B ends at 126 tokens, although 128 would fit again."""
    spec = ModelSpec("x", (FullAttention(1, 128, 128),), 8, 1024)
    at = {n: cache_bytes(spec, n, kv_format="kivi-2").total_bytes for n in range(1, 400)}
    assert at[127] == 65_024 and at[128] < 65_023
    for memory in (65_023, 65_024, 70_000, at[255] - 1, at[255]):
        by_walking = max(n for n in range(1, 399) if all(at[m] <= memory for m in range(1, n + 1)))
        assert largest_tokens_that_fit(spec, memory, 0, kv_format="kivi-2") == by_walking
    assert crossing_tokens(spec, 65_023, kv_format="kivi-2") == 127


@pytest.mark.parametrize("name", ["gemma-3-27b", "deepseek-v4-pro", "qwen3.5-9b", "llama-4-scout"])
def test_longest_context_by_walking(name):
    spec = from_config(CONFIGS[name])
    for memory in (2**24, 2**27, 3 * 10**9):
        found = largest_tokens_that_fit(spec, memory, 0)
        if found:
            assert cache_bytes(spec, found).total_bytes <= memory
        assert cache_bytes(spec, found + 1).total_bytes > memory


def test_a_cache_that_never_grows_always_fits_or_never():
    spec = from_config(CONFIGS["mamba-2.8b"])
    size = cache_bytes(spec, 1).total_bytes
    assert largest_tokens_that_fit(spec, size, 0) == 2**30
    assert largest_tokens_that_fit(spec, size - 1, 0) == 0
    assert crossing_tokens(spec, size) is None

"""The proof: thin models of real geometry hold the bytes that their readers say, or that a named rule adds.

Every architecture is in the list; a planted fault in a reader, in a rule or in the cache must show.
"""

from dataclasses import replace

import pytest
import torch

from explorer.probing import proof, terms
from explorer.probing.architectures import ARCHITECTURES
from explorer.probing.fill import caches, fill
from explorer.probing.weigh import weigh
from explorer.specs.layers import FullAttention, SlidingWindow

MUST = {
    "gemma3", "gemma3n", "gemma4", "deepseek_v3", "deepseek_v32", "deepseek_v4", "qwen3_next", "qwen3_5", "kimi_linear",
    "gpt_oss", "minimax", "mamba2", "llama4",
}  # fmt: skip
# Proven by the lab's full run as well; here once, at few tokens: their thin models are the slowest.
SHORT = {"jamba": 24, "zamba2": 24, "nemotron_h": 24, "falcon_mamba": 24, "granitemoehybrid": 24, "kimi_linear": 64,
         "olmo3": 64}  # fmt: skip


def test_at_least_25_and_those_that_must():
    assert len(ARCHITECTURES) >= 25 and set(ARCHITECTURES) >= MUST


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_byte_is_accounted_for(name):
    kv_len = SHORT.get(name, 270)
    found = proof.prove(proof.subject(ARCHITECTURES[name], longest_window=kv_len // 2), kv_len)
    assert not found.missing_kinds
    assert found.unexplained_bytes == 0, f"{found.difference_bytes} bytes, of which the rules predict {found.explained}"
    assert found.real_bytes == found.estimated_bytes + found.explained_bytes > 0
    assert found.holds


@pytest.mark.parametrize("name", ["gpt_oss", "deepseek_v4"])
def test_every_length_around_the_boundaries(name):
    """Token by token past the window (32) and past compressed entries of 4 and of 128 tokens."""
    made = proof.subject(ARCHITECTURES[name], longest_window=32)
    for kv_len, cache in enumerate(caches(made.model, 1, 132), start=1):
        found = proof.compare(made.spec, weigh(cache), kv_len)
        assert found.holds, (kv_len, found)


@pytest.fixture(scope="module")
def llama():
    made = proof.subject(ARCHITECTURES["llama"], longest_window=150)
    return made, weigh(fill(made.model, 20))


def test_exact_means_exact(llama):
    """Llama 3.2 1B: 2 layers x 2 x 8 heads x 64 x 2 bytes x 20 tokens = 81,920."""
    made, weighed = llama
    found = proof.compare(made.spec, weighed, 20)
    assert (found.estimated_bytes, found.real_bytes, found.difference_bytes) == (81_920, 81_920, 0)
    assert found.explained == {} and found.holds


@pytest.mark.parametrize(
    "wrong",
    [FullAttention(8, 64, 63), FullAttention(7, 64, 64), SlidingWindow(8, 64, 64, 16), SlidingWindow(8, 64, 64, 4096)],
)
def test_a_wrong_spec_is_red(llama, wrong):
    made, weighed = llama
    found = proof.compare(replace(made.spec, layers=(wrong,) * 2), weighed, 20)
    assert found.unexplained_bytes > 0 and not found.holds


def test_errors_of_two_layers_do_not_cancel(llama):
    made, weighed = llama
    spec = replace(made.spec, layers=(FullAttention(8, 64, 80), FullAttention(8, 64, 48)))
    found = proof.compare(spec, weighed, 20)
    assert found.difference_bytes == found.explained_bytes == 0
    assert found.unexplained_bytes == 2 * 8 * 16 * 20 * 2 and not found.holds


def test_a_byte_that_nobody_knows_of_is_red(llama):
    made, _ = llama
    cache = fill(made.model, 20)
    cache.layers[0].surprise = torch.zeros(3, dtype=torch.int8)
    assert proof.compare(made.spec, weigh(cache), 20).unexplained_bytes == 3


def test_a_kind_that_the_thin_model_lacks_is_red(monkeypatch):
    """A thin model of the layers with a window alone would prove nothing about the others."""
    real = proof.thin_config

    def shallow(config, **how):
        thin = real(config, **how)
        return replace(thin, fields=thin.fields | {"num_hidden_layers": 1, "layer_types": ["sliding_attention"]})

    monkeypatch.setattr(proof, "thin_config", shallow)
    assert proof.prove(proof.subject(ARCHITECTURES["gpt_oss"], longest_window=150), 20).missing_kinds


def test_a_missing_rule_is_red(monkeypatch):
    made = proof.subject(ARCHITECTURES["gpt_oss"], longest_window=150)
    weighed = weigh(fill(made.model, 140))
    assert proof.compare(made.spec, weighed, 140).holds
    monkeypatch.setattr(terms, "RULES", tuple(rule for rule in terms.RULES if rule.name != "window keeps W-1"))
    assert proof.compare(made.spec, weighed, 140).unexplained_bytes == 8 * 2 * 64 * 2

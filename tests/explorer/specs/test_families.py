"""What each family's config comes to, against figures worked out in words."""

import pytest

from explorer.estimators.memory import cache_bytes
from explorer.specs.from_config import from_config
from tests.explorer.specs.family_configs import CONFIGS

KIB, MIB, GIB = 2**10, 2**20, 2**30


def spec_of(name, switches=()):
    return from_config(CONFIGS[name], name, switches)


def estimate(name, tokens=1, switches=(), **how):
    return cache_bytes(spec_of(name, switches), tokens, **how)


@pytest.mark.parametrize(
    ("name", "slope", "constant"),
    [
        # The same heads in every layer: 2 x layers x KV heads x dimension x 2 bytes.
        ("llama-3.1-8b", 2 * 32 * 8 * 128 * 2, 0),  # 128 KiB
        ("llama-3.1-405b", 2 * 126 * 8 * 128 * 2, 0),  # 504 KiB
        ("mixtral-8x7b", 2 * 32 * 8 * 128 * 2, 0),
        ("qwen2-72b", 2 * 80 * 8 * 128 * 2, 0),  # 320 KiB; its sliding_window is switched off
        ("qwen3-4b", 147_456, 0),  # 36 x 2 x 8 x 128 x 2, head_dim stated: not 92,160
        ("qwen3-235b", 2 * 94 * 4 * 128 * 2, 0),
        ("gemma-7b", 448 * KIB, 0),  # 28 x 2 x 16 x 256 x 2
        ("phi-4", 200 * KIB, 0),  # 40 x 2 x 10 x 128 x 2
        ("phi-2", 2 * 32 * 32 * 80 * 2, 0),
        ("smollm3-3b", 2 * 36 * 4 * 128 * 2, 0),
        ("minimax-m2", 248 * KIB, 0),  # 62 x 2 x 8 x 128 x 2
        ("glm-4.5", 2 * 92 * 8 * 128 * 2, 0),  # 128 wide, where 5,120 / 96 would be 53
        ("glm-4-9b", 2 * 40 * 2 * 128 * 2, 0),
        # Windows: those layers stop growing at the window.
        ("mistral-7b-v0.1", 0, 4_096 * 131_072),  # 512 MiB and never more
        ("gemma-2-27b", 23 * 8_192, 23 * 8_192 * 4_096),  # 16 heads x 128 x 2 x 2 = 8 KiB a layer, every second full
        ("gemma-3-27b", 10 * 8_192, 52 * 8_192 * 1_024),  # 80 KiB and 416 MiB
        ("gemma-3n-e4b", 4 * 2_048, 16 * 2_048 * 512),  # 35 - 15 = 20 layers keep something: 16 local, 4 global
        ("gemma-4-e2b", 3 * 2_048, 12 * 1_024 * 512),  # 6,144 B and 6 MiB: heads of 512 in full layers, 256 in local
        ("gemma-4-e4b", 4 * 4_096, 20 * 2_048 * 512),  # 16,384 B and 20 MiB
        ("gemma-4-26b-a4b", 5 * 4_096, 25 * 8_192 * 1_024),  # 20,480 B and 200 MiB
        ("gemma-4-31b", 10 * 8_192, 50 * 16_384 * 1_024),  # 80 KiB and 800 MiB
        ("gpt-oss-20b", 12 * 2_048, 12 * 2_048 * 128),  # 8 heads x 64 x 2 x 2 = 2 KiB a layer: 24 KiB and 3 MiB
        ("gpt-oss-120b", 18 * 2_048, 18 * 2_048 * 128),  # 36 KiB and 4.5 MiB
        ("llama-4-scout", 12 * 4_096, 36 * 4_096 * 8_192),  # every fourth layer is full
        # Latents: (512 + 64) x 2 B a layer.
        ("deepseek-v2", 60 * 1_152, 0),
        ("deepseek-v3", 70_272, 0),  # 61 x 1,152: 68.6 KiB
        ("kimi-k2", 70_272, 0),
        ("deepseek-v3.2", 61 * 1_408, 0),  # and 128 x 2 B of indexer keys
        ("glm-5", 78 * 1_408, 0),
        ("deepseek-v4-pro", 30 * 320 + 31 * 8, 61 * 128 * KIB),
        ("deepseek-v4-flash", 21 * 320 + 20 * 8, 43 * 128 * KIB),
        # States: nothing grows in those layers.
        ("qwen3-next-80b", 24_576, 36 * (2 * MIB + 49_152)),  # 12 full layers of 2 heads x 256
        ("qwen3.5-9b", 32_768, 24 * (2 * MIB + 49_152)),  # 8 x 2 x 4 x 256 x 2; 48 MiB and 1.125 MiB
        ("qwen3.5-27b", 65_536, 48 * (2 * MIB + 49_152)),  # 16 full layers of 64
        ("kimi-linear-48b", 7 * 1_152, 20 * (32 * 128 * 128 * 4 + 3 * 4_096 * 3 * 2)),
        ("kimi-k3", 24 * 1_152, 69 * (96 * 128 * 128 * 4 + 3 * 12_288 * 3 * 2)),  # 27 KiB; 414 MiB and 14.6 MiB
        ("kimi-k3.1", 24 * 1_408, 69 * (96 * 128 * 128 * 4 + 3 * 12_288 * 3 * 2)),
        ("minimax-text-01", 40_960, 280 * MIB),  # 10 x 2 x 8 x 128 x 2; 70 x 64 x 128 x 128 x 4
        ("mamba-2.8b", 0, 64 * 5_120 * (16 * 4 + 3 * 2)),
        ("mamba2-2.7b", 0, 64 * (80 * 64 * 128 * 4 + (5_120 + 256) * 3 * 2)),
        ("rwkv-4-7b", 0, 32 * 4_096 * (3 * 4 + 2 * 2)),  # three fp32 numbers and two earlier inputs a channel
        ("rwkv-7-2.9b", 0, 32 * (40 * 64 * 64 * 4 + 2 * 2_560 * 2)),
    ],
)
def test_slope_and_constant(name, slope, constant):
    found = estimate(name)
    assert (found.bytes_per_token_growing, found.constant_bytes) == (slope, constant)


def test_every_config_has_such_a_line():
    covered = {mark.args[1][i][0] for mark in test_slope_and_constant.pytestmark for i in range(len(mark.args[1]))}
    assert covered == set(CONFIGS)


def test_deepseek_v4_pro_at_a_million_tokens():
    """30 CSA layers x 320.125 MiB + 31 HCA layers x 8.125 MiB = 9,855.625 MiB = 9.62 GiB, as published."""
    found = estimate("deepseek-v4-pro", 2**20)
    assert found.total_bytes == 9_855_625 * MIB // 1_000
    assert f"{found.total_bytes / GIB:.2f}" == "9.62"
    assert [(row.num_layers, row.kind) for row in found.ledger] == [(31, "compressed"), (30, "compressed")]


def test_a_v3_2_style_stack_at_a_million_tokens():
    """61 layers x (512 + 64 + 128) x 2 B x 1,048,576 = 83.875 GiB: the published 83.9."""
    assert estimate("deepseek-v3.2", 2**20).total_bytes == 83_875 * GIB // 1_000


def test_deepseek_v4_flash():
    """21 x 320.125 + 20 x 8.125 + 2 x 0.125 MiB."""
    assert estimate("deepseek-v4-flash", 2**20).total_bytes == 6_885_375 * MIB // 1_000


def test_deepseek_formats():
    """656 B a layer, and 132 B of indexer keys: 61 x 788 = 48,068; without the indexer 61 x 656 = 40,016."""
    assert estimate("deepseek-v3.2", kv_format="fp8_ds_mla").bytes_per_token_growing == 48_068
    assert estimate("deepseek-v3", kv_format="fp8_ds_mla").bytes_per_token_growing == 40_016


def test_gemma_4_31b_under_both_assumptions():
    """Both tensors: 10 GiB + 0.78125 GiB. One tensor for both: half. Before the window is full: 880 KiB a token."""
    assert estimate("gemma-4-31b", 131_072).total_bytes == 10.78125 * GIB
    assert estimate("gemma-4-31b", 131_072, ["k-eq-v-stored-once"]).total_bytes == 5.390625 * GIB
    assert estimate("gemma-4-31b").total_bytes == 880 * KIB
    lines = [line.en for line in estimate("gemma-4-31b").assumptions]
    assert any("both stored" in line for line in lines)


def test_gemma_4_e2b_owners():
    """Layers 15 to 34 have no cache: the local ones read layer 13's, the full ones layer 14's."""
    rows = {(row.kind, row.owner): row.layers for row in estimate("gemma-4-e2b").ledger}
    assert rows[("shared", 13)] == tuple(i for i in range(15, 35) if i % 5 != 4)
    assert rows[("shared", 14)] == (19, 24, 29, 34)
    assert len(rows[("sliding_window", None)]) == 12 and rows[("full_attention", None)] == (4, 9, 14)
    assert estimate("gemma-4-e2b", 8_192).total_bytes == 54 * MIB  # 48 MiB of full layers and 6 MiB of windows


def test_gemma_3n_at_32k():
    """4 x 2 KiB x 32,768 = 256 MiB and 16 x 2 KiB x 512 = 16 MiB."""
    assert estimate("gemma-3n-e4b", 32_768).total_bytes == 272 * MIB


def test_gemma_3_27b_at_128k():
    """10 x 8,192 B x 131,072 = 10 GiB, and 416 MiB of windows: 10.41 GiB, where all full would be 62."""
    assert estimate("gemma-3-27b", 131_072).total_bytes == 10 * GIB + 416 * MIB


def test_gpt_oss_batch():
    """12 x 2 KiB x 8,192 + 12 x 2 KiB x 128, for 32 sequences: 6.09 GiB. One token in 36 layers: 73,728 B."""
    assert estimate("gpt-oss-20b", 8_192, batch=32).total_bytes == 6.09375 * GIB
    assert estimate("gpt-oss-120b").total_bytes == 73_728


def test_qwen3_5_9b_names_its_state():
    """8 full layers: 4 GiB at 131,072 tokens. 24 states of 2 MiB in fp32, half of that in the model's format."""
    found = estimate("qwen3.5-9b", 131_072)
    state, full = found.ledger
    assert (full.num_layers, full.total_bytes) == (8, 4 * GIB)
    assert (state.num_layers, state.kind, state.formats) == (
        24,
        "recurrent_state",
        (("state", "fp32"), ("conv", "bf16")),
    )
    assert "Gated DeltaNet" in state.shape.en
    assert state.total_bytes == 48 * MIB + 24 * 8_192 * 3 * 2
    halved = estimate("qwen3.5-9b", 1, ["state-in-model-dtype"])
    assert halved.constant_bytes == 24 * MIB + 24 * 8_192 * 3 * 2


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("qwen3.5-27b", 4_096),  # one more full layer on 16: 6.25 %
        ("deepseek-v3", 1_152),
        ("glm-4.5", 4_096),
        ("deepseek-v4-pro", 1_024),  # a window layer: one vector of 512, which stops at 128 tokens
    ],
)
def test_draft_layers_are_counted_if_asked(name, more):
    assert estimate(name, include_mtp=True).total_bytes - estimate(name).total_bytes == more
    assert estimate(name, include_mtp=True).ledger[-1].mtp
    assert any("MTP" in line.en for line in estimate(name).assumptions)


def test_compressor_state_is_a_switch():
    """At 1,048,576 tokens no run is open, so only CSA's carried four tokens are left: 30 x 4 x 640 x 2 x 4 B."""
    more = estimate("deepseek-v4-pro", 2**20, ["compressor-state"]).total_bytes
    assert more - estimate("deepseek-v4-pro", 2**20).total_bytes == 30 * 4 * 640 * 2 * 4


def test_kimi_k3_layout():
    """Layers 4, 8, ..., 92 and 93 (counted from 1) keep a latent, the other 69 a state."""
    layers = spec_of("kimi-k3").layers
    assert [i + 1 for i, layer in enumerate(layers) if layer.kind == "latent"] == [*range(4, 93, 4), 93]
    assert {layer.kind for layer in spec_of("kimi-k3.1").layers} == {"latent_indexed", "recurrent_state"}


def test_llama_4_layout():
    layers = spec_of("llama-4-scout").layers
    assert [i + 1 for i, layer in enumerate(layers) if layer.kind == "full_attention"] == list(range(4, 49, 4))

"""What calculators and engines are asked most, and get wrong: the right values, each worked out in its test's words.

B: bytes; KiB, MiB, GiB: powers of 1,024; KB, GB: of 1,000. bf16 unless another format is named.
"""

import pytest

from explorer.specs import catalog
from explorer.specs.formats import cache_format
from explorer.specs.layers import FullAttention

KIB, MIB, GIB = 2**10, 2**20, 2**30


def layers(name):
    return catalog.model_named(name).layers


def slope(name, form="bf16", tp=1):
    return sum(layer.growing_bytes_per_token(form, tp) for layer in layers(name))


def size(name, tokens, form="bf16", tp=1):
    return sum(layer.bytes_at(tokens, form, tp) for layer in layers(name))


def all_full(name, tokens=1, head_dim=None):
    """As a calculator that knows neither windows nor sharing: every layer like the first, over all tokens."""
    first = layers(name)[0]
    dim = head_dim or first.key_dim
    return len(layers(name)) * 2 * first.num_kv_heads * dim * 2 * tokens


def test_head_dim_is_a_field_of_its_own():
    """Qwen3 4B: 36*2*8*128*2 = 147,456 B; hidden/heads = 80 would give 92,160. gpt-oss has 64, not 2,880/64 = 45;
    Gemma 3 12B 256, not 240; Qwen3-Next 256, not 128, so 12*2*2*256*2 = 24,576 B and not 12,288; Gemma 2 9B 256, not
    224."""
    assert slope("qwen3-4b") == 36 * 2 * 8 * 128 * 2 == 147_456
    assert all_full("qwen3-4b", head_dim=2560 // 32) == 92_160
    dims = {name: layers(name)[0].key_dim for name in ("gpt-oss-20b", "gemma-3-12b", "gemma-2-9b", "gemma-2-27b")}
    assert dims == {"gpt-oss-20b": 64, "gemma-3-12b": 256, "gemma-2-9b": 256, "gemma-2-27b": 128}
    assert slope("qwen3-next-80b") == 24_576 == 2 * 12_288


def test_grouped_heads_not_query_heads():
    """Llama 3.1 8B 32*2*8*128*2 = 131,072 B, 16 GiB at 131,072 tokens; 70B 327,680 B: a million tokens are 327.68 GB =
    305.2 GiB. Qwen3 30B-A3B 48*2*4*128*2 = 98,304 B. Qwen3 0.6B at 40,960 tokens: 114,688 * 40,960 = 4.375 GiB."""
    assert slope("llama-3.1-8b") == 131_072
    assert size("llama-3.1-8b", 131_072) == 16 * GIB
    assert size("llama-3.1-70b", 10**6) == 327.68 * 10**9
    assert size("llama-3.1-70b", 10**6) / GIB == pytest.approx(305.2, abs=0.05)
    assert slope("qwen3-30b-a3b") == 98_304
    assert size("qwen3-0.6b", 40_960) == 4.375 * GIB


def test_one_latent_without_a_factor_of_two():
    """DeepSeek-V3: 61*(512 + 64)*2 = 70,272 B. 65,536 tokens: 4.29 GiB, at 163,840 10.72 GiB. Expanded into 128 heads
    of 192 + 128 elements: 305 GiB at 65,536. One layer at 4 bits: 18 MiB, so all 61 are 1.07 GiB."""
    assert slope("deepseek-v3") == 70_272
    assert size("deepseek-v3", 65_536) / GIB == pytest.approx(4.29, abs=0.005)
    assert size("deepseek-v3", 163_840) / GIB == pytest.approx(10.72, abs=0.005)
    expanded = 61 * FullAttention(128, 192, 128).bytes_at(65_536, "bf16")
    assert expanded == 61 * 128 * 320 * 2 * 65_536 == 305 * GIB
    four_bits = size("deepseek-v3", 65_536) // 4
    assert (four_bits / 61 / MIB, four_bits / GIB) == (18, pytest.approx(1.07, abs=0.005))


def test_three_baselines_of_mla():
    """Against 576 elements: 128 heads of 56 (hidden/heads), of 128, or of 192 for Keys and 128 for Values: 24.9, 56.9
    and 71.1 times. Forgetting the position part (2*61*512*2 = 124,928 B) is 1.78 times too much."""
    elements = slope("deepseek-v3") // (61 * 2)
    baselines = (2 * 128 * 56, 2 * 128 * 128, 128 * (192 + 128))
    assert [round(each / elements, 1) for each in baselines] == [24.9, 56.9, 71.1]
    assert 2 * 61 * 512 * 2 / slope("deepseek-v3") == pytest.approx(1.78, abs=0.005)


def test_indexer_keys_count():
    """DeepSeek-V3.2 in fp8_ds_mla: 512 fp8 + 4 fp32 scales + 64 bf16 = 656 B, indexer 128 fp8 + one fp32 scale = 132
    B, a fifth more. 61 * 788 = 48,068 B; without the indexer 40,016 B."""
    assert slope("deepseek-v3.2", "fp8_ds_mla") == 61 * (656 + 132) == 48_068
    assert slope("deepseek-v3", "fp8_ds_mla") == 61 * 656 == 40_016
    added = slope("deepseek-v3.2", "fp8_ds_mla") - slope("deepseek-v3", "fp8_ds_mla")
    assert added / slope("deepseek-v3", "fp8_ds_mla") == pytest.approx(0.201, abs=0.0005)
    # A log's "54.52 GB" for 1,462,784 tokens without the indexer was GiB.
    assert slope("deepseek-v3", "fp8_ds_mla") == pytest.approx(54.52 * GIB / 1_462_784, rel=2e-4)


def test_draft_layer():
    """Qwen3.5 27B: 16 of 64 layers attend, 16*2*4*256*2 = 65,536 B, 16 GiB at 262,144; the MTP layer adds a 17th:
    4,096 B, 6.25 %. All 64 layers would be 64 GiB, and 53.3 GiB with head_dim 5,120/24. GLM-5's latents at 202,752
    tokens: 16.97 GiB for 78 layers, 17.18 for 79."""
    spec = catalog.model_named("qwen3.5-27b")
    mtp = sum(layer.growing_bytes_per_token("bf16") for layer in spec.mtp_layers)
    assert (slope("qwen3.5-27b"), mtp, mtp / slope("qwen3.5-27b")) == (65_536, 4096, 0.0625)
    assert slope("qwen3.5-27b") * 262_144 == 16 * GIB
    every_layer = len(spec.layers) * mtp * 262_144
    assert every_layer == 64 * GIB
    assert every_layer * (spec.hidden_size / spec.num_heads) / 256 / GIB == pytest.approx(53.3, abs=0.05)
    number = len(layers("glm-5"))
    latents = slope("glm-5") - number * 128 * 2  # without the indexer's keys
    assert [round(latents * count / number * 202_752 / GIB, 2) for count in (78, 79)] == [16.97, 17.18]
    assert len(catalog.model_named("glm-5").mtp_layers) == 1


def test_windows_are_a_ceiling():
    """Gemma 3 27B at 131,072: 10 full layers of 8,192 B a token = 10 GiB, 52 windows of 1,024 = 416 MiB: 10.41 GiB.
    All full: 62 GiB; with head_dim 168: 81.4. gpt-oss 120B, first token: 36 * 2,048 = 73,728 B, not half of it. 20B,
    8,192 tokens, 32 sequences: 6.09 GiB; with windows not used 12 GiB."""
    assert size("gemma-3-27b", 131_072) == 10 * GIB + 416 * MIB
    assert all_full("gemma-3-27b", 131_072) == 62 * GIB
    assert all_full("gemma-3-27b", 131_072, 168) / GIB == pytest.approx(81.4, abs=0.05)
    assert size("gpt-oss-120b", 1) == 73_728
    assert slope("gpt-oss-120b") == 36_864
    assert 32 * size("gpt-oss-20b", 8192) == 6 * GIB + 96 * MIB
    assert 32 * all_full("gpt-oss-20b", 8192) == 12 * GIB


def test_shared_layers_keep_nothing():
    """Gemma 3n E4B, 32,768 tokens: 20 of 35 layers own 2,048 B a token, 4 of them full: 256 + 16 = 272 MiB; 20 full
    1,280, 35 full 2,240 MiB. Gemma 4 E2B at 8,192: 3 full layers of 2,048 B, 48 MiB, and 12 windows of 512 tokens of
    1,024 B, 6 MiB; 20 of 35 layers share, 57 %."""
    assert size("gemma-3n-e4b", 32_768) == 272 * MIB
    owners = [layer for layer in layers("gemma-3n-e4b") if layer.kind != "shared"]
    assert sum(layer.bytes_at(1, "bf16") for layer in owners) * 32_768 == 1280 * MIB
    assert all_full("gemma-3n-e4b", 32_768) == 2240 * MIB
    assert size("gemma-4-e2b", 8192) == 54 * MIB
    kinds = [layer.kind for layer in layers("gemma-4-e2b")]
    assert (kinds.count("shared"), kinds.count("full_attention"), kinds.count("sliding_window")) == (20, 3, 12)


def test_gemma_4_31b_is_three_numbers():
    """A token costs 50*16*256*4 + 10*4*512*4 = 901,120 B (880 KiB) while windows fill, then 10*8,192 = 81,920 B (80
    KiB). An engine that divides all that it reserves for 262,144 tokens (a chunk of 8,192 in pages of 16 beside the
    window) by the tokens gets 108.17 KiB, and so 626,971 tokens in 64.68 GiB and 1,007,342 in 103.92."""
    assert size("gemma-4-31b", 1) == 901_120 == 880 * KIB
    assert slope("gemma-4-31b") == 81_920 == 80 * KIB
    pages = -(-(1023 + 8192) // 16) + 1
    ratio = (81_920 * 262_144 + pages * 16 * 50 * 16_384) / 262_144
    assert ratio / KIB == pytest.approx(108.17, abs=0.005)
    assert [round(room * GIB / ratio) for room in (64.68, 103.92)] == [626_971, 1_007_342]


def test_two_kinds_of_layer_have_two_shapes():
    """Gemma 4 12B: 8 full layers of one KV head of 512, 8*2*512*2 = 16 KiB; 40 windows of 8 heads of 256, 320 KiB a
    token until 1,024. E4B in llama.cpp, context 4,096, micro-batch 1,024: 20 windows of 2,048 B have pad(512 + 1,024)
    = 1,536 cells, 60 MiB, instead of 160; the 4 full layers 4*2*2*512*2 * 4,096 = 64 MiB."""
    assert slope("gemma-4-12b") == 16 * KIB
    assert size("gemma-4-12b", 1) == (16 + 320) * KIB
    windows = [layer for layer in layers("gemma-4-e4b") if layer.kind == "sliding_window"]
    per_cell = sum(layer.bytes_at(1, "bf16") for layer in windows)
    assert (len(windows), per_cell, per_cell * 1536, per_cell * 4096) == (20, 40_960, 60 * MIB, 160 * MIB)
    assert slope("gemma-4-e4b") * 4096 == 64 * MIB


def test_keys_and_values_of_unlike_size():
    """MiMo-V2-Flash: Keys of 192, Values of 128, so K is 1.5 times V and the sum 320 elements a head, not 2 * 192."""
    layer = layers("mimo-v2-flash")[0]
    key, value = (tensor.pieces(cache_format("bf16"), 1)[0].row_bytes for tensor in layer.tensors())
    assert (key / value, layer.growing_bytes_per_token("bf16")) == (1.5, 4 * (192 + 128) * 2)


def test_ranks():
    """Qwen3 235B on 4 ranks: one of 4 KV heads each, 94*2*128*2 = 48,128 B; 367,404 tokens are 16.47 GiB. Qwen3 32B
    has 8 KV heads: on 16 ranks each still keeps one, an eighth. An MLA latent is whole on every rank."""
    assert slope("qwen3-235b-a22b", tp=4) == 48_128
    assert slope("qwen3-235b-a22b", tp=4) * 367_404 / GIB == pytest.approx(16.47, abs=0.005)
    assert slope("qwen3-32b", tp=8) == slope("qwen3-32b", tp=16) == slope("qwen3-32b") // 8
    assert slope("deepseek-v3", tp=8) == slope("deepseek-v3")


def test_bits_with_their_scales():
    """q8_0 and q4_0 add an fp16 scale to 32 elements: 8.5 and 4.5 bits. KIVI at 2 bits with groups of 32 adds a scale
    and a zero point: 3 bits, at most 16/3 = 5.33 times less. fp8 with an fp32 scale for each head of 128: 3.1 %
    more."""
    layer = FullAttention(8, 128, 128)
    bits = {form: 8 * layer.growing_bytes_per_token(form) / (2 * 8 * 128) for form in ("q8_0", "q4_0", "kivi-2")}
    assert bits == {"q8_0": 8.5, "q4_0": 4.5, "kivi-2": 3.0}
    assert 16 / bits["kivi-2"] == pytest.approx(5.33, abs=0.005)
    assert layer.bytes_at(10, "fp8_head") / layer.bytes_at(10, "fp8") == 1 + 4 / 128
    # K alone in q4_0 beside bf16 Values, as one report's 16.15 -> 10.40 GB turned out; both would be 4.54.
    one = bits["q4_0"] / 16
    assert [round(16.15 * (1 + one) / 2, 2), round(16.15 * one, 2)] == [10.35, 4.54]


def test_kivi_with_its_unpacked_tail():
    """4,196 tokens, groups of 32, residual 128, bits a (Key, Value) pair of elements: Keys are packed in runs of 128,
    32 runs, and 100 tokens stay: 4,096*3 + 100*16; of Values the last 128: 4,068*3 + 128*16. Against 2*4,196*16: 4.77
    times. (With 128 tokens of each, 4.71, which some notes give.)"""
    layer = FullAttention(1, 128, 128)
    packed = 4096 * 3 + 100 * 16 + 4068 * 3 + 128 * 16
    assert 8 * layer.bytes_at(4196, "kivi-2") == 128 * packed
    assert layer.bytes_at(4196, "bf16") / layer.bytes_at(4196, "kivi-2") == pytest.approx(4.77, abs=0.005)


def test_states_do_not_grow():
    """fp32 states: Mamba 64*5,120*16*4 = 20 MiB, Mamba-2 eight times that, MiniMax-Text-01 70*64*128*128*4 = 280 MiB,
    Kimi K3 69*96*128*128*4 = 414 MiB beside 24*576*2 = 27,648 B a token, which reach it after 15,701 tokens."""

    def states(name):
        found = [t for layer in layers(name) for t in layer.tensors() if t.role == "state"]
        return sum(piece.row_bytes * piece.rows.at(1) for t in found for piece in t.pieces(cache_format("bf16")))

    sizes = {name: states(name) / MIB for name in ("mamba-2.8b", "mamba2-2.7b", "minimax-text-01", "kimi-k3")}
    assert sizes == {"mamba-2.8b": 20, "mamba2-2.7b": 160, "minimax-text-01": 280, "kimi-k3": 414}
    assert (slope("kimi-k3"), 414 * MIB // slope("kimi-k3")) == (27_648, 15_701)
    assert slope("mamba-2.8b") == slope("mamba2-2.7b") == 0
    assert (slope("minimax-text-01"), slope("minimax-m2")) == (40_960, 253_952)


def test_compressed_layers_are_a_slope_and_a_constant():
    """V4-Flash: 21 CSA of 1,280/4 B, 20 HCA of 1,024/128 B: 6,880 B a token, and 43 windows of 128 KiB; at 1,048,576
    tokens 6.72 GiB. Raw rows of 544 B (q8_0) in 43 layers at 32,768 tokens would be 731 MiB; 768 rows are 17.13, at
    any length."""
    assert slope("deepseek-v4-flash") == 21 * 1280 // 4 + 20 * 1024 // 128 == 6880
    assert size("deepseek-v4-flash", 1_048_576) == 6880 * 1_048_576 + 43 * 128 * KIB
    assert size("deepseek-v4-flash", 1_048_576) / GIB == pytest.approx(6.72, abs=0.005)
    raw = sum(layer.tensors()[0].pieces(cache_format("q8_0"))[0].row_bytes for layer in layers("deepseek-v4-flash"))
    assert [round(raw * rows / MIB, 2) for rows in (32_768, 768)] == [731.0, 17.13]


def test_units_and_rates():
    """1.3747 "gb" for 10,010 tokens of a 144 KiB model were GiB. Five draft layers of 8 heads of 128: 20,480 B,
    450,060 slots are 8.58 GiB. Llama 3.1 8B in 3.81 GiB: 1,952 blocks of 16. At 25 GB/s, 512 KiB a token load at 47.7
    thousand tokens a second, 128 KiB at 190.7. A half-filled last page of 16 tokens wastes 1 MiB."""
    assert slope("qwen3-8b") == pytest.approx(1.3747 * GIB / 10_010, rel=5e-5)
    draft = 5 * FullAttention(8, 128, 128).growing_bytes_per_token("bf16")
    assert (draft, round(450_060 * draft / GIB, 2)) == (20_480, 8.58)
    assert 1952 * 16 * slope("llama-3.1-8b") / GIB == pytest.approx(3.81, abs=0.005)
    rates = [round(25e9 / slope(name) / 1000, 1) for name in ("llama-2-7b", "llama-3.1-8b")]
    assert rates == [47.7, 190.7]
    assert 8 * slope("llama-3.1-8b") == MIB

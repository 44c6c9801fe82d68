"""What the source documents print, reproduced: each value worked out by hand in its test's words, in bf16 (2 bytes)."""

import re
from decimal import Decimal

import pytest

from explorer.specs import catalog
from explorer.specs.layers import FullAttention, SharedFromOwner

KIB, GIB = 2**10, 2**30
PRINTED = [(name, value) for name, entry in catalog.entries().items() for value in entry.printed]


def slope(name, switches=()):
    return sum(layer.growing_bytes_per_token("bf16") for layer in catalog.model_named(name, switches).layers)


def size(name, tokens, switches=()):
    return sum(layer.bytes_at(tokens, "bf16") for layer in catalog.model_named(name, switches).layers)


@pytest.mark.parametrize(("name", "value"), PRINTED, ids=[f"{name}: {value.text}" for name, value in PRINTED])
def test_every_printed_value_follows_from_its_spec(name, value):
    """The exact bytes, and that they round to what is printed; an assumption is written in both languages."""
    assert catalog.printed_size(name, value) == value.num_bytes
    number, unit = re.search(r"([\d.]+) (KiB|GiB)", value.text).groups()
    exact = Decimal(value.num_bytes) / {"KiB": KIB, "GiB": GIB}[unit]
    assert round(exact, len(number.partition(".")[2])) == Decimal(number)
    assert value.assumption is None or (value.assumption.en and value.assumption.zh)
    assert value.assumption or not value.switches


def test_printed_values_are_all_there():
    texts = {value.text for _, value in PRINTED}
    found = {re.search(r"[\d.]+ (KiB|GiB)", text)[0] for text in texts}
    wanted = {"512 KiB", "320 KiB", "128 KiB", "504 KiB", "448 KiB", "200 KiB", "256 KiB", "68.6 KiB", "32 KiB"}
    assert wanted | {"10.78125 GiB", "5.390625 GiB", "9.62 GiB", "83.9 GiB", "8 GiB", "4 GiB", "40 GiB"} <= found


def test_full_attention_per_token():
    """K and V, layers, KV heads, head dimension, 2 bytes: Llama 2 7B 2*32*32*128*2 = 512 KiB; Llama 2 70B and Qwen2 72B
    2*80*8*128*2 = 320 KiB; Llama 3.1 8B 2*32*8*128*2 = 128 KiB, 405B 2*126*8*128*2 = 504 KiB; Gemma 1 7B 2*28*16*256*2
    = 448 KiB; Phi-4 2*40*10*128*2 = 200 KiB; Qwen3 32B 2*64*8*128*2 = 256 KiB."""
    expected = {"llama-2-7b": 512, "llama-2-70b": 320, "qwen2-72b": 320, "qwen2.5-72b": 320, "llama-3.1-8b": 128}
    expected |= {"llama-3.1-405b": 504, "gemma-7b": 448, "phi-4": 200, "qwen3-32b": 256, "llama-3-70b": 320}
    assert {name: slope(name) / KIB for name in expected} == expected


def test_mla_per_token():
    """DeepSeek-V3: 61 layers of a 512 latent and a 64 position part, 61*576*2 = 70,272 B = 68.625 KiB."""
    assert slope("deepseek-v3") == 70_272 == 68.625 * KIB


def test_gqa_and_mqa_of_the_same_shape():
    """32 layers of 32, 8 and 1 KV heads of 128: 512, 128 and 16 KiB a token, 64, 16 and 2 GiB at 131,072 tokens."""
    for heads, per_token, total in ((32, 512, 64), (8, 128, 16), (1, 16, 2)):
        layer = FullAttention(heads, 128, 128)
        assert 32 * layer.growing_bytes_per_token(2) == per_token * KIB
        assert 32 * layer.bytes_at(131_072, 2) == total * GIB


def test_cla_halves():
    """32 layers of 8 KV heads in pairs: 16 keep 2*8*128*2 B = 4 KiB, so 64 KiB a token instead of 128."""
    own = FullAttention(8, 128, 128)
    layers = [own if i % 2 == 0 else SharedFromOwner(i - 1, own) for i in range(32)]
    assert sum(layer.growing_bytes_per_token(2) for layer in layers) == 64 * KIB


def test_window_of_mistral():
    """v0.1: 32 layers of 4 KiB a token, 128 KiB, until 4,096 tokens: 512 MiB, and no byte more."""
    assert size("mistral-7b-v0.1", 1) == 128 * KIB
    assert size("mistral-7b-v0.1", 4096) == size("mistral-7b-v0.1", 32_768) == 512 * 2**20


def test_gemma_4_31b():
    """131,072 tokens. Local: 50 layers * 1,024 * 2 * 16 * 256 * 2 B = 0.78125 GiB. Global: 10 * 131,072 * 2 * 4 * 512
    * 2 B = 10 GiB. Stored once in every layer: half of both. In the global layers alone, whose projection is shared:
    0.78125 + 5 GiB."""
    local, far = 50 * 1024 * 2 * 16 * 256 * 2, 10 * 131_072 * 2 * 4 * 512 * 2
    assert (local / GIB, far / GIB) == (0.78125, 10)
    assert size("gemma-4-31b", 131_072) == local + far == 10.78125 * GIB
    assert size("gemma-4-31b", 131_072, ["k-eq-v-stored-once"]) == (local + far) // 2 == 5.390625 * GIB
    assert (local + far // 2) / GIB == 5.78125


def test_qwen3_5_9b_and_its_state():
    """8 full layers: 2*8*4*256*2 = 32,768 B a token, 4 GiB at 131,072. 24 Gated DeltaNet layers: 32 heads of 128 x 128
    in fp32 = 2 MiB each, 48 MiB; convolutions of 3 earlier inputs of 2*16*128 + 32*128 = 8,192 channels, 1.125 MiB."""
    assert slope("qwen3.5-9b") == 32_768
    assert size("qwen3.5-9b", 131_072) == 4 * GIB + 48 * 2**20 + 24 * 3 * 8192 * 2
    assert 24 * 3 * 8192 * 2 == 1.125 * 2**20


def test_deepseek_v4_pro_at_a_million():
    """N = 1,048,576. A CSA layer: (128 + N/4) entries of 512 and N/4 indexer keys of 128, 320.125 MiB. An HCA layer:
    (128 + N/128) entries, 8.125 MiB. 30 of the first and 31 of the second: 9,855.625 MiB = 9.6246 GiB."""
    n, mib = 1_048_576, 2**20
    csa = (128 + n // 4) * 512 * 2 + n // 4 * 128 * 2
    hca = (128 + n // 128) * 512 * 2
    assert (csa / mib, hca / mib) == (320.125, 8.125)
    assert size("deepseek-v4-pro", n) == 30 * csa + 31 * hca
    assert (30 * csa + 31 * hca) / GIB == pytest.approx(9.6246, abs=5e-5)


def test_v3_2_stack_at_a_million():
    """61 layers of (512 + 64 + 128) elements, 1,408 B: 83.875 GiB at 1,048,576 tokens, 8.71 times V4-Pro."""
    assert size("deepseek-v3.2", 1_048_576) == 61 * 1_048_576 * 1408 == 83.875 * GIB
    assert size("deepseek-v3.2", 1_048_576) / size("deepseek-v4-pro", 1_048_576) == pytest.approx(8.71, abs=0.005)


def test_worked_example():
    """Qwen3 32B at 32,768 tokens: 256 KiB * 32,768 = 8 GiB; four requests 32, eight 64; half of each shared by eight:
    4 + 8*4 = 36 GiB."""
    one = size("qwen3-32b", 32_768)
    half = size("qwen3-32b", 16_384)
    assert [count * one // GIB for count in (1, 4, 8)] == [8, 32, 64]
    assert half + 8 * half == 36 * GIB

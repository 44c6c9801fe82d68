"""Packed formats: bits with their scales, and what KIVI leaves unpacked; counted by hand."""

import pytest

from explorer.errors import InputError
from explorer.specs.formats import FORMATS, Packing, cache_format
from explorer.specs.latent import IndexedLatent, LatentAttention
from explorer.specs.layers import FullAttention, SlidingWindow
from explorer.specs.states import mamba2


def bits(form):
    layer = FullAttention(8, 128, 128)
    return 8 * layer.growing_bytes_per_token(form) / (8 * 256)


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("bf16", 16),
        ("fp32", 32),
        ("fp8", 8),
        ("q8_0", 8.5),  # 32 bytes and a 2-byte scale for 32 elements
        ("q4_0", 4.5),  # 16 bytes and a 2-byte scale for 32 elements
        ("fp8_head", 8.25),  # 128 bytes and a 4-byte scale for 128 elements
        ("kivi-2", 3.0),  # 2 bits and 32 bits of scale and zero point for 32 elements
        ("kivi-4", 5.0),
        ("kivi-2,group_size=64", 2.5),
        ("kivi-2,group_size=128,residual_length=256", 2.25),
    ],
)
def test_bits_of_an_element(form, expected):
    assert bits(form) == expected


def test_packing_of_a_row_that_groups_do_not_divide():
    """80 elements in q4_0: 40 bytes and three scales, the last for 16 elements."""
    assert Packing(4, 32, 2).row_bytes(80) == 40 + 6
    assert Packing(3).row_bytes(3) == 2


def kivi_by_hand(kv_len, heads, dim, nbits, group, residual):
    """Keys in runs of `residual` tokens, per channel; Values older than the last `residual`, per token."""
    packed_keys = kv_len // residual * residual
    keys = heads * dim * (packed_keys * nbits // 8 + packed_keys // group * 4 + (kv_len - packed_keys) * 2)
    packed_values = max(0, kv_len - residual)
    values = heads * (packed_values * (dim * nbits // 8 + dim // group * 4) + (kv_len - packed_values) * dim * 2)
    return keys + values


@pytest.mark.parametrize("kv_len", [1, 31, 32, 127, 128, 129, 255, 256, 257, 4_196])
@pytest.mark.parametrize("setting", [(2, 32, 128), (4, 32, 32), (2, 64, 128)])
def test_kivi_token_by_token(kv_len, setting):
    nbits, group, residual = setting
    form = f"kivi-{nbits},group_size={group},residual_length={residual}"
    assert FullAttention(8, 128, 128).bytes_at(kv_len, form) == kivi_by_hand(kv_len, 8, 128, nbits, group, residual)


def test_kivi_saves_nothing_before_its_first_run_is_full():
    layer = FullAttention(8, 128, 128)
    assert layer.bytes_at(127, "kivi-2") == layer.bytes_at(127, "bf16")
    assert layer.bytes_at(128, "kivi-2") < layer.bytes_at(127, "kivi-2")  # 128 Keys were packed, no Value yet


def test_kivi_at_4196_tokens_is_4_8_times_smaller():
    """3 bits for 4,096 Keys and 4,068 Values, 16 for the other 100 and 128: 16 / 3.353 = 4.77, not 8."""
    layer = FullAttention(8, 128, 128)
    ratio = layer.bytes_at(4_196, "bf16") / layer.bytes_at(4_196, "kivi-2")
    assert round(ratio, 2) == 4.77


def test_kivi_in_a_window():
    """A window of 1,000 with 128 unpacked: 896 Keys in seven runs and 104 unpacked, 872 Values and 128 unpacked."""
    layer = SlidingWindow(8, 128, 128, 1_000)
    assert layer.bytes_at(10**6, "kivi-2") == kivi_by_hand(1_000, 8, 128, 2, 32, 128)


def test_kivi_in_a_window_that_is_shorter_than_what_stays_unpacked():
    layer = SlidingWindow(8, 128, 128, 64)
    assert layer.bytes_at(10**6, "kivi-2") == layer.bytes_at(10**6, "bf16") == 64 * 4_096


def test_fp8_ds_mla():
    """512 fp8 + 4 fp32 scales + 64 bf16 = 656 B; indexer keys 128 fp8 + 1 fp32 scale = 132 B."""
    assert LatentAttention(512, 64).bytes_at(1, "fp8_ds_mla") == 656
    assert IndexedLatent(512, 64, 128, 2_048).bytes_at(1, "fp8_ds_mla") == 788


def test_what_stays_unpacked_has_the_models_format():
    kivi = cache_format("kivi-2", "fp32")
    assert FullAttention(1, 128, 128).bytes_at(10, kivi) == 10 * 256 * 4
    assert cache_format("bf16", "fp32").name == "bf16"


@pytest.mark.parametrize(
    "bad",
    ["int3", "kivi-3", "kivi-2,group_size=x", "kivi-2,group_size=0", "", "q4", "kivi-2,group_size=48", "x" * 9999],
)
def test_formats_that_are_none(bad):
    with pytest.raises(InputError, match=r"expected|multiple"):
        cache_format(bad)


def test_a_packed_cache_needs_a_real_dtype_beside_it():
    with pytest.raises(InputError, match="the model's own format"):
        cache_format("q4_0", "fp8")


def test_every_format_is_named_and_packed_ones_say_what_they_count():
    for name, form in FORMATS.items():
        assert form.name == name
        assert form.note or form.packing.group_size is None


@pytest.mark.parametrize(
    ("form", "layer", "kept"),
    [
        ("kivi-2", LatentAttention(512, 64), "latents"),
        ("kivi-2", FullAttention(1, 512, 0), "Key and Value in one"),
        ("fp8_head", IndexedLatent(512, 64, 128, 2_048), "latents"),
        ("fp8_ds_mla", FullAttention(8, 128, 128), "Keys"),
    ],
)
def test_a_layout_is_refused_where_it_is_not_defined(form, layer, kept):
    with pytest.raises(InputError, match=f"{form}.*this model keeps .*{kept}"):
        layer.bytes_at(1, form)


def test_states_are_beside_any_layout():
    """A hybrid's states are not packed, so KIVI on its attention layers is well defined."""
    state = mamba2(80, 64, 128, 1, 4, dtype="fp32")
    assert state.bytes_at(1, "kivi-2") == state.bytes_at(1, "fp8_ds_mla") == state.bytes_at(1, "bf16")

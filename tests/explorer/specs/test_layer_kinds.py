"""Each layer kind by hand, in bytes: what it keeps, what one decoded token reads, its slope and its constant."""

import pytest

from explorer.specs.latent import CompressedAttention, IndexedLatent, LatentAttention
from explorer.specs.layers import (
    ChunkedAttention,
    Combined,
    CrossAttention,
    FullAttention,
    NoCache,
    SharedFromOwner,
    SlidingWindow,
)
from explorer.specs.states import delta_net, mamba1, mamba2
from explorer.specs.tensors import Tensor

KIB, MIB = 2**10, 2**20


def line(layer, form=2):
    return layer.growing_bytes_per_token(form), layer.constant_bytes(form)


def test_full():
    """8 heads x (128 + 128) elements x 2 bytes = 4,096 B a token; MiMo's 4 x (192 + 128) x 2 = 2,560."""
    layer = FullAttention(8, 128, 128)
    assert line(layer) == (4_096, 0)
    assert layer.bytes_at(1_000, 2) == layer.read_bytes_at(1_000, 2) == 4_096_000
    assert FullAttention(4, 192, 128).bytes_at(1, 2) == 2_560
    assert FullAttention(1, 512, 0).bytes_at(10, 2) == 10 * 1_024  # one vector is Key and Value


def test_sliding_window_counts_the_current_token():
    """Gemma 4 31B: 16 heads x 512 x 2 B = 16 KiB a token, for 1,024 tokens: grows up to 16 MiB and stays there."""
    layer = SlidingWindow(16, 256, 256, 1_024)
    assert line(layer) == (0, 16 * MIB)
    assert [layer.bytes_at(n, 2) for n in (1, 1_023, 1_024, 1_025, 10**6)] == [
        16 * KIB,
        16 * KIB * 1_023,
        16 * MIB,
        16 * MIB,
        16 * MIB,
    ]
    assert layer.read_bytes_at(5_000, 2) == 16 * MIB


def test_chunked_attention():
    """Llama 4, chunks of 8,192: token 8,192 (the last of its chunk) reads the whole chunk, token 8,193 itself alone."""
    layer = ChunkedAttention(8, 128, 128, 8_192)
    assert line(layer) == (0, 8_192 * 4_096)
    assert [layer.bytes_at(n, 2) // 4_096 for n in (1, 8_192, 8_193, 20_000)] == [1, 8_192, 8_192, 8_192]
    assert [layer.read_bytes_at(n, 2) // 4_096 for n in (1, 8_191, 8_192, 8_193, 20_000)] == [
        1,
        8_191,
        8_192,
        1,
        20_000 - 2 * 8_192,
    ]


def test_latent():
    """DeepSeek-V3: (512 + 64) x 2 B = 1,152 B, one row for all heads, no factor of two."""
    layer = LatentAttention(512, 64)
    assert line(layer) == (1_152, 0)
    assert layer.bytes_at(65_536, 2) == 72 * MIB
    assert layer.read_bytes_at(100, 2) == 115_200


def test_latent_with_indexer():
    """V3.2: 1,152 + 128 x 2 = 1,408 B a token. A step reads every indexer key, but 2,048 latents at most."""
    layer = IndexedLatent(512, 64, 128, 2_048)
    assert line(layer) == (1_408, 0)
    assert layer.read_bytes_at(1_000, 2) == 1_408_000
    assert layer.read_bytes_at(10_000, 2) == 10_000 * 256 + 2_048 * 1_152
    assert line(IndexedLatent(512, 64, 0, 2_048)) == (1_152, 0)


def test_csa():
    """V4-Pro at 1,048,576 tokens: (128 + N/4) x 1,024 B of entries and N/4 x 256 B of indexer keys = 320.125 MiB."""
    layer = CompressedAttention(512, 128, 4, index_dim=128, index_topk=1_024, overlap=True)
    assert line(layer) == (1_280 // 4, 128 * KIB)
    assert layer.bytes_at(2**20, 2) == 320 * MIB + 128 * KIB
    assert layer.bytes_at(3, 2) == 3 * 1_024  # no complete run of four yet
    assert layer.bytes_at(4, 2) == 4 * 1_024 + 1_024 + 256
    assert layer.read_bytes_at(2**20, 2) == (128 + 1_024) * 1_024 + 2**18 * 256


def test_hca():
    """(128 + N/128) x 1,024 B = 8.125 MiB at 1,048,576 tokens; all of it is read."""
    layer = CompressedAttention(512, 128, 128)
    assert line(layer) == (8, 128 * KIB)
    assert layer.bytes_at(2**20, 2) == layer.read_bytes_at(2**20, 2) == 8 * MIB + 128 * KIB
    assert layer.bytes_at(127, 2) == 127 * KIB and layer.bytes_at(128, 2) == 128 * KIB + 1_024


def test_the_compressors_state_if_counted():
    """HCA: 512 values and 512 gates in fp32 = 4 KiB for each token without an entry. CSA: twice as wide, an indexer
    beside it, and the last complete four tokens carried along: values and gates of 512 + 128."""
    hca = CompressedAttention(512, 128, 128, count_state=True)
    plain = CompressedAttention(512, 128, 128)
    assert [hca.bytes_at(n, 2) - plain.bytes_at(n, 2) for n in (1, 127, 128, 300)] == [
        4 * KIB,
        127 * 4 * KIB,
        0,
        44 * 4 * KIB,
    ]
    csa = CompressedAttention(512, 128, 4, index_dim=128, overlap=True, count_state=True)
    bare = CompressedAttention(512, 128, 4, index_dim=128, overlap=True)
    carried = 4 * (512 + 128) * 2 * 4
    assert [csa.bytes_at(n, 2) - bare.bytes_at(n, 2) for n in (3, 4, 6)] == [
        3 * 2 * carried // 4,
        carried,
        carried + 2 * 2 * carried // 4,
    ]


def test_shared_keeps_nothing_and_reads_its_owner():
    owner = SlidingWindow(2, 256, 256, 512)
    layer = SharedFromOwner(13, owner)
    assert (layer.bytes_at(10**6, 2), line(layer)) == (0, (0, 0))
    assert layer.read_bytes_at(10**6, 2) == owner.bytes_at(10**6, 2) == 512 * 2_048


def test_none():
    assert (NoCache().bytes_at(9, 2), NoCache().read_bytes_at(9, 2), line(NoCache())) == (0, 0, (0, 0))


def test_cross_attention_is_fixed_by_the_encoder():
    """Whisper large: 20 heads x 128 x 2 B = 5,120 B for each of 1,500 encoder frames, whatever the decoder has said."""
    layer = CrossAttention(20, 64, 64, 1_500)
    assert line(layer) == (0, 1_500 * 5_120)
    assert layer.bytes_at(1, 2) == layer.bytes_at(448, 2) == layer.read_bytes_at(1, 2) == 7_680_000
    both = Combined((FullAttention(20, 64, 64), layer))
    assert both.bytes_at(10, 2) == both.read_bytes_at(10, 2) == 51_200 + 7_680_000
    assert line(both) == (5_120, 7_680_000)


def test_gated_delta_net():
    """Qwen3.5-9B: 32 x 128 x 128 fp32 = 2 MiB; conv: 16 x 2 x 128 + 32 x 128 = 8,192 channels x 3 earlier inputs."""
    layer = delta_net("Gated DeltaNet", (16, 128), (32, 128), 4)
    assert line(layer) == (0, 2 * MIB + 8_192 * 3 * 2)
    assert layer.bytes_at(0, 2) == layer.bytes_at(10**6, 2) == layer.read_bytes_at(1, 2)


def test_a_state_keeps_its_own_format():
    """fp32 beside any cache; the convolution's inputs are the model's: bf16 beside an 8-bit cache, fp32 in fp32."""
    layer = delta_net("Gated DeltaNet", (16, 128), (32, 128), 4)
    conv = 8_192 * 3
    assert layer.bytes_at(1, "fp8") == layer.bytes_at(1, "q4_0") == 2 * MIB + conv * 2
    assert layer.bytes_at(1, "fp32") == 2 * MIB + conv * 4
    assert delta_net("x", (16, 128), (32, 128), 4, dtype=None).bytes_at(1, 2) == MIB + conv * 2


def test_mamba():
    """Mamba 2.8B: 5,120 channels x (16 fp32 numbers + 3 inputs of 2 bytes)."""
    assert mamba1(5_120, 16, 4, dtype="fp32").bytes_at(7, 2) == 5_120 * (64 + 6)


def test_mamba2():
    """80 heads x 64 x 128 fp32 = 2.5 MiB; conv: 5,120 inputs and 2 x 128 for B and C, 3 of each, 2 bytes."""
    assert mamba2(80, 64, 128, 1, 4, dtype="fp32").bytes_at(7, 2) == 80 * 64 * 128 * 4 + (5_120 + 256) * 3 * 2


@pytest.mark.parametrize(
    ("layer", "tp", "share"),
    [
        (FullAttention(8, 128, 128), 4, 4),  # 2 of 8 heads
        (FullAttention(8, 128, 128), 32, 8),  # one head is the least: from 8 ranks on the share stays
        (FullAttention(1, 128, 128), 8, 1),  # MQA: every rank has the one head
        (LatentAttention(512, 64), 8, 1),  # every head needs the whole latent
        (IndexedLatent(512, 64, 128, 2_048), 16, 1),
        (CompressedAttention(512, 128, 4, index_dim=128), 8, 1),
    ],
)
def test_what_a_rank_keeps(layer, tp, share):
    assert layer.bytes_at(1_000, 2, tp) * share == layer.bytes_at(1_000, 2)
    assert layer.read_bytes_at(1_000, 2, tp) * share == layer.read_bytes_at(1_000, 2)


def test_a_replicated_tensor_is_whole_on_every_rank():
    """Four heads on two ranks: two each, unless every rank keeps all."""
    assert Tensor("key", 4, 128).heads_on_rank(2) == 2
    assert Tensor("key", 4, 128, replicated=True).heads_on_rank(2) == 4


def test_states_are_shared_by_heads():
    """Mamba-2 on two ranks: half the heads each, but the one group's B and C on both."""
    whole, half = mamba2(80, 64, 128, 1, 4, dtype="fp32"), 40 * 64 * 128 * 4 + (2_560 + 256) * 3 * 2
    assert whole.bytes_at(1, 2, tp=2) == half

"""The long tail of families, each by hand: bytes a token in bf16 = 2 (K and V) * layers * KV heads * head_dim * 2."""

import pytest

from explorer.errors import InputError
from explorer.specs.from_config import from_config

KIB, MIB = 2**10, 2**20
GPT = {"n_layer": 12, "n_embd": 768, "n_head": 12, "n_positions": 1024}
WIDE = {"hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32}
GROUPED = WIDE | {"num_key_value_heads": 8}

# model type, config, bytes a token, in words
SLOPES = [
    ("gpt2", GPT, 2 * 12 * 12 * 64 * 2, "12 layers of 12 heads of 768/12 = 64"),
    ("gptj", {"n_layer": 28, "n_embd": 4096, "n_head": 16}, 2 * 28 * 16 * 256 * 2, "28 of 16 heads of 256"),
    ("codegen", {"n_layer": 32, "n_embd": 2560, "n_head": 32}, 2 * 32 * 32 * 80 * 2, "32 of 32 heads of 80"),
    (
        "gpt_neox",
        WIDE | {"hidden_size": 6144, "num_hidden_layers": 44, "num_attention_heads": 64},
        2 * 44 * 6144 * 2,
        "",
    ),
    ("opt", WIDE | {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12}, 36_864, "as GPT-2"),
    ("biogpt", WIDE, 2 * 32 * 4096 * 2, "heads times their size is the width"),
    ("persimmon", WIDE | {"num_attention_heads": 64}, 2 * 32 * 4096 * 2, "64 heads of 64"),
    ("bloom", {"n_layer": 70, "n_embed": 14_336, "num_attention_heads": 112}, 2 * 70 * 14_336 * 2, "176B: 4,014,080 B"),
    ("mpt", {"n_layers": 32, "d_model": 4096, "n_heads": 32, "max_seq_len": 2048}, 524_288, "7B: 512 KiB"),
    ("xglm", {"num_layers": 24, "d_model": 1024, "attention_heads": 16}, 2 * 24 * 1024 * 2, "564M"),
    (
        "falcon",
        WIDE | {"hidden_size": 4544, "num_attention_heads": 71},
        2 * 32 * 1 * 64 * 2,
        "7B: one head of 64, 8 KiB",
    ),
    ("falcon", WIDE | {"multi_query": False}, 2 * 32 * 4096 * 2, "1B of RefinedWeb: a head for every query"),
    ("gpt_bigcode", GPT, 2 * 12 * 1 * 64 * 2, "one head for all queries"),
    ("gpt_bigcode", GPT | {"multi_query": False}, 2 * 12 * 12 * 64 * 2, "as GPT-2"),
    ("starcoder2", GROUPED | {"sliding_window": None}, 128 * KIB, "no window"),
    ("ministral3", GROUPED | {"head_dim": 128, "num_hidden_layers": 34}, 2 * 34 * 8 * 128 * 2, "8B"),
    ("dbrx", {"n_layers": 40, "d_model": 6144, "n_heads": 48, "attn_config": {"kv_n_heads": 8}}, 160 * KIB, "132B"),
    ("jetmoe", WIDE | {"num_hidden_layers": 24, "num_key_value_heads": 16, "kv_channels": 128}, 192 * KIB, "8B"),
    (
        "chatglm",
        WIDE | {"num_layers": 28, "kv_channels": 128, "multi_query_attention": True, "multi_query_group_num": 2},
        28 * KIB,
        "6B of the third generation: 2 groups; num_layers yields to num_hidden_layers, which is not in its files",
    ),
    ("baichuan", WIDE, 512 * KIB, "7B: MHA"),
    *(
        (name, GROUPED, 128 * KIB, "like Llama")
        for name in ("olmo", "olmo2", "olmoe", "granite", "granitemoe", "cohere")
    ),
    *((name, GROUPED, 128 * KIB, "like Llama") for name in ("apertus", "arcee", "exaone", "nemotron", "stablelm")),
    ("olmo", WIDE, 512 * KIB, "no KV heads given: one a query head"),
    (
        "ernie4_5",
        GROUPED | {"hidden_size": 1024, "num_attention_heads": 16},
        128 * KIB,
        "128 a head where none is given",
    ),
    ("seed_oss", GROUPED | {"num_attention_heads": 80, "hidden_size": 5120}, 128 * KIB, "128, not 5,120/80 = 64"),
    ("internlm3", GROUPED | {"num_hidden_layers": 48, "num_key_value_heads": 2}, 2 * 48 * 2 * 128 * 2, "8B"),
    (
        "helium",
        WIDE | {"num_key_value_heads": 20, "num_attention_heads": 20, "hidden_size": 2560},
        320 * KIB,
        "128 a head",
    ),
    ("exaone4", GROUPED | {"sliding_window": None}, 128 * KIB, "1.2B: no window at all"),
]


def slope(spec):
    return sum(layer.growing_bytes_per_token("bf16") for layer in spec.layers)


def size(spec, tokens):
    return sum(layer.bytes_at(tokens, "bf16") for layer in spec.layers)


@pytest.mark.parametrize(
    ("model_type", "fields", "expected", "words"), SLOPES, ids=lambda v: v if isinstance(v, str) else ""
)
def test_every_token_costs_the_same(model_type, fields, expected, words):
    if model_type == "chatglm":
        fields = {name: value for name, value in fields.items() if name != "num_hidden_layers"}
    spec = from_config({"model_type": model_type, **fields})
    assert slope(spec) == expected, words
    assert size(spec, 1000) == 1000 * expected


def test_gpt_neo_has_local_layers():
    """12 global and 12 local layers of 16 heads of 128: 8,192 B a layer and token; a local one ends at 256 tokens."""
    config = {"model_type": "gpt_neo", "num_layers": 24, "hidden_size": 2048, "num_heads": 16, "window_size": 256}
    spec = from_config(config | {"attention_types": [[["global", "local"], 12]]})
    assert (slope(spec), size(spec, 1000)) == (12 * 8192, 12 * 8192 * (1000 + 256))
    assert size(from_config(config), 1000) == size(spec, 1000)
    for wrong in ([[["global", "local"], 11]], [["global", 24]], [[["global", "far"], 12]], "global", [[[], 10**9]]):
        with pytest.raises(InputError, match="attention_types"):
            from_config(config | {"attention_types": wrong})


def test_falcon_40b_as_engines_and_as_transformers_store_it():
    """60 layers of 8 heads of 64: 122,880 B; transformers repeats them for all 128 query heads, 16 times as much."""
    config = {"model_type": "falcon", "hidden_size": 8192, "num_hidden_layers": 60, "num_attention_heads": 128}
    config |= {"new_decoder_architecture": True, "num_kv_heads": 8}
    assert slope(from_config(config)) == 2 * 60 * 8 * 64 * 2 == 122_880
    assert slope(from_config(config, switches=["kv-repeated-for-query-heads"])) == 16 * 122_880


def test_every_fourth_layer_full():
    """8 of 32 layers of 8 heads of 128, 4,096 B: 32 KiB a token; 24 windows of 4,096 tokens are 384 MiB."""
    for name in ("cohere2", "olmo3", "exaone4"):
        spec = from_config({"model_type": name, **GROUPED, "sliding_window": 4096})
        assert [i for i, layer in enumerate(spec.layers) if layer.kind == "full_attention"] == list(range(3, 32, 4))
        assert (slope(spec), size(spec, 10_000)) == (32 * KIB, 10_000 * 32 * KIB + 384 * MIB)
    with pytest.raises(InputError, match="without layer_types"):
        from_config({"model_type": "exaone4", **GROUPED, "sliding_window": 4096, "sliding_window_pattern": "LLLG"})


def test_encoder_decoders():
    """T5 small: 6 decoder layers of 8 heads of 64, 2,048 B a token and layer: 12 KiB, and as much for each of 512
    encoder tokens, 6 MiB. Whisper tiny: 4 layers of 6 heads of 64, 6 KiB; always 1,500 frames."""
    t5 = from_config({"model_type": "t5", "d_model": 512, "d_kv": 64, "num_heads": 8, "num_layers": 6})
    assert (slope(t5), size(t5, 10)) == (12 * KIB, 10 * 12 * KIB + 6 * MIB)
    short = from_config({"model_type": "t5", "d_model": 512, "num_heads": 8, "num_layers": 6, "encoder_tokens": 20})
    assert size(short, 10) == 30 * 12 * KIB
    assert any("512 tokens long" in line.en for line in t5.assumptions)
    deeper = from_config({"model_type": "t5", "d_model": 512, "num_heads": 8, "num_layers": 6, "num_decoder_layers": 9})
    assert slope(deeper) == 18 * KIB
    tiny = {"d_model": 384, "decoder_layers": 4, "decoder_attention_heads": 6, "encoder_layers": 4}
    whisper = from_config({"model_type": "whisper", **tiny, "max_source_positions": 1500, "max_target_positions": 448})
    assert (slope(whisper), size(whisper, 448), whisper.max_positions) == (6 * KIB, (448 + 1500) * 6 * KIB, 448)
    bart = from_config({"model_type": "bart", **tiny, "max_position_embeddings": 1024})
    assert size(bart, 1) == 1025 * 6 * KIB
    with pytest.raises(InputError, match="not a multiple of decoder_attention_heads"):
        from_config({"model_type": "bart", **tiny, "decoder_attention_heads": 7})


def test_variable_heads():
    """OpenELM 3+4+5 KV heads of 64: 256 B each. DeciLM 7B: 4+4+2 heads of 128: 512 B each. Nemotron-NAS: 64/8 = 8,
    64/16 = 4, none, none. MiMo: 9 full layers of 4 heads, 39 windows of 129 tokens of 8; a head has 192 + 128."""
    elm = {"model_type": "openelm", "num_transformer_layers": 3, "head_dim": 64, "model_dim": 1280}
    spec = from_config(elm | {"num_kv_heads": [3, 4, 5], "num_query_heads": [12, 16, 20], "max_context_length": 2048})
    assert (slope(spec), spec.max_positions, spec.num_heads) == (12 * 256, 2048, 20)
    with pytest.raises(InputError, match="not a multiple of num_kv_heads=5"):
        from_config(elm | {"num_kv_heads": [3, 4, 5], "num_query_heads": [12, 16, 21]})
    deci = {"model_type": "deci", "hidden_size": 4096, "num_hidden_layers": 3, "num_attention_heads": 32}
    assert slope(from_config(deci | {"num_key_value_heads_per_layer": [4, 4, 2]})) == 10 * 512
    blocks = [{"n_heads_in_group": 8}, {"n_heads_in_group": 16}, {"no_op": True}, {"replace_with_linear": True}]
    nas = {"model_type": "nemotron-nas", "hidden_size": 8192, "num_hidden_layers": 4, "num_attention_heads": 64}
    assert slope(from_config(nas | {"block_configs": [{"attention": block} for block in blocks]})) == 12 * 512
    for wrong in ([{"attention": {"n_heads_in_group": 8, "window_length": 4}}] * 4, [7] * 4, None, [{}] * 4):
        with pytest.raises(InputError, match="block_configs"):
            from_config(nas | {"block_configs": wrong})
    mimo = {"hidden_size": 4096, "num_hidden_layers": 48, "num_attention_heads": 64, "num_key_value_heads": 4}
    spec = from_config({"model_type": "mimo_v2_flash", **mimo, "sliding_window_size": 128})
    assert (slope(spec), size(spec, 1000)) == (9 * 4 * 640, 9 * 4 * 640 * 1000 + 39 * 8 * 640 * 129)


def test_shared_and_looped_layers():
    """Hunyuan-Large with CLA 2: 32 of 64 layers own 4,096 B a token, the next one reads them. Ouro: 24 layers 4 times,
    96 of 16 heads of 128. Inkling 2: 24 layers, 12 of them 3 times, 48; of these every sixth is full."""
    hunyuan = {"model_type": "hunyuan", **GROUPED, "num_hidden_layers": 64, "use_cla": True, "cla_share_factor": 2}
    spec = from_config(hunyuan)
    assert slope(spec) == 32 * 4096
    assert sum(layer.read_bytes_at(1, "bf16") for layer in spec.layers) == 64 * 4096
    assert [layer.owner for layer in spec.layers if layer.kind == "shared"] == list(range(0, 64, 2))
    assert slope(from_config(hunyuan | {"use_cla": False})) == 64 * 4096
    ouro = {"hidden_size": 2048, "num_hidden_layers": 24, "num_attention_heads": 16, "num_key_value_heads": 16}
    spec = from_config({"model_type": "ouro", **ouro, "total_ut_steps": 4})
    assert (len(spec.layers), slope(spec)) == (96, 96 * 8192)
    inkling = {
        "model_type": "inkling2_loop_text",
        "hidden_size": 2304,
        "num_hidden_layers": 24,
        "num_attention_heads": 24,
    }
    spec = from_config(inkling)
    window = 40 * 1024 * 4096
    convolutions = 48 * 3 * (8 * 256 + 2 * 2304) * 2
    assert (len(spec.layers), slope(spec), size(spec, 5000)) == (48, 8 * 4096, 8 * 4096 * 5000 + window + convolutions)
    with pytest.raises(InputError, match="does not lie inside"):
        from_config(inkling | {"loop_layer_index_end": 30})
    with pytest.raises(InputError, match="layers times passes"):
        from_config({"model_type": "ouro", **ouro, "total_ut_steps": 1000})

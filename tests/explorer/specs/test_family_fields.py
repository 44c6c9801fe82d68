"""The same layout written in other ways: absent, null, nested, listed or in a pattern; and layouts that do not hold."""

import pytest

from explorer.errors import InputError
from explorer.specs.from_config import UnknownFamily, from_config, language_model
from explorer.specs.layers import FullAttention, SlidingWindow
from explorer.specs.readers import reader, readers
from tests.explorer.specs.family_configs import CONFIGS

LLAMA = CONFIGS["llama-3.1-8b"]


def kinds(config):
    return [layer.kind for layer in from_config(config).layers]


def without(config, *fields):
    return {name: value for name, value in config.items() if name not in fields}


def test_gemma_3_files_leave_out_heads_and_dimensions():
    """gemma-3-4b's text_config: the class's own 8 query heads, 4 KV heads of 256 and every sixth layer full."""
    text = {"model_type": "gemma3_text", "hidden_size": 2560, "num_hidden_layers": 34, "sliding_window": 1024}
    spec = from_config({"model_type": "gemma3", "text_config": text, "vision_config": {}})
    assert spec.layers[5] == FullAttention(4, 256, 256) and spec.layers[0] == SlidingWindow(4, 256, 256, 1024)
    assert [i for i, layer in enumerate(spec.layers) if layer.kind == "full_attention"] == [5, 11, 17, 23, 29]
    assert sum("own default" in line.en for line in spec.assumptions) == 4  # heads, KV heads, head_dim, pattern


def test_gemma_3_pattern_and_layer_types():
    base = CONFIGS["gemma-3-27b"] | {"num_hidden_layers": 6}
    assert kinds(base | {"sliding_window_pattern": 3}) == (["sliding_window"] * 2 + ["full_attention"]) * 2
    listed = ["full_attention"] + ["sliding_attention"] * 5
    assert kinds(base | {"layer_types": listed})[0] == "full_attention"
    assert kinds(base | {"sliding_window": None}) == ["full_attention"] * 6


def test_windows_of_models_that_look_both_ways():
    """A bidirectional window of 1,024 reaches 512 back: 513 tokens, the current one included."""
    both = from_config(CONFIGS["gemma-3-27b"] | {"use_bidirectional_attention": True}).layers[0]
    assert isinstance(both, SlidingWindow) and both.window == 513
    all_ways = from_config(CONFIGS["gemma-4-31b"] | {"use_bidirectional_attention": "all"}).layers[0]
    assert isinstance(all_ways, SlidingWindow) and all_ways.window == 513
    vision = from_config(CONFIGS["gemma-4-31b"] | {"use_bidirectional_attention": "vision"}).layers[0]
    assert isinstance(vision, SlidingWindow) and vision.window == 1024


def test_gemma_4_last_layer_is_always_full():
    config = CONFIGS["gemma-4-31b"] | {"num_hidden_layers": 2, "layer_types": ["sliding_attention"] * 2}
    assert kinds(config) == ["sliding_window", "full_attention"]


def test_gemma_4_as_transformers_saves_it():
    """`per_layer_config` in place of `global_head_dim` and `num_global_key_value_heads`."""
    own = {f"{i:02}": {"head_dim": 512, "num_key_value_heads": 4} for i in range(5, 60, 6)}
    saved = without(CONFIGS["gemma-4-31b"], "num_global_key_value_heads") | {"per_layer_config": own}
    assert from_config(saved).layers == from_config(CONFIGS["gemma-4-31b"]).layers


@pytest.mark.parametrize("bad", [{"x": {}}, {"60": {}}, {"-1": {}}, {"0": 5}, {"²": {}}, [1], {"9" * 5_000: {}}])
def test_layer_overrides_that_name_no_layer(bad):
    with pytest.raises(InputError, match="per_layer_config"):
        from_config(CONFIGS["gemma-4-31b"] | {"per_layer_config": bad})


def test_layer_overrides_that_no_reader_looks_at():
    """A Llama whose seventh layer has fewer KV heads is refused; one whose MLP alone differs is read."""
    with pytest.raises(InputError, match="their own 'num_key_value_heads'"):
        from_config(LLAMA | {"per_layer_config": {"07": {"num_key_value_heads": 4}}})
    assert (
        from_config(LLAMA | {"per_layer_config": {"07": {"intermediate_size": 4}}}).layers == from_config(LLAMA).layers
    )


def test_gemma_4_global_kv_heads_count_only_with_k_eq_v():
    """The configuration class applies num_global_key_value_heads under attention_k_eq_v alone."""
    config = CONFIGS["gemma-4-31b"] | {"attention_k_eq_v": False}
    assert from_config(config).layers[5] == FullAttention(16, 512, 512)
    assert from_config(config).switches == ()


def test_shared_layers_without_an_owner():
    config = CONFIGS["gemma-3n-e4b"] | {"num_kv_shared_layers": 34}
    with pytest.raises(InputError, match="no layer of type full_attention is left to own a cache"):
        from_config(config)
    with pytest.raises(InputError, match="no layer of type"):
        from_config(config | {"num_kv_shared_layers": 35})


def test_llama_4_spellings():
    base = CONFIGS["llama-4-scout"] | {"num_hidden_layers": 4}
    expected = ["chunked_attention"] * 3 + ["full_attention"]
    assert kinds(base) == kinds(base | {"no_rope_layers": [1, 1, 1, 0]}) == expected
    assert kinds(without(base, "no_rope_layers") | {"no_rope_layer_interval": 2})[1] == "full_attention"
    assert kinds(base | {"layer_types": ["full_attention"] * 4}) == ["full_attention"] * 4
    assert kinds(base | {"attention_chunk_size": None}) == ["full_attention"] * 4


def test_deepseek_v4_layout_is_never_assumed():
    base = CONFIGS["deepseek-v4-flash"]
    types = ["sliding_attention"] * 2 + ["compressed_sparse_attention", "heavily_compressed_attention"] * 20
    types.append("compressed_sparse_attention")
    assert from_config(without(base, "compress_ratios") | {"layer_types": types}).layers == from_config(base).layers
    with pytest.raises(InputError, match="no compress_ratios"):
        from_config(without(base, "compress_ratios"))
    with pytest.raises(InputError, match="expected 0, 4 or 128"):
        from_config(base | {"compress_ratios": [7] * 44})
    with pytest.raises(InputError, match="expected a list"):
        from_config(base | {"compress_ratios": [4] * 42})


def test_kimi_linear_lists_must_name_every_layer_once():
    base = CONFIGS["kimi-linear-48b"]
    given = base["linear_attn_config"]
    for change in (
        {"full_attn_layers": [4, 8]},
        {"full_attn_layers": [*given["full_attn_layers"], 1]},
        {"kda_layers": [0, *given["kda_layers"]]},
        {"kda_layers": "1,2,3"},
        {"kda_layers": [None] * 20},
        {"kda_layers": [[1]] * 20},
    ):
        with pytest.raises(InputError, match="each of the layers 1 to 27 once"):
            from_config(base | {"linear_attn_config": given | change})
    flat = without(base, "linear_attn_config") | {"linear_num_heads": 32, "linear_head_dim": 128}
    flat |= {"linear_conv_kernel_dim": 4, "layer_types": [layer_type(i, given) for i in range(1, 28)]}
    assert from_config(flat).layers == from_config(base).layers


def layer_type(index, given):
    return "full_attention" if index in given["full_attn_layers"] else "linear_attention"


def test_kimi_k2_5_nests_a_deepseek_v3():
    text = CONFIGS["deepseek-v3"]
    for inner in ("deepseek_v3", "kimi_k2"):
        config = {"model_type": "kimi_k25", "text_config": text | {"model_type": inner}}
        assert from_config(config).layers == from_config(text).layers
    unnamed = {"model_type": "kimi_k25", "text_config": without(text, "model_type")}
    assert from_config(unnamed).model_type == "kimi_k25"


def test_qwen_omni_nests_twice():
    config = {"model_type": "qwen3_omni_moe", "thinker_config": {"text_config": CONFIGS["qwen3-235b"], "a": 1}}
    assert from_config(config).layers == from_config(CONFIGS["qwen3-235b"]).layers
    assert "thinker_config.text_config" in from_config(config).assumptions[0].en


def test_qwen3_next_interval():
    config = CONFIGS["qwen3-next-80b"] | {"num_hidden_layers": 4, "full_attention_interval": 2}
    assert kinds(config) == ["recurrent_state", "full_attention"] * 2


def test_a_file_may_name_the_format_of_its_states():
    base = CONFIGS["qwen3.5-9b"]
    for named, num_bytes in (("float32", 4), ("bfloat16", 2)):
        spec = from_config(base | {"mamba_ssm_dtype": named})
        state = next(layer for layer in spec.layers if layer.kind == "recurrent_state")
        assert state.bytes_at(1, "bf16") == 32 * 128 * 128 * num_bytes + 8_192 * 3 * 2
        assert spec.switches == () and any("mamba_ssm_dtype" in line.en for line in spec.assumptions)
    assert from_config(base | {"mamba_ssm_dtype": [1]}).layers == from_config(base).layers


def test_qwen2_windows_by_layer():
    base = CONFIGS["qwen2-72b"] | {"use_sliding_window": True, "sliding_window": 100}
    assert kinds(base) == ["full_attention"] * 28 + ["sliding_window"] * 52
    assert kinds(base | {"max_window_layers": 80}) == ["full_attention"] * 80
    listed = ["sliding_attention"] + ["full_attention"] * 79
    assert kinds(base | {"layer_types": listed})[:2] == ["sliding_window", "full_attention"]
    assert kinds(base | {"layer_types": listed, "use_sliding_window": False}) == ["full_attention"] * 80
    moe = base | {"model_type": "qwen2_moe", "max_window_layers": 3}
    assert kinds(moe)[:6] == ["sliding_window", "full_attention", "sliding_window"] + ["full_attention"] * 3
    assert set(kinds(CONFIGS["qwen3-235b"] | {"use_sliding_window": True})) == {"sliding_window"}


@pytest.mark.parametrize("name", ["qwen3-235b", "glm-4.5", "mixtral-8x7b", "minimax-text-01"])
def test_families_whose_head_dim_follows_from_the_width(name):
    """Absent, `head_dim` is hidden_size / heads in these classes, though qwen3's own default is 128."""
    config = without(CONFIGS[name], "head_dim") | {"hidden_size": 96 * 64, "num_attention_heads": 96}
    config["num_key_value_heads"] = 4
    full = next(layer for layer in from_config(config).layers if layer.kind == "full_attention")
    assert full == FullAttention(4, 64, 64)


def test_qwen2_vl_counts_windows_from_layer_80():
    """Its class's max_window_layers is 80 where qwen2's is 28."""
    config = CONFIGS["qwen2-72b"] | {"use_sliding_window": True, "sliding_window": 64, "num_hidden_layers": 81}
    assert kinds(config | {"model_type": "qwen2_vl"}) == ["full_attention"] * 80 + ["sliding_window"]


def test_mistral_window_that_is_switched_off():
    config = CONFIGS["mistral-7b-v0.1"] | {"use_sliding_window": False}
    assert set(kinds(config)) == {"full_attention"}
    assert set(kinds(CONFIGS["mixtral-8x7b"] | {"sliding_window": 4096})) == {"sliding_window"}


def test_deepseek_v4_rates_and_drafts():
    """Another rate is followed: an entry for every 8 tokens. Draft layers without a ratio of their own are windows."""
    rates = {"compressed_sparse_attention": 8, "heavily_compressed_attention": 64}
    base = CONFIGS["deepseek-v4-flash"]
    layers = from_config(base | {"compress_rates": rates}).layers
    assert [layer.ratio for layer in layers[2:4]] == [8, 64]
    short = base | {"compress_ratios": base["compress_ratios"][:43], "num_nextn_predict_layers": 2}
    assert [layer.kind for layer in from_config(short).mtp_layers] == ["sliding_window"] * 2


def test_minimax_m2_drafts_only_with_use_mtp():
    base = CONFIGS["minimax-m2"] | {"num_mtp_modules": 3}
    assert len(from_config(base).mtp_layers) == 0
    assert len(from_config(base | {"use_mtp": True}).mtp_layers) == 3


def test_mamba_width_may_be_stated():
    """4,000 channels of 16 fp32 numbers and 3 inputs of 2 bytes, where expand x hidden_size would be 5,120."""
    layer = from_config(CONFIGS["mamba-2.8b"] | {"intermediate_size": 4_000}).layers[0]
    assert layer.bytes_at(1, "bf16") == 4_000 * (64 + 6)


def test_phi_3_mini_has_a_window_in_every_layer():
    assert set(kinds(CONFIGS["phi-4"] | {"sliding_window": 2047})) == {"sliding_window"}


def test_smollm3_window_is_for_layers_without_rope():
    config = CONFIGS["smollm3-3b"] | {"use_sliding_window": True, "sliding_window": 512, "num_hidden_layers": 4}
    assert kinds(config) == ["full_attention"] * 3 + ["sliding_window"]


def test_minimax_layout_is_never_assumed():
    base = CONFIGS["minimax-text-01"]
    with pytest.raises(InputError, match="no attn_type_list"):
        from_config(without(base, "attn_type_list"))
    with pytest.raises(InputError, match=r"0 .lightning. or 1"):
        from_config(base | {"attn_type_list": [2] * 80})
    types = (["linear_attention"] * 7 + ["full_attention"]) * 10
    named = without(base, "attn_type_list") | {"layer_types": types, "model_type": "minimax"}
    assert from_config(named).layers == from_config(base).layers


def test_glm_5_indexers():
    """With one indexer in four, 78 layers have indexers at 0, 1, 2 (offset) and every fourth after; a pattern wins."""
    base = CONFIGS["glm-5"]
    some = from_config(base | {"index_topk_freq": 4}).layers
    assert [i for i, layer in enumerate(some) if layer.index_dim][:4] == [0, 1, 5, 9]
    pattern = from_config(base | {"index_topk_pattern": "FS" * 39}).layers
    assert [layer.index_dim for layer in pattern[:4]] == [128, 0, 128, 0]


def test_mamba2_sizes_must_agree():
    with pytest.raises(InputError, match="num_heads \\* head_dim = 2560 is not expand \\* hidden_size = 5120"):
        from_config(CONFIGS["mamba2-2.7b"] | {"num_heads": 40})


def test_switches_must_exist():
    with pytest.raises(InputError, match=r"no such switch; there are: compressor-state"):
        from_config(CONFIGS["deepseek-v4-pro"], "x", ["k-eq-v-stored-once"])
    with pytest.raises(InputError, match="there are: none"):
        from_config(LLAMA, "x", ["anything\n" * 100])


def test_unknown_family_names_the_near_ones():
    with pytest.raises(UnknownFamily) as caught:
        from_config(LLAMA | {"model_type": "gemma5"}, "mine")
    assert caught.value.model_type == "gemma5" and "gemma4" in str(caught.value)
    assert caught.value.config == LLAMA | {"model_type": "gemma5"} and caught.value.name == "mine"
    with pytest.raises(UnknownFamily) as caught:
        from_config({"text_config": {"num_hidden_layers": 1}})
    assert caught.value.model_type is None


def test_a_type_has_one_reader():
    with pytest.raises(ValueError, match="'llama' has two readers"):
        reader("llama")(lambda fields: None)
    assert readers()["llama"].__module__.endswith("families.llama")


def test_fields_are_a_mapping():
    fields = language_model(LLAMA)
    assert dict(fields) == LLAMA and len(fields) == len(LLAMA) and fields.model_type == "llama"

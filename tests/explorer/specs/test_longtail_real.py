"""The long tail against the real thing: each architecture built thin, run, and every byte that its cache holds summed.

What differs is a named term: transformers keeps one token less than the window between steps, and one column more of
each convolution than it needs; it repeats Falcon's grouped heads, and does not drop GPT-Neo's local tokens.
"""

import pytest

from explorer.specs.from_config import from_config
from explorer.specs.layers import Combined, SlidingWindow

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.filterwarnings("ignore:.*past_key_values. is deprecated:FutureWarning")
PROMPT, STEPS, ENCODER = 9, 2, 11
TOKENS = PROMPT + STEPS
BASE = {"vocab_size": 64, "hidden_size": 64, "num_attention_heads": 8, "intermediate_size": 32, "num_hidden_layers": 3}
GROUPED = BASE | {"num_key_value_heads": 2}
GPT = {"vocab_size": 64, "n_layer": 3, "n_embd": 64, "n_head": 8, "n_positions": 64}
MAMBA2 = {"mamba_n_heads": 8, "mamba_d_head": 16, "mamba_n_groups": 2, "mamba_d_state": 12, "mamba_d_conv": 4}
T5 = {"vocab_size": 64, "d_model": 64, "d_kv": 16, "num_heads": 8, "num_layers": 2, "num_decoder_layers": 3, "d_ff": 32}
BART = {"vocab_size": 64, "d_model": 64, "encoder_layers": 2, "decoder_layers": 3, "encoder_attention_heads": 4}
BART |= {"decoder_attention_heads": 8, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "max_position_embeddings": 64}
BART |= {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 2, "forced_eos_token_id": 2}

CASES = [
    *((name, GPT) for name in ("gpt2", "gpt_bigcode")),
    ("gpt_bigcode", GPT | {"multi_query": False}),
    *((name, GPT | {"rotary_dim": 4}) for name in ("gptj", "codegen")),
    *((name, BASE) for name in ("gpt_neox", "biogpt", "persimmon")),
    ("opt", BASE | {"ffn_dim": 32, "word_embed_proj_dim": 64}),
    ("bloom", {"vocab_size": 64, "n_layer": 3, "hidden_size": 64, "n_head": 8}),
    ("mpt", {"vocab_size": 64, "d_model": 64, "n_heads": 8, "n_layers": 3, "max_seq_len": 64}),
    ("xglm", {"vocab_size": 64, "d_model": 64, "attention_heads": 8, "num_layers": 3, "ffn_dim": 32}),
    ("falcon", BASE | {"alibi": False}),
    ("falcon", BASE | {"alibi": False, "multi_query": False}),
    *((name, GROUPED) for name in ("olmo", "olmo2", "olmoe", "granite", "granitemoe", "granitemoeshared", "cohere")),
    *((name, GROUPED) for name in ("apertus", "arcee", "exaone", "nemotron", "stablelm", "ernie4_5", "ernie4_5_moe")),
    *((name, GROUPED) for name in ("seed_oss", "internlm3")),
    *((name, GROUPED | {"head_dim": 16}) for name in ("hunyuan_v1_dense", "hunyuan_v1_moe", "ministral3")),
    ("helium", GROUPED | {"head_dim": 8}),
    ("starcoder2", GROUPED | {"sliding_window": None}),
    ("starcoder2", GROUPED | {"sliding_window": 6}),
    *((name, GROUPED | {"num_hidden_layers": 8, "sliding_window": 6}) for name in ("cohere2", "olmo3", "exaone4")),
    (
        "mimo_v2_flash",
        GROUPED
        | {"head_dim": 24, "v_head_dim": 16, "sliding_window_size": 5, "n_routed_experts": 2}
        | {"num_experts_per_tok": 1, "moe_intermediate_size": 16},
    ),
    (
        "jetmoe",
        {"vocab_size": 64, "hidden_size": 64, "num_hidden_layers": 3, "num_key_value_heads": 4, "kv_channels": 16}
        | {"intermediate_size": 32, "num_local_experts": 4, "num_experts_per_tok": 2},
    ),
    *((name, T5) for name in ("t5", "mt5", "umt5", "longt5")),
    *((name, BART) for name in ("bart", "mbart", "marian", "pegasus", "m2m_100", "blenderbot", "blenderbot-small")),
    (
        "jamba",
        GROUPED
        | {"num_hidden_layers": 4, "attn_layer_period": 4, "attn_layer_offset": 2, "mamba_d_state": 12}
        | {"mamba_d_conv": 4, "mamba_expand": 2, "mamba_dt_rank": 4, "num_experts": 2, "use_mamba_kernels": False},
    ),
    (
        "zamba2",
        BASE
        | {"num_key_value_heads": 8, "layers_block_type": ["mamba", "hybrid", "mamba"], "mamba_d_state": 12}
        | {"mamba_ngroups": 2, "n_mamba_heads": 8, "mamba_d_conv": 4, "mamba_expand": 2, "use_mamba_kernels": False},
    ),
    (
        "nemotron_h",
        GROUPED
        | {"hybrid_override_pattern": "M-*E", "num_hidden_layers": 4, "head_dim": 16, "mamba_num_heads": 8}
        | {"mamba_head_dim": 16, "n_groups": 2, "ssm_state_size": 12, "n_routed_experts": 2, "num_experts_per_tok": 1}
        | {"moe_intermediate_size": 16, "moe_shared_expert_intermediate_size": 16, "use_mamba_kernels": False},
    ),
    (
        "granitemoehybrid",
        GROUPED
        | MAMBA2
        | {"layer_types": ["mamba", "attention", "mamba"], "num_local_experts": 2}
        | {"num_experts_per_tok": 1, "shared_intermediate_size": 32},
    ),
    ("bamba", GROUPED | MAMBA2 | {"attn_layer_indices": [1]}),
    ("falcon_h1", GROUPED | MAMBA2 | {"mamba_d_ssm": 128, "head_dim": 16}),
    ("lfm2", GROUPED | {"conv_L_cache": 3, "layer_types": ["conv", "full_attention", "conv"]}),
]


@pytest.mark.parametrize(("model_type", "fields"), CASES, ids=[f"{i}-{case[0]}" for i, case in enumerate(CASES)])
def test_spec_equals_the_real_cache(model_type, fields):
    spec = from_config({**fields, "model_type": model_type, "encoder_tokens": ENCODER})
    estimated = sum(layer.bytes_at(TOKENS, "bf16") for layer in spec.layers)
    parts = [part for layer in spec.layers for part in (layer.parts if isinstance(layer, Combined) else (layer,))]
    one_token = sum(part.bytes_at(1, "bf16") for part in parts if isinstance(part, SlidingWindow))
    one_column = sum(
        state.heads * state.dim * 2 for part in parts for state in getattr(part, "states", ()) if state.role == "conv"
    )
    assert estimated - one_token + one_column == real_bytes(model_type, fields)


def test_falcon_40b_repeats_its_heads():
    fields = BASE | {"alibi": False, "new_decoder_architecture": True, "num_kv_heads": 2}
    spec = from_config({**fields, "model_type": "falcon"}, switches=["kv-repeated-for-query-heads"])
    assert sum(layer.bytes_at(TOKENS, "bf16") for layer in spec.layers) == real_bytes("falcon", fields)


def test_gpt_neo_keeps_what_its_local_layers_no_longer_see():
    """Two of four layers are local: 6 of 11 tokens; transformers keeps 11 in all four, 8 heads of 8."""
    fields = {"vocab_size": 64, "hidden_size": 64, "num_heads": 8, "num_layers": 4, "window_size": 6}
    fields |= {"attention_types": [[["global", "local"], 2]], "max_position_embeddings": 64}
    spec = from_config({**fields, "model_type": "gpt_neo"})
    assert sum(layer.bytes_at(TOKENS, "bf16") for layer in spec.layers) == 2 * 64 * 2 * (2 * TOKENS + 2 * 6)
    assert real_bytes("gpt_neo", fields) == 2 * 64 * 2 * 4 * TOKENS


def real_bytes(model_type, fields):
    """Bytes that the cache of a randomly filled model holds after a prompt and some steps."""
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(model_type, **fields)
    if config.is_encoder_decoder:
        model = transformers.AutoModelForSeq2SeqLM.from_config(config).to(torch.bfloat16).eval()
        given = {
            "input_ids": torch.randint(3, 60, (1, ENCODER)),
            "decoder_input_ids": torch.randint(3, 60, (1, PROMPT)),
        }
    else:
        model = transformers.AutoModelForCausalLM.from_config(config).to(torch.bfloat16).eval()
        given = {"input_ids": torch.randint(3, 60, (1, PROMPT))}
    with torch.no_grad():
        result = model(**given, use_cache=True)
        cache, encoded = result.past_key_values, getattr(result, "encoder_last_hidden_state", None)
        for _ in range(STEPS):
            token = torch.randint(3, 60, (1, 1))
            inputs = {"input_ids": token} if encoded is None else {"decoder_input_ids": token}
            extra = {} if encoded is None else {"encoder_outputs": (encoded,)}
            model(**inputs, **extra, past_key_values=cache, use_cache=True)
    found = {}
    collect(cache, found)
    return sum(tensor.numel() * tensor.element_size() for tensor in found.values() if tensor.dim() > 1)


def collect(value, found):
    """Every tensor that a cache object holds, once."""
    if isinstance(value, torch.Tensor):
        found[id(value)] = value
    elif isinstance(value, dict):
        for inner in value.values():
            collect(inner, found)
    elif isinstance(value, list | tuple):
        for inner in value:
            collect(inner, found)
    elif type(value).__module__.startswith("transformers.cache_utils"):
        collect(vars(value), found)

"""One published layout for each family that the core readers know: the fields of its config that matter to a cache."""

from typing import Any


def _decoder(model_type: str, layers: int, hidden: int, heads: int, kv_heads: int | None = None, **more: Any) -> dict:
    fields: dict[str, Any] = {"model_type": model_type, "num_hidden_layers": layers, "hidden_size": hidden}
    fields["num_attention_heads"] = heads
    if kv_heads is not None:
        fields["num_key_value_heads"] = kv_heads
    return fields | more


_LATENT = {"kv_lora_rank": 512, "qk_rope_head_dim": 64}
_KDA = {
    "num_heads": 96,
    "head_dim": 128,
    "short_conv_kernel_size": 4,
    "full_attn_layers": [*range(4, 93, 4), 93],
    "kda_layers": [layer for layer in range(1, 93) if layer % 4],
}

CONFIGS: dict[str, dict[str, Any]] = {
    "llama-3.1-8b": _decoder("llama", 32, 4096, 32, 8),
    "llama-3.1-405b": _decoder("llama", 126, 16384, 128, 8),
    "llama-4-scout": _decoder(
        "llama4_text", 48, 5120, 40, 8, head_dim=128, no_rope_layers=[], attention_chunk_size=8192
    ),
    "mistral-7b-v0.1": _decoder("mistral", 32, 4096, 32, 8, sliding_window=4096),
    "mixtral-8x7b": _decoder("mixtral", 32, 4096, 32, 8, sliding_window=None),
    "qwen2-72b": _decoder("qwen2", 80, 8192, 64, 8, use_sliding_window=False, sliding_window=131072),
    "qwen3-4b": _decoder("qwen3", 36, 2560, 32, 8, head_dim=128),
    "qwen3-235b": _decoder("qwen3_moe", 94, 4096, 64, 4, head_dim=128),
    "qwen3-next-80b": _decoder("qwen3_next", 48, 2048, 16, 2, head_dim=256),
    "qwen3.5-9b": _decoder("qwen3_5_text", 32, 4096, 16, 4, head_dim=256, mtp_num_hidden_layers=1),
    "qwen3.5-27b": _decoder("qwen3_5_text", 64, 5120, 24, 4, head_dim=256, mtp_num_hidden_layers=1),
    "gemma-7b": _decoder("gemma", 28, 3072, 16, 16, head_dim=256),
    "gemma-2-27b": _decoder("gemma2", 46, 4608, 32, 16, head_dim=128, sliding_window=4096),
    "gemma-3-27b": _decoder("gemma3_text", 62, 5376, 32, 16, head_dim=128, sliding_window=1024),
    "gemma-3n-e4b": _decoder("gemma3n_text", 35, 2048, 8, 2, head_dim=256, num_kv_shared_layers=15, sliding_window=512),
    "gemma-4-e2b": _decoder(
        "gemma4_text",
        35,
        1536,
        8,
        1,
        num_kv_shared_layers=20,
        sliding_window=512,
        layer_types=(["sliding_attention"] * 4 + ["full_attention"]) * 7,
    ),
    "gemma-4-e4b": _decoder("gemma4_text", 42, 2560, 8, 2, num_kv_shared_layers=18, sliding_window=512),
    "gemma-4-26b-a4b": _decoder(
        "gemma4_text", 30, 2816, 16, 8, num_global_key_value_heads=2, attention_k_eq_v=True, sliding_window=1024
    ),
    "gemma-4-31b": _decoder(
        "gemma4_text", 60, 5376, 32, 16, num_global_key_value_heads=4, attention_k_eq_v=True, sliding_window=1024
    ),
    "phi-4": _decoder("phi3", 40, 5120, 40, 10, sliding_window=None),
    "phi-2": _decoder("phi", 32, 2560, 32, 32),
    "smollm3-3b": _decoder("smollm3", 36, 2048, 16, 4, use_sliding_window=False),
    "deepseek-v2": _decoder("deepseek_v2", 60, 5120, 128, 128, **_LATENT),
    "deepseek-v3": _decoder("deepseek_v3", 61, 7168, 128, 128, num_nextn_predict_layers=1, **_LATENT),
    "deepseek-v3.2": _decoder("deepseek_v32", 61, 7168, 128, 128, index_head_dim=128, index_topk=2048, **_LATENT),
    "glm-5": _decoder("glm_moe_dsa", 78, 6144, 64, 64, index_head_dim=128, index_topk=2048, **_LATENT),
    "deepseek-v4-pro": _decoder(
        "deepseek_v4",
        61,
        7168,
        128,
        1,
        head_dim=512,
        sliding_window=128,
        index_head_dim=128,
        index_topk=1024,
        num_nextn_predict_layers=1,
        compress_ratios=[128, 128, *[4, 128] * 29, 4, 0],
    ),
    "deepseek-v4-flash": _decoder(
        "deepseek_v4",
        43,
        4096,
        64,
        1,
        head_dim=512,
        sliding_window=128,
        index_head_dim=128,
        index_topk=512,
        num_nextn_predict_layers=1,
        compress_ratios=[0, 0, *[4, 128] * 20, 4, 0],
    ),
    "kimi-k2": _decoder("kimi_k2", 61, 7168, 64, 64, **_LATENT),
    "kimi-linear-48b": _decoder(
        "kimi_linear",
        27,
        2304,
        32,
        32,
        linear_attn_config=_KDA
        | {
            "num_heads": 32,
            "full_attn_layers": [4, 8, 12, 16, 20, 24, 27],
            "kda_layers": [layer for layer in range(1, 27) if layer % 4],
        },
        **_LATENT,
    ),
    "kimi-k3": _decoder("kimi_k3", 93, 7168, 96, 96, linear_attn_config=_KDA, **_LATENT),
    "kimi-k3.1": _decoder("kimi_k31", 93, 7168, 96, 96, linear_attn_config=_KDA, index_head_dim=128, **_LATENT),
    "gpt-oss-20b": _decoder("gpt_oss", 24, 2880, 64, 8, head_dim=64, sliding_window=128),
    "gpt-oss-120b": _decoder("gpt_oss", 36, 2880, 64, 8, head_dim=64, sliding_window=128),
    "minimax-text-01": _decoder("minimax_text_01", 80, 6144, 64, 8, head_dim=128, attn_type_list=([0] * 7 + [1]) * 10),
    "minimax-m2": _decoder("minimax_m2", 62, 3072, 48, 8, head_dim=128),
    "glm-4.5": _decoder("glm4_moe", 92, 5120, 96, 8, head_dim=128, num_nextn_predict_layers=1),
    "glm-4-9b": _decoder("glm", 40, 4096, 32, 2, head_dim=128),
    "mamba-2.8b": {"model_type": "mamba", "num_hidden_layers": 64, "hidden_size": 2560, "state_size": 16},
    "mamba2-2.7b": {
        "model_type": "mamba2",
        "num_hidden_layers": 64,
        "hidden_size": 2560,
        "num_heads": 80,
        "head_dim": 64,
        "n_groups": 1,
        "state_size": 128,
    },
    "rwkv-4-7b": {"model_type": "rwkv", "num_hidden_layers": 32, "hidden_size": 4096},
    "rwkv-7-2.9b": {"model_type": "rwkv7", "num_hidden_layers": 32, "hidden_size": 2560, "head_dim": 64},
}

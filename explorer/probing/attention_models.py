"""Models whose layers keep Keys and Values: all of them, or those of a window."""

from typing import Any

from explorer.probing.published import model, mostly_sliding

_SWITCHED_OFF = {"use_sliding_window": False, "sliding_window": 131072, "max_window_layers": 28}

ATTENTION_MODELS: dict[str, dict[str, Any]] = {
    # the whole past in every layer
    "llama": model("llama", 16, 2048, 32, 8, 64),  # Llama 3.2 1B
    "qwen2": model("qwen2", 28, 3584, 28, 4, **_SWITCHED_OFF),  # Qwen 2.5 7B
    "qwen3": model("qwen3", 36, 2560, 32, 8, 128),  # Qwen 3 4B
    "qwen3_moe": model("qwen3_moe", 48, 2048, 32, 4, 128, num_experts=128, num_experts_per_tok=8),  # 30B-A3B
    "mixtral": model("mixtral", 32, 4096, 32, 8, 128, sliding_window=None),  # 8x7B
    "gemma": model("gemma", 18, 2048, 8, 1, 256),  # 2B
    "smollm3": model("smollm3", 36, 2048, 16, 4, use_sliding_window=False),  # 3B
    "glm4_moe": model("glm4_moe", 92, 5120, 96, 8, 128, n_routed_experts=160, first_k_dense_replace=3),  # GLM-4.5
    "minimax_m2": model("minimax_m2", 62, 3072, 48, 8, 128),  # M2
    "phi": model("phi", 32, 2560, 32, 32),  # Phi-2
    "gpt2": {"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "n_positions": 1024},
    "gpt_neox": model("gpt_neox", 6, 512, 8, None),  # Pythia 70M
    "falcon": model("falcon", 32, 4544, 71, None, multi_query=True, new_decoder_architecture=False),  # 7B
    "gpt_bigcode": {"model_type": "gpt_bigcode", "n_layer": 24, "n_embd": 2048, "n_head": 16, "multi_query": True},
    # a window in some layers, or in all
    "mistral": model("mistral", 32, 4096, 32, 8, 128, sliding_window=4096),  # 7B v0.1
    "starcoder2": model("starcoder2", 30, 3072, 24, 2, sliding_window=4096),  # 3B
    "phi3": model("phi3", 32, 3072, 32, 32, sliding_window=2047),  # Phi-3 mini 4K
    "gemma2": model("gemma2", 42, 3584, 16, 8, 256, sliding_window=4096),  # 9B
    "gemma3": {
        "model_type": "gemma3",
        "text_config": model(
            "gemma3_text", 62, 5376, 32, 16, 128, sliding_window=1024, sliding_window_pattern=6
        ),  # 27B
    },
    "cohere2": model("cohere2", 32, 4096, 32, 8, 128, sliding_window=4096, sliding_window_pattern=4),  # Command R7B
    "olmo3": model("olmo3", 32, 4096, 32, 32, sliding_window=4096, layer_types=mostly_sliding(32, 4)),  # 7B
    "exaone4": model("exaone4", 64, 5120, 40, 8, 128, sliding_window=4096, layer_types=mostly_sliding(64, 4)),  # 32B
    "gpt_oss": model(
        "gpt_oss",
        36,
        2880,
        64,
        8,
        64,
        sliding_window=128,
        layer_types=["sliding_attention", "full_attention"] * 18,
    ),  # 120B
    "llama4": {
        "model_type": "llama4",
        "text_config": model(
            "llama4_text", 48, 5120, 40, 8, 128, attention_chunk_size=8192, no_rope_layers=[1, 1, 1, 0] * 12
        ),  # Scout
    },
}

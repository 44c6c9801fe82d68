"""Models whose layers share a cache, or keep latents or compressed entries."""

from typing import Any

from explorer.probing.published import model, mostly_sliding

_MLA = {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128}
_V3 = _MLA | {"q_lora_rank": 1536, "n_routed_experts": 256, "num_experts_per_tok": 8, "first_k_dense_replace": 3}

LATENT_MODELS: dict[str, dict[str, Any]] = {
    # layers that share another's cache
    "gemma3n": {
        "model_type": "gemma3n",
        "text_config": model(
            "gemma3n_text",
            35,
            2048,
            8,
            2,
            256,
            sliding_window=512,
            num_kv_shared_layers=15,
            layer_types=mostly_sliding(35, 5),
        ),  # E4B
    },
    "gemma4": {
        "model_type": "gemma4",
        "text_config": model(
            "gemma4_text",
            35,
            1536,
            8,
            1,
            256,
            global_head_dim=512,
            sliding_window=512,
            num_kv_shared_layers=20,
            layer_types=mostly_sliding(35, 5),
            attention_k_eq_v=False,
            hidden_size_per_layer_input=256,
        ),  # E2B
    },
    "gemma4-31b": {
        "model_type": "gemma4",
        "text_config": model(
            "gemma4_text",
            60,
            5376,
            32,
            16,
            256,
            global_head_dim=512,
            num_global_key_value_heads=4,
            attention_k_eq_v=True,
            sliding_window=1024,
            num_kv_shared_layers=0,
            layer_types=mostly_sliding(60, 6),
            hidden_size_per_layer_input=0,
        ),
    },
    # latents, indexers, compressed entries
    "deepseek_v2": model(
        "deepseek_v2",
        27,
        2048,
        16,
        16,
        q_lora_rank=None,
        n_routed_experts=64,
        n_shared_experts=2,
        num_experts_per_tok=6,
        first_k_dense_replace=1,
        n_group=1,
        topk_group=1,
        topk_method="greedy",
        **_MLA,
    ),  # Lite
    "deepseek_v3": model("deepseek_v3", 61, 7168, 128, 128, **_V3),
    "kimi_k2": {
        "model_type": "kimi_k25",
        "text_config": model("deepseek_v3", 61, 7168, 64, 64, **(_V3 | {"n_routed_experts": 384})),
    },
    "glm4_moe_lite": model(
        "glm4_moe_lite",
        47,
        2048,
        20,
        20,
        kv_lora_rank=512,
        q_lora_rank=768,
        qk_rope_head_dim=64,
        qk_nope_head_dim=192,
        v_head_dim=256,
        n_routed_experts=64,
        first_k_dense_replace=1,
    ),  # GLM-4.7 Flash
    "deepseek_v32": model(
        "deepseek_v32", 61, 7168, 128, 128, index_n_heads=64, index_head_dim=128, index_topk=2048, **_V3
    ),
    "glm_moe_dsa": model(
        "glm_moe_dsa",
        78,
        6144,
        64,
        64,
        kv_lora_rank=512,
        q_lora_rank=2048,
        qk_rope_head_dim=64,
        qk_nope_head_dim=192,
        v_head_dim=256,
        index_n_heads=32,
        index_head_dim=128,
        index_topk=2048,
        n_routed_experts=256,
        first_k_dense_replace=3,
    ),  # GLM-5
    "deepseek_v4": model(
        "deepseek_v4",
        43,
        4096,
        64,
        1,
        512,
        q_lora_rank=1024,
        qk_rope_head_dim=64,
        sliding_window=128,
        index_n_heads=64,
        index_head_dim=128,
        index_topk=512,
        o_groups=8,
        o_lora_rank=1024,
        compress_ratios=[0, 0, *[4, 128] * 20, 4, 0],
        n_routed_experts=256,
        num_experts_per_tok=6,
        num_nextn_predict_layers=1,
    ),  # Flash
}

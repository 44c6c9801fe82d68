"""Models with layers that keep a state of a fixed size."""

from typing import Any

from explorer.probing.published import model

_DELTA = {"linear_num_key_heads": 16, "linear_key_head_dim": 128, "linear_value_head_dim": 128,
          "linear_conv_kernel_dim": 4, "full_attention_interval": 4}  # fmt: skip
_MLA = {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128}

STATE_MODELS: dict[str, dict[str, Any]] = {
    "qwen3_next": model(
        "qwen3_next", 48, 2048, 16, 2, 256, linear_num_value_heads=32, num_experts=512, num_experts_per_tok=10, **_DELTA
    ),  # 80B-A3B
    "qwen3_5": {
        "model_type": "qwen3_5",
        "text_config": model("qwen3_5_text", 32, 4096, 16, 4, 256, linear_num_value_heads=32, **_DELTA),  # 9B
    },
    "kimi_linear": model(
        "kimi_linear",
        27,
        2304,
        32,
        32,
        num_experts=256,
        q_lora_rank=None,
        **_MLA,
        linear_attn_config={
            "full_attn_layers": [4, 8, 12, 16, 20, 24, 27],
            "kda_layers": [n for n in range(1, 28) if n not in (4, 8, 12, 16, 20, 24, 27)],
            "head_dim": 128,
            "num_heads": 32,
            "short_conv_kernel_size": 4,
        },
    ),  # 48B-A3B
    "minimax": model(
        "minimax",
        80,
        6144,
        64,
        8,
        128,
        num_local_experts=32,
        num_experts_per_tok=2,
        layer_types=[*["linear_attention"] * 7, "full_attention"] * 10,
    ),  # Text-01
    "mamba": {
        "model_type": "mamba",
        "num_hidden_layers": 24,
        "hidden_size": 768,
        "state_size": 16,
        "conv_kernel": 4,
        "expand": 2,
        "intermediate_size": 1536,
        "time_step_rank": 48,
    },  # 130M
    "falcon_mamba": {
        "model_type": "falcon_mamba",
        "num_hidden_layers": 64,
        "hidden_size": 4096,
        "state_size": 16,
        "conv_kernel": 4,
        "expand": 2,
        "intermediate_size": 8192,
        "time_step_rank": 256,
    },  # 7B
    "mamba2": {
        "model_type": "mamba2",
        "num_hidden_layers": 24,
        "hidden_size": 768,
        "state_size": 128,
        "conv_kernel": 4,
        "expand": 2,
        "num_heads": 24,
        "head_dim": 64,
        "n_groups": 1,
    },  # 130M
    "jamba": model(
        "jamba",
        28,
        2560,
        20,
        1,
        num_experts=1,
        num_experts_per_tok=1,
        attn_layer_period=14,
        attn_layer_offset=7,
        expert_layer_period=2,
        expert_layer_offset=1,
        mamba_d_state=16,
        mamba_d_conv=4,
        mamba_expand=2,
        mamba_dt_rank=160,
    ),  # Reasoning 3B
    "granitemoehybrid": model(
        "granitemoehybrid",
        40,
        1536,
        12,
        4,
        num_local_experts=64,
        num_experts_per_tok=6,
        mamba_n_heads=48,
        mamba_d_head=64,
        mamba_n_groups=1,
        mamba_d_state=128,
        mamba_d_conv=4,
        mamba_expand=2,
        layer_types=["attention" if n in (5, 15, 25, 35) else "mamba" for n in range(40)],
    ),  # 4.0 H Tiny
    "falcon_h1": model(
        "falcon_h1",
        36,
        1024,
        8,
        2,
        64,
        mamba_d_ssm=1536,
        mamba_n_heads=24,
        mamba_d_head=64,
        mamba_n_groups=1,
        mamba_d_state=128,
        mamba_d_conv=4,
        mamba_expand=2,
    ),  # 0.5B
    "zamba2": model(
        "zamba2",
        38,
        2048,
        32,
        32,
        128,
        mamba_d_state=64,
        mamba_d_conv=4,
        mamba_expand=2,
        mamba_ngroups=1,
        n_mamba_heads=64,
        mamba_headdim=64,
        num_mem_blocks=1,
        layers_block_type=["hybrid" if n % 6 == 5 else "mamba" for n in range(38)],
    ),  # 1.2B
    "nemotron_h": model(
        "nemotron_h",
        52,
        2688,
        32,
        2,
        128,
        hybrid_override_pattern="MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
        mamba_num_heads=64,
        mamba_head_dim=64,
        n_groups=8,
        ssm_state_size=128,
        conv_kernel=4,
        n_routed_experts=128,
        num_experts_per_tok=6,
    ),  # Nemotron 3 Nano 30B-A3B
    "rwkv": {
        "model_type": "rwkv",
        "num_hidden_layers": 12,
        "hidden_size": 768,
        "attention_hidden_size": 768,
        "context_length": 1024,
    },  # RWKV-4 169M
    "lfm2": model(
        "lfm2",
        16,
        2048,
        32,
        8,
        conv_L_cache=3,
        block_ff_dim=12288,
        layer_types=["full_attention" if n in (2, 5, 8, 10, 12, 14) else "conv" for n in range(16)],
    ),  # 1.2B
}

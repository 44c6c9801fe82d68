"""The numbers that define a decoder of the Llama family, read from a Hugging Face `config.json`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from explorer.errors import InputError
from explorer.weights import SUPPORTED_FAMILIES


@dataclass(frozen=True)
class ModelConfig:
    """Shape and conventions of one decoder.

    Attributes:
        name: what to call the model.
        model_type: `llama`, `mistral`, `qwen2` or `qwen3`.
        num_layers: decoder layers.
        num_heads: query heads.
        num_kv_heads: key/value heads; `num_heads` is a multiple of it.
        head_dim: width of one head.
        hidden_size: width of the residual stream.
        intermediate_size: width of the gated MLP.
        vocab_size: rows of the embedding.
        max_positions: longest context the model was made for, in tokens.
        norm_eps: added to the mean square in RMSNorm.
        rope: the rotary parameters (`rope_theta`, `rope_type` and what that type needs).
        layer_windows: for each layer its sliding window in tokens, or None for full attention.
        tie_embeddings: the output head reuses the embedding.
        qkv_bias: the Query, Key and Value projections have a bias.
        o_bias: the output projection has a bias.
        mlp_bias: the MLP's projections have a bias.
        qk_norm: RMSNorm on each head's Query and Key before the rotation (Qwen3).
        raw: the file's own fields.
    """

    name: str
    model_type: str
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    hidden_size: int
    intermediate_size: int
    vocab_size: int
    max_positions: int
    norm_eps: float
    rope: Mapping[str, Any]
    layer_windows: tuple[int | None, ...]
    tie_embeddings: bool
    qkv_bias: bool = False
    o_bias: bool = False
    mlp_bias: bool = False
    qk_norm: bool = False
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def queries_per_kv(self) -> int:
        """Query heads that share one KV head."""
        return self.num_heads // self.num_kv_heads

    @property
    def scale(self) -> float:
        """Factor on the scores, 1/sqrt(head_dim)."""
        return float(self.head_dim**-0.5)

    def cache_bytes_per_token(self, dtype_bytes: int) -> int:
        """Bytes that one token adds: 2 (Key and Value) x layers x KV heads x head_dim x bytes per element."""
        return 2 * self.num_layers * self.num_kv_heads * self.head_dim * dtype_bytes

    @classmethod
    def from_hf(cls, config: Mapping[str, Any], name: str = "model") -> "ModelConfig":
        """Read a `config.json`, in the layout of transformers 4 or 5.

        Raises:
            InputError: the family is not supported or a number is missing or does not fit.
        """
        model_type = str(config.get("model_type"))
        if model_type not in SUPPORTED_FAMILIES:
            known = ", ".join(SUPPORTED_FAMILIES)
            raise InputError(
                f"model_type {model_type[:40]!r} cannot run here; supported: {known}",
                f"无法运行 model_type {model_type[:40]!r}；支持：{known}",
            )
        if config.get("hidden_act", "silu") not in ("silu", "swish"):
            raise InputError(
                f"hidden_act {str(config['hidden_act'])[:40]!r} is not supported; expected silu",
                f"不支持 hidden_act {str(config['hidden_act'])[:40]!r}；应为 silu",
            )
        num_layers = _count(config, "num_hidden_layers")
        num_heads = _count(config, "num_attention_heads")
        num_kv_heads = _count(config, "num_key_value_heads", num_heads)
        hidden_size = _count(config, "hidden_size")
        if num_heads % num_kv_heads:
            raise InputError(
                f"num_attention_heads={num_heads} must be a multiple of num_key_value_heads={num_kv_heads}",
                f"num_attention_heads={num_heads} 应是 num_key_value_heads={num_kv_heads} 的整数倍",
            )
        attention_bias = bool(config.get("attention_bias", False))
        return cls(
            name=name,
            model_type=model_type,
            num_layers=num_layers,
            num_heads=num_heads,
            num_kv_heads=num_kv_heads,
            head_dim=_count(config, "head_dim", hidden_size // num_heads),
            hidden_size=hidden_size,
            intermediate_size=_count(config, "intermediate_size"),
            vocab_size=_count(config, "vocab_size"),
            max_positions=_count(config, "max_position_embeddings", 2048),
            norm_eps=float(config.get("rms_norm_eps", 1e-6)),
            rope=_rope(config),
            layer_windows=_windows(config, num_layers, model_type),
            tie_embeddings=bool(config.get("tie_word_embeddings", False)),
            qkv_bias=model_type == "qwen2" or attention_bias,
            o_bias=attention_bias and model_type in ("llama", "qwen3"),
            mlp_bias=bool(config.get("mlp_bias", False)) and model_type == "llama",
            qk_norm=model_type == "qwen3",
            raw=dict(config),
        )


def _count(config: Mapping[str, Any], key: str, default: int | None = None) -> int:
    value = config.get(key)
    if value is None:
        value = default
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(
            f"config field {key}={str(value)[:40]}: expected a whole number of at least 1",
            f"配置字段 {key}={str(value)[:40]}：应为不小于 1 的整数",
        )
    return value


def _rope(config: Mapping[str, Any]) -> dict[str, Any]:
    rope = dict(config.get("rope_parameters") or config.get("rope_scaling") or {})
    rope.setdefault("rope_theta", config.get("rope_theta", 10000.0))
    rope.setdefault("rope_type", rope.pop("type", "default"))
    if rope["rope_type"] not in ("default", "linear", "llama3", "yarn"):
        raise InputError(
            f"rope_type {str(rope['rope_type'])[:40]!r} is not supported; expected default, linear, llama3 or yarn",
            f"不支持 rope_type {str(rope['rope_type'])[:40]!r}；应为 default、linear、llama3 或 yarn",
        )
    return rope


def _windows(config: Mapping[str, Any], num_layers: int, model_type: str) -> tuple[int | None, ...]:
    """Per layer, honouring `use_sliding_window: false` and `layer_types` (both ship with a window that is off)."""
    window = config.get("sliding_window")
    if not window or (model_type.startswith("qwen") and not config.get("use_sliding_window", False)):
        return (None,) * num_layers
    if model_type == "llama":
        return (None,) * num_layers
    layer_types = config.get("layer_types")
    if layer_types:
        if len(layer_types) != num_layers:
            raise InputError(
                f"layer_types has {len(layer_types)} entries; expected {num_layers}",
                f"layer_types 有 {len(layer_types)} 项；应为 {num_layers} 项",
            )
        return tuple(int(window) if kind == "sliding_attention" else None for kind in layer_types)
    first = int(config.get("max_window_layers", 0)) if model_type.startswith("qwen") else 0
    return tuple(int(window) if layer >= first else None for layer in range(num_layers))

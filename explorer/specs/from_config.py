"""A `ModelSpec` from a Hugging Face `config.json`: what every layer keeps, or a plain refusal. Never a guess.

Read here: models whose layers are all alike and all attend to the whole past, of the model types in `FAMILIES`. What a
field means when it is absent follows the configuration classes of transformers 5.
"""

from collections.abc import Mapping
from typing import Any

from explorer.errors import InputError
from explorer.specs.layers import FullAttention
from explorer.specs.limits import short, whole
from explorer.specs.model import ModelSpec
from explorer.text import Text

# model_type -> the head_dim that its configuration class uses when the file has none (None: hidden_size / heads)
FAMILIES: dict[str, int | None] = {"llama": None, "mistral": None, "qwen2": None, "qwen3": 128}

# Fields that change what a layer keeps, in a model that otherwise looks uniform.
_UNREAD = ("kv_lora_rank", "num_kv_shared_layers", "attention_chunk_size", "sliding_window_pattern", "block_configs")


def from_config(config: Any, name: str = "config.json") -> ModelSpec:
    """What a model with this configuration keeps per layer.

    Args:
        config: the parsed `config.json`; a multimodal one may hold its language model in `text_config`.
        name: what to call the model.

    Raises:
        InputError: a field is missing, out of range or inconsistent, or the layout is not one that can be read yet.
    """
    fields, assumptions = _language_model(_table(config))
    model_type = fields["model_type"]
    num_layers = whole("num_layers", _need(fields, "num_hidden_layers"), shown_as="num_hidden_layers")
    num_heads = whole("num_heads", _need(fields, "num_attention_heads"), shown_as="num_attention_heads")
    hidden_size = whole("hidden_size", _need(fields, "hidden_size"))
    _refuse_unread(fields, model_type, num_layers)
    num_kv_heads = _kv_heads(fields, model_type, num_heads, assumptions)
    head_dim = _head_dim(fields, model_type, hidden_size, num_heads, assumptions)
    positions = fields.get("max_position_embeddings")
    return ModelSpec(
        name=name,
        title=name,
        layers=(FullAttention(num_kv_heads, head_dim, head_dim),) * num_layers,
        num_heads=num_heads,
        hidden_size=hidden_size,
        max_positions=None
        if positions is None
        else whole("max_positions", positions, shown_as="max_position_embeddings"),
        assumptions=tuple(assumptions),
    )


def _table(config: Any) -> Mapping[str, Any]:
    if isinstance(config, Mapping):
        return config
    raise InputError(
        f"the config holds {short(config)}: expected a JSON object with model_type, num_hidden_layers, ...",
        f"配置的内容是 {short(config)}：应为 JSON 对象，包含 model_type、num_hidden_layers 等字段",
    )


def _language_model(config: Mapping[str, Any]) -> tuple[dict[str, Any], list[Text]]:
    """The fields of the language model, with what had to be assumed to find them."""
    if config.get("is_encoder_decoder"):
        raise _unsupported("an encoder-decoder (its cross-attention cache)", "编码器-解码器模型（交叉注意力缓存）")
    assumptions: list[Text] = []
    fields = dict(config)
    if "text_config" in config and config.get("model_type") not in FAMILIES:
        fields = dict(_table(config["text_config"]))
        assumptions.append(
            Text(
                "only the language model (text_config) is counted; image or audio tokens count as tokens, and the rest "
                "of the model is taken to keep no cache of its own",
                "只计语言模型部分（text_config）；图像或音频 token 按 token 计，模型其余部分视为没有自己的缓存",
            )
        )
    model_type = fields.get("model_type")
    if not isinstance(model_type, str) or model_type not in FAMILIES:
        known = ", ".join(FAMILIES)
        given = "missing" if model_type is None else short(model_type)
        raise InputError(
            f"model_type is {given}: expected {known} (models whose layers all keep the same); others are not guessed",
            f"model_type 为 {given}：目前只读取 {known}（各层相同的全注意力模型），其他结构不作猜测",
        )
    return fields, assumptions


def _need(fields: Mapping[str, Any], field: str) -> Any:
    if fields.get(field) is None:
        raise InputError(f"the config has no {field}: it is needed", f"配置中缺少 {field}：这个字段必须有")
    return fields[field]


def _unsupported(what: str, what_zh: str) -> InputError:
    return InputError(
        f"the config describes {what}: not supported yet, so no size is given",
        f"配置描述的是{what_zh}：目前还不支持，因此不给出大小",
    )


def _refuse_unread(fields: Mapping[str, Any], model_type: str, num_layers: int) -> None:
    """Refuse whatever would make some layer keep something else than all Keys and Values."""
    for field in _UNREAD:
        if fields.get(field) not in (None, 0, False):
            raise _unsupported(f"layers with {field}", f"带有 {field} 的层")
    layer_types = fields.get("layer_types")
    if layer_types is not None:
        _check_layer_types(layer_types, num_layers)
    elif _has_sliding_layers(fields, model_type, num_layers):
        raise _unsupported("layers with a sliding window", "带滑动窗口的层")


def _check_layer_types(layer_types: Any, num_layers: int) -> None:
    if not isinstance(layer_types, list) or len(layer_types) != num_layers:
        raise InputError(
            f"layer_types is {short(layer_types)}: expected a list of num_hidden_layers = {num_layers} names",
            f"layer_types 为 {short(layer_types)}：应为含 num_hidden_layers = {num_layers} 个名称的列表",
        )
    other = next((kind for kind in layer_types if kind != "full_attention"), None)
    if other is not None:
        raise _unsupported(f"layers of type {short(other)}", f"类型为 {short(other)} 的层")


def _has_sliding_layers(fields: Mapping[str, Any], model_type: str, num_layers: int) -> bool:
    """Whether the family's own rules give some layer a window."""
    if "use_sliding_window" in fields and not fields["use_sliding_window"]:
        return False
    if model_type in ("qwen2", "qwen3"):  # off unless switched on, and then from max_window_layers upwards
        first = fields.get("max_window_layers", 28)
        return (
            bool(fields.get("use_sliding_window"))
            and bool(fields.get("sliding_window", 4096))
            and (not isinstance(first, int) or first < num_layers)
        )
    if model_type == "mistral" and "sliding_window" not in fields:
        raise InputError(
            "the config has no sliding_window, for which Mistral's own default is a window of 4,096: "
            "write null for full attention",
            "配置中没有 sliding_window，而 Mistral 的默认值是 4,096 的窗口：若为全注意力，请写 null",
        )
    return fields.get("sliding_window") is not None


def _kv_heads(fields: Mapping[str, Any], model_type: str, num_heads: int, assumptions: list[Text]) -> int:
    given = fields.get("num_key_value_heads")
    if given is None:
        if model_type != "llama" and "num_key_value_heads" not in fields:
            _need(fields, "num_key_value_heads")
        assumptions.append(
            Text(
                f"num_key_value_heads is not given: one KV head per query head ({num_heads})",
                f"未给出 num_key_value_heads：按每个查询头一个 KV 头计（{num_heads}）",
            )
        )
        return num_heads
    num_kv_heads = whole("num_kv_heads", given, shown_as="num_key_value_heads")
    if num_heads % num_kv_heads:
        raise InputError(
            f"num_attention_heads={num_heads} is not a multiple of num_key_value_heads={num_kv_heads}: "
            "every KV head serves the same number of query heads",
            f"num_attention_heads={num_heads} 不是 num_key_value_heads={num_kv_heads} 的整数倍："
            "每个 KV 头服务的查询头数应相同",
        )
    return num_kv_heads


def _head_dim(
    fields: Mapping[str, Any], model_type: str, hidden_size: int, num_heads: int, assumptions: list[Text]
) -> int:
    if fields.get("head_dim") is not None:
        return whole("head_dim", fields["head_dim"])
    default = FAMILIES[model_type]
    if default is not None:
        assumptions.append(
            Text(
                f"head_dim is not given: {model_type}'s own default, {default}",
                f"未给出 head_dim：取 {model_type} 的默认值 {default}",
            )
        )
        return default
    if hidden_size % num_heads:
        raise InputError(
            f"hidden_size={hidden_size} is not a multiple of num_attention_heads={num_heads}, and there is no head_dim",
            f"hidden_size={hidden_size} 不是 num_attention_heads={num_heads} 的整数倍，且没有 head_dim",
        )
    return whole("head_dim", hidden_size // num_heads, shown_as="hidden_size / num_attention_heads")

"""A `ModelSpec` from a Hugging Face `config.json`: what every layer keeps, or a plain refusal. Never a guess.

What a field means, and what holds where it is absent, follows the configuration classes of transformers 5; each
family's reader is in `families/`.
"""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from explorer.errors import InputError
from explorer.specs.fields import Fields
from explorer.specs.limits import short
from explorer.specs.model import ModelSpec
from explorer.specs.overrides import refuse_unread
from explorer.specs.readers import readers, reads_overrides
from explorer.text import Text

# Where a multimodal config keeps its language model; the deepest published one is thinker_config.text_config.
_INNER = ("text_config", "thinker_config", "llm_config", "language_config")
_DEEPEST = 4
_ONLY_LANGUAGE = Text(
    "only the language model ({name}) is counted; image or audio tokens count as tokens, and the rest of the model is "
    "taken to keep no cache of its own",
    "只计语言模型部分（{name}）；图像或音频 token 按 token 计，模型其余部分视为没有自己的缓存",
)


class UnknownFamily(InputError):
    """The model type has no reader. Something that can build the model may still measure it.

    Attributes:
        model_type: the type, or None if the config names none.
        config: the whole config, as it was given to `from_config`; None where it was not.
        name: what the model was to be called.
    """

    def __init__(self, model_type: str | None, text: Text):
        super().__init__(text)
        self.model_type = model_type
        self.config: Mapping[str, Any] | None = None
        self.name = ""


def from_config(config: Any, name: str = "config.json", switches: Iterable[str] = ()) -> ModelSpec:
    """What a model with this configuration keeps per layer.

    Args:
        config: the parsed `config.json`; a multimodal one may hold its language model in `text_config`.
        name: what to call the model.
        switches: assumptions to turn to their other side; `ModelSpec.switches` lists what a model offers.

    Raises:
        UnknownFamily: no reader knows the model type; the nearest are named.
        InputError: a field is missing, out of range or inconsistent, or a switch does not exist.
    """
    chosen = frozenset(switches)
    try:
        fields = language_model(config, chosen)
    except UnknownFamily as unknown:
        unknown.config, unknown.name = config, name
        raise
    spec = readers()[fields.model_type](fields)
    if not reads_overrides(fields.model_type):
        refuse_unread(fields, len(spec.layers))
    known = {switch.name for switch in spec.switches}
    for switch in sorted(chosen - known):
        there_are = ", ".join(sorted(known)) or "none"
        raise InputError(
            f"assume={short(switch)}: this model has no such switch; there are: {there_are}",
            f"assume={short(switch)}：该模型没有这个开关；可用：{there_are}",
        )
    return replace(spec, name=name, title=name)


def language_model(config: Any, switches: Iterable[str] = ()) -> Fields:
    """The fields of the language model in a config.

    Raises:
        UnknownFamily: it has no reader.
        InputError: the config is no JSON object.
    """
    values, inside, outer = _table(config), "", None
    for _ in range(_DEEPEST):
        inner = next((key for key in _INNER if values.get(key) is not None), None)
        if inner is None or (inner == "text_config" and not isinstance(values[inner], Mapping) and _known(values)):
            break
        outer = values.get("model_type") if _known(values) else outer
        values, inside = _table(values[inner]), f"{inside}.{inner}".lstrip(".")
    model_type = values.get("model_type") if _known(values) or outer is None else outer
    if not isinstance(model_type, str) or model_type not in readers():
        raise _unknown(model_type)
    fields = Fields(values, model_type, switches)
    if inside:
        fields.assume(_ONLY_LANGUAGE.en.format(name=inside), _ONLY_LANGUAGE.zh.format(name=inside))
    return fields


def _known(values: Mapping[str, Any]) -> bool:
    model_type = values.get("model_type")
    return isinstance(model_type, str) and model_type in readers()


def _table(config: Any) -> Mapping[str, Any]:
    if isinstance(config, Mapping):
        return config
    raise InputError(
        f"the config holds {short(config)}: expected a JSON object with model_type, num_hidden_layers, ...",
        f"配置的内容是 {short(config)}：应为 JSON 对象，包含 model_type、num_hidden_layers 等字段",
    )


def _unknown(model_type: Any) -> UnknownFamily:
    if not isinstance(model_type, str):
        given = "missing" if model_type is None else short(model_type)
        return UnknownFamily(
            None,
            Text(
                f"model_type is {given}: expected a name such as llama, qwen3, gemma3 or deepseek_v3",
                f"model_type 为 {given}：应为名称，例如 llama、qwen3、gemma3 或 deepseek_v3",
            ),
        )
    near = difflib.get_close_matches(model_type[:80].lower(), readers(), n=3, cutoff=0.5)
    hint = f"; the nearest that have one: {', '.join(near)}" if near else ""
    hint_zh = f"；名称最接近的有：{'、'.join(near)}" if near else ""
    return UnknownFamily(
        model_type[:80],
        Text(
            f"model_type is {short(model_type)}: no reader knows what its layers keep, and none is guessed{hint}",
            f"model_type 为 {short(model_type)}：没有对应的读取规则，不作猜测{hint_zh}",
        ),
    )

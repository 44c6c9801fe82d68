"""A config's fields as a reader asks for them: checked, with what had to be assumed written down."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from explorer.errors import InputError
from explorer.specs.layers import LayerKind
from explorer.specs.limits import short, whole
from explorer.specs.model import ModelSpec, Switch
from explorer.text import Text

_MISSING = object()


class Fields(Mapping[str, Any]):
    """The fields of one language model's config, a mapping like the parsed file.

    Args:
        values: the fields.
        model_type: the family that is read.
        switches: names of the assumptions that are switched to their other side.
    """

    def __init__(self, values: Mapping[str, Any], model_type: str, switches: Iterable[str] = ()):
        self._values = dict(values)
        self.model_type = model_type
        self.assumptions: list[Text] = []
        self.offered: list[Switch] = []
        self._switches = frozenset(switches)

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def count(self, name: str, limit: str | None = None, default: Any = _MISSING) -> int:
        """A whole number.

        Args:
            name: the field; after each "|" another name for it.
            limit: a key of `LIMITS`; the field's own name if it is one.
            default: what stands for it where it is absent or null; its use is written down.

        Raises:
            InputError: it is missing and has no default, or out of range.
        """
        for spelling in name.split("|"):
            if self.get(spelling) is not None:
                return whole(limit or spelling, self[spelling], shown_as=spelling)
        spelling = name.split("|")[0]
        if default is _MISSING:
            raise missing(spelling)
        self.assume(
            f"{spelling} is not given: {self.model_type}'s own default, {default}",
            f"未给出 {spelling}：取 {self.model_type} 的默认值 {default}",
        )
        return whole(limit or spelling, default, shown_as=spelling)

    def optional(self, name: str, limit: str | None = None) -> int | None:
        """A whole number, or None where the field is absent or null."""
        return None if self.get(name) is None else whole(limit or name, self[name], shown_as=name)

    def flag(self, name: str, default: bool = False) -> bool:
        """A true or false; `default` where the field is absent or null.

        Raises:
            InputError: it is something else.
        """
        value = self.get(name)
        if value is None:
            return default
        if isinstance(value, bool):
            return value
        raise InputError(f"{name}={short(value)}: expected true or false", f"{name}={short(value)}：应为 true 或 false")

    def names(self, name: str, num_layers: int, known: Iterable[str]) -> list[str] | None:
        """A list with one of the `known` words for each layer; None where the field is absent or null.

        Raises:
            InputError: it is no such list.
        """
        value = self.each(name, num_layers)
        if value is None:
            return None
        allowed = sorted(known)
        for word in value:
            if not isinstance(word, str) or word not in allowed:
                raise InputError(
                    f"{name} holds {short(word)}: expected {', '.join(allowed)}",
                    f"{name} 中有 {short(word)}：应为 {'、'.join(allowed)}",
                )
        return value

    def each(self, name: str, num_layers: int) -> list[Any] | None:
        """A list with one entry for each layer (further ones, of draft layers, are cut off); None where there is none.

        Raises:
            InputError: it is no list, or too short.
        """
        value = self.get(name)
        if value is None:
            return None
        if not isinstance(value, Sequence) or isinstance(value, str) or len(value) < num_layers:
            raise InputError(
                f"{name} is {short(value)}: expected a list of num_hidden_layers = {num_layers} entries",
                f"{name} 为 {short(value)}：应为含 num_hidden_layers = {num_layers} 项的列表",
            )
        return list(value[:num_layers])

    def table(self, name: str) -> Mapping[str, Any]:
        """A nested object; empty where the field is absent or null.

        Raises:
            InputError: it is something else.
        """
        value = self.get(name)
        if value is None:
            return {}
        if isinstance(value, Mapping):
            return value
        raise InputError(f"{name}={short(value)}: expected a JSON object", f"{name}={short(value)}：应为 JSON 对象")

    def assume(self, en: str, zh: str) -> None:
        """Write an assumption down, once."""
        line = Text(en, zh)
        if line not in self.assumptions:
            self.assumptions.append(line)

    def switch(self, name: str, off: Text, on: Text) -> bool:
        """Whether the assumption `name` is switched from `off` to `on`; what then holds is written down."""
        chosen = name in self._switches
        self.offered.append(Switch(name, off, on, chosen))
        self.assume((on if chosen else off).en, (on if chosen else off).zh)
        return chosen

    def layers(self) -> int:
        """`num_hidden_layers`."""
        return self.count("num_hidden_layers|n_layer|num_layers|n_layers", "num_layers")

    def heads(self, default: Any = _MISSING) -> int:
        """`num_attention_heads`."""
        return self.count("num_attention_heads|n_head|num_heads|n_heads", "num_heads", default)

    def kv_heads(self, num_heads: int, default: int | None = None, *, required: bool = False) -> int:
        """`num_key_value_heads`: where it is absent the family's default, where it is null one for each query head.

        Args:
            num_heads: query heads.
            default: the family's default; None for one for each query head.
            required: nothing may stand for an absent field.

        Raises:
            InputError: `required` and missing altogether, or no divisor of `num_heads`.
        """
        if default is not None and "num_key_value_heads" not in self:
            return divides("num_key_value_heads", self.count("num_key_value_heads", "num_kv_heads", default), num_heads)
        if self.get("num_key_value_heads") is None:
            if required and "num_key_value_heads" not in self:
                raise missing("num_key_value_heads")
            self.assume(
                f"num_key_value_heads is not given: one KV head per query head ({num_heads})",
                f"未给出 num_key_value_heads：按每个查询头一个 KV 头计（{num_heads}）",
            )
            return num_heads
        return divides("num_key_value_heads", self.count("num_key_value_heads", "num_kv_heads"), num_heads)

    def head_dim(self, num_heads: int, default: int | None = None) -> int:
        """`head_dim`, or the family's default, or `hidden_size / num_heads`.

        Raises:
            InputError: it is none of them.
        """
        if self.get("head_dim") is not None:
            return self.count("head_dim")
        if default is not None:
            return self.count("head_dim", default=default)
        hidden_size = self.count("hidden_size|n_embd|d_model", "hidden_size")
        if hidden_size % num_heads:
            raise InputError(
                f"hidden_size={hidden_size} is not a multiple of num_attention_heads={num_heads}, and there is no "
                "head_dim",
                f"hidden_size={hidden_size} 不是 num_attention_heads={num_heads} 的整数倍，且没有 head_dim",
            )
        return whole("head_dim", hidden_size // num_heads, shown_as="hidden_size / num_attention_heads")

    def spec(
        self, layers: Iterable[LayerKind], *, mtp_layers: Iterable[LayerKind] = (), num_heads: int | None = None
    ) -> ModelSpec:
        """The model with these layers; everything else is read here.

        Args:
            layers: one kind for each layer.
            mtp_layers: what multi-token-prediction layers keep, if the checkpoint has some.
            num_heads: query heads, for a model that has none or calls them otherwise.
        """
        positions = next(
            (
                self[n]
                for n in ("max_position_embeddings", "n_positions", "max_sequence_length")
                if self.get(n) is not None
            ),
            None,
        )
        return ModelSpec(
            name=self.model_type,
            layers=tuple(layers),
            num_heads=self.heads() if num_heads is None else num_heads,
            hidden_size=self.count("hidden_size|n_embd|d_model", "hidden_size"),
            max_positions=None
            if positions is None
            else whole("max_positions", positions, shown_as="max_position_embeddings"),
            assumptions=tuple(self.assumptions),
            mtp_layers=tuple(mtp_layers),
            switches=tuple(self.offered),
            model_type=self.model_type,
        )


def missing(field: str) -> InputError:
    """The error for a field that must be there."""
    return InputError(f"the config has no {field}: it is needed", f"配置中缺少 {field}：这个字段必须有")


def unsupported(what: str, what_zh: str) -> InputError:
    """The error for a layout that no reader knows."""
    return InputError(
        f"the config describes {what}: not supported yet, so no size is given",
        f"配置描述的是{what_zh}：目前还不支持，因此不给出大小",
    )


def divides(name: str, part: int, whole_number: int) -> int:
    """`part`, which must divide `num_attention_heads`.

    Raises:
        InputError: it does not.
    """
    if whole_number % part:
        raise InputError(
            f"num_attention_heads={whole_number} is not a multiple of {name}={part}: "
            "every KV head serves the same number of query heads",
            f"num_attention_heads={whole_number} 不是 {name}={part} 的整数倍：每个 KV 头服务的查询头数应相同",
        )
    return part

"""Parameters that carry their own control: a dataclass field knows its label, range and unit.

One declaration feeds the page's control, the command line's `--set`, the checks and the documentation.
"""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, TypeVar

from explorer.errors import InputError
from explorer.text import Text

T = TypeVar("T")


@dataclass(frozen=True)
class Param:
    """How one field is offered and checked.

    Attributes:
        label: what the reader sees.
        minimum: smallest value (numbers).
        maximum: largest value (numbers).
        step: the control's step (numbers).
        choices: the allowed values (menus); then there is no range.
        unit: "tokens", "" for none.
        help: one line more, optional.
        max_length: characters allowed (text).
    """

    label: Text
    minimum: float | None = None
    maximum: float | None = None
    step: float | None = None
    choices: tuple[Any, ...] = ()
    unit: str = ""
    help: Text | None = None
    max_length: int | None = None


@dataclass(frozen=True)
class ParamSpec:
    """A `Param` with the field's name, type and default."""

    name: str
    kind: type
    default: Any
    param: Param


def param(default: Any, label: Text, **how: Any) -> Any:
    """A dataclass field with its control. Keyword arguments are those of `Param`."""
    return field(default=default, metadata={"param": Param(label, **how)})


def specs_of(owner: type) -> list[ParamSpec]:
    """The declared parameters of a dataclass, in order."""
    found = []
    for item in fields(owner):
        if "param" in item.metadata:
            assert item.default is not MISSING, f"{owner.__name__}.{item.name} needs a default"
            found.append(ParamSpec(item.name, type(item.default), item.default, item.metadata["param"]))
    return found


def build(owner: type[T], values: Mapping[str, Any]) -> T:
    """An instance of `owner` from loose values (strings from a command line, numbers from a page).

    Raises:
        InputError: a name is unknown, a value has the wrong type or is out of range.
    """
    known = {spec.name: spec for spec in specs_of(owner)}
    for name in values:
        if name not in known:
            have = ", ".join(known) or "-"
            raise InputError(f"no parameter {name!r}; there are: {have}", f"没有参数 {name!r}；可用：{have}")
    return owner(**{name: coerce(known[name], value) for name, value in values.items()})


def check(instance: Any) -> None:
    """Check every declared field of a dataclass instance; call it from `__post_init__`."""
    for spec in specs_of(type(instance)):
        coerce(spec, getattr(instance, spec.name))


def coerce(spec: ParamSpec, value: Any) -> Any:
    """`value` as the parameter's type, checked.

    Raises:
        InputError: with one line that says what would be right.
    """
    typed = _typed(spec, value)
    rule = spec.param
    if rule.choices and typed not in rule.choices:
        raise _wrong(
            spec, value, "one of " + ", ".join(map(str, rule.choices)), "以下之一：" + ", ".join(map(str, rule.choices))
        )
    if rule.max_length is not None and not 1 <= len(str(typed)) <= rule.max_length:
        raise _wrong(
            spec,
            f"{len(str(typed))} characters",
            f"1 to {rule.max_length} characters",
            f"1 到 {rule.max_length} 个字符",
        )
    low, high = rule.minimum, rule.maximum
    if (low is not None and typed < low) or (high is not None and typed > high):
        raise _wrong(spec, value, f"{_number(low)} to {_number(high)}", f"{_number(low)} 到 {_number(high)}")
    return typed


def _typed(spec: ParamSpec, value: Any) -> Any:
    try:
        if spec.kind is bool:
            return _boolean(value)
        if spec.kind is int:
            number = float(value)
            if number != int(number) or isinstance(value, bool):
                raise ValueError
            return int(number)
        if spec.kind is float:
            number = float(value)
            if number != number or number in (float("inf"), float("-inf")):
                raise ValueError
            return number
        return str(value)
    except (TypeError, ValueError, OverflowError):
        kinds = {bool: ("true or false", "true 或 false"), int: ("a whole number", "整数"), float: ("a number", "数字")}
        raise _wrong(spec, value, *kinds.get(spec.kind, ("text", "文本"))) from None


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word not in ("true", "false", "1", "0", "yes", "no"):
        raise ValueError
    return word in ("true", "1", "yes")


def _wrong(spec: ParamSpec, value: Any, right: str, right_zh: str) -> InputError:
    shown = value if len(str(value)) <= 60 else str(value)[:57] + "..."
    return InputError(f"{spec.name}={shown}: expected {right}", f"{spec.name}={shown}：应为{right_zh}")


def _number(value: float | None) -> str:
    return "any" if value is None else f"{value:g}" if abs(value) < 1e5 else f"{int(value):,}"

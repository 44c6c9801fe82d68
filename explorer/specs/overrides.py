"""`per_layer_config`: where transformers writes down which layers differ from the rest of a config, and in what.

    {"05": {"head_dim": 512}, "11": {"head_dim": 512}}

Any family may carry it. A reader that knows what to do with it asks for it here; for the others it is refused where it
would change a cache.
"""

from collections.abc import Mapping
from typing import Any

from explorer.errors import InputError
from explorer.specs.fields import Fields, unsupported
from explorer.specs.limits import short

FIELD = "per_layer_config"
# Parts of names of fields that decide what a layer keeps; an expert's width or a RoPE base does not.
_MATTERS = (
    "head",
    "kv",
    "window",
    "chunk",
    "layer_type",
    "index",
    "conv",
    "state",
    "lora",
    "compress",
    "attention_type",
)


def layer_overrides(fields: Fields, num_layers: int) -> dict[int, Mapping[str, Any]]:
    """What differs, by layer from 0; empty where the config has no such field.

    Raises:
        InputError: it is no table of tables, or names a layer that is none.
    """
    found = {}
    for name, own in fields.table(FIELD).items():
        index = int(name) if isinstance(name, str) and name.isascii() and name.isdigit() and len(name) < 6 else -1
        if not 0 <= index < num_layers or not isinstance(own, Mapping):
            raise InputError(
                f"{FIELD} holds {short(name)}: {short(own)}; expected a JSON object for layers 0 to {num_layers - 1}",
                f"{FIELD} 中有 {short(name)}：{short(own)}；应为第 0 到 {num_layers - 1} 层各自的 JSON 对象",
            )
        found[index] = own
    return found


def refuse_unread(fields: Fields, num_layers: int) -> None:
    """Refuse what a reader has not looked at and what would change a cache.

    Raises:
        InputError: there is such a field, or the table is malformed.
    """
    for own in layer_overrides(fields, num_layers).values():
        for name in own:
            if any(part in str(name) for part in _MATTERS):
                raise unsupported(
                    f"layers with their own {short(name)} ({FIELD})", f"各层自有的 {short(name)}（{FIELD}）"
                )

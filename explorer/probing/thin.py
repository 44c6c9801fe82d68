"""A real architecture, thin: few layers, narrow and light, but true in every number that decides what a cache holds.

The number of layers is the shortest run from the bottom that shows every kind of layer. Vocabulary, MLPs, experts and,
where it takes no part in the cache's geometry, the hidden size are shrunk; head counts, head and latent dims, state
sizes and patterns stay. Nothing but plain configuration data is read: no remote code, no weights, no network.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from explorer.errors import InputError
from explorer.probing import hugging_face
from explorer.probing.shrink import MLP_WIDTHS, Widths, shrunk, windows_scaled

MAX_LAYERS = 16
LAYER_COUNTS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers", "decoder_layers", "num_decoder_layers")


@dataclass(frozen=True)
class ThinConfig:
    """A thinned configuration.

    Attributes:
        fields: the language model's configuration, as a `config.json` would hold it.
        num_layers: how many layers it has.
        real_num_layers: how many the real one has.
        scaled_windows: windows that were shortened: field -> (real, thin).
        stands_for: for each layer of the real model, the layer here that keeps what it keeps.
    """

    fields: dict[str, Any]
    num_layers: int
    real_num_layers: int
    scaled_windows: dict[str, tuple[int, int]]
    stands_for: tuple[int, ...]


def thin_config(
    config: Mapping[str, Any],
    *,
    widths: Widths | None = None,
    longest_window: int | None = None,
    at_least_layers: int = 2,
) -> ThinConfig:
    """Thin a model's configuration.

    Args:
        config: the parsed `config.json` of a type that the installed transformers knows.
        widths: how narrow; None for the default.
        longest_window: windows above this are shortened to it, in the config and so in any spec that is read from it;
            None leaves them.
        at_least_layers: layers to keep where there are as many, beside those that are shared.

    Raises:
        InputError: transformers does not know the type or cannot read the config, or its layers vary too much.
    """
    real = hugging_face.language_config(config)
    known = real.to_dict()
    real_num_layers = _num_layers(real, known)
    own = real_num_layers - _num_shared(known, real_num_layers)
    signatures = _signatures(real, known, real_num_layers)
    num_layers = _shortest_run(signatures[:own], at_least_layers)
    stands_for = [signatures.index(signatures[index]) for index in range(own)] + [num_layers] * (real_num_layers - own)
    shared = min(num_layers, real_num_layers - own)
    if num_layers + shared > MAX_LAYERS:
        raise InputError(
            f"its kinds of layers only all appear in {num_layers + shared} layers: at most {MAX_LAYERS} are built",
            f"要出现全部层类型需要 {num_layers + shared} 层：超过此处允许的 {MAX_LAYERS} 层",
        )
    num_layers += shared
    fields = _cut_all(hugging_face.language_fields(config, real), real_num_layers, num_layers)
    fields = shrunk(fields, known, widths or Widths(), num_layers)
    fields |= {name: num_layers for name in LAYER_COUNTS if name in known}
    if shared:
        fields["num_kv_shared_layers"] = shared
    fields, scaled = windows_scaled(fields, known, longest_window)
    return ThinConfig(fields, num_layers, real_num_layers, scaled, tuple(stands_for))


def _num_layers(real: Any, known: Mapping[str, Any]) -> int:
    for value in (getattr(real, "num_hidden_layers", None), *(known.get(name) for name in LAYER_COUNTS)):
        if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 1024:
            return value
    raise InputError("the config does not say how many layers there are (1 to 1,024)", "配置没有写明层数（1 到 1,024）")


def _num_shared(known: Mapping[str, Any], num_layers: int) -> int:
    shared = known.get("num_kv_shared_layers")
    return shared if isinstance(shared, int) and 0 < shared < num_layers else 0


def _signatures(real: Any, known: Mapping[str, Any], num_layers: int) -> list[tuple[str, ...]]:
    """For every layer, what tells it from others: transformers' class for its cache, and each per-layer list."""
    lists = [value for name, value in known.items() if _tells_layers_apart(name, value, num_layers)]
    kinds = hugging_face.cache_classes(real)
    if len(kinds) != num_layers:  # a class with a cache of its own: its lists must tell
        kinds = [""] * num_layers
    return [(kind, *(repr(value[index]) for value in lists)) for index, kind in enumerate(kinds)]


def _tells_layers_apart(name: str, value: Any, num_layers: int) -> bool:
    if not isinstance(value, list | str) or len(value) != num_layers or name in MLP_WIDTHS or name.startswith("mlp"):
        return False
    return not any(isinstance(item, float) for item in value) and not _is_list_of_layers(name, value)


def _is_list_of_layers(name: str, value: Any) -> bool:
    """Whether it names layers by their numbers: "moe_layers": [3, 4, 5]."""
    if not isinstance(value, list) or "layer" not in name or not all(type(item) is int for item in value):
        return False
    return all(low < high for low, high in pairwise(value))


def _shortest_run(kinds: list[tuple[str, ...]], at_least: int) -> int:
    """The shortest run from the bottom with every kind, and a few layers at least, so that a sum is a sum."""
    return max(max(kinds.index(kind) for kind in set(kinds)) + 1, min(at_least, len(kinds)))


def _cut_all(fields: Mapping[str, Any], real_num_layers: int, num_layers: int) -> dict[str, Any]:
    drafts = fields.get("num_nextn_predict_layers")
    lengths = {real_num_layers, real_num_layers + (drafts if isinstance(drafts, int) else 0)}

    def cut(name: str, value: Any, first: int) -> Any:
        if _is_list_of_layers(name, value):
            return [item for item in value if item < num_layers + first]
        if isinstance(value, list | str) and len(value) in lengths and len(value) > num_layers:
            return value[:num_layers]
        if name == "linear_attn_config" and isinstance(value, dict):  # Kimi counts its layers from 1
            return {key: cut(key, item, 1) for key, item in value.items()}
        if name == "per_layer_config" and isinstance(value, dict):
            return {key: item for key, item in value.items() if int(key) < num_layers}
        return value

    return {name: cut(name, value, 0) for name, value in fields.items()}

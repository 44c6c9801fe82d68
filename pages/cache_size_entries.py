"""What the browser needs of a model to size its cache exactly: groups of layers as tensors, for each assumption."""

from collections.abc import Callable, Iterable
from itertools import chain, combinations
from typing import Any

from explorer.estimators import sums
from explorer.estimators.assumptions import assumptions_of
from explorer.estimators.ranks import Ranks
from explorer.specs import catalog
from explorer.specs.formats import FORMATS, CacheFormat, Packing, cache_format
from explorer.specs.layers import FullAttention, SharedFromOwner
from explorer.specs.model import ModelSpec
from explorer.specs.pieces import EVERY_TOKEN, Terms
from explorer.specs.tensors import PACKED, Tensor
from explorer.text import Lang, Text

BF16 = cache_format("bf16")
Reader = Callable[[Iterable[str]], ModelSpec]


def catalogue(lang: Lang) -> tuple[list[dict[str, Any]], list[str]]:
    """Every model of the catalogue, and the lines of text that their assumptions point into."""
    lines: dict[str, int] = {}
    found = []
    for name, known in catalog.entries().items():
        entry = entry_of(lambda switches, name=name: catalog.model_named(name, switches), lang)  # type: ignore[misc]
        entry |= {"organisation": known.organisation, "attention": known.attention.get(lang)}
        for variant in entry["variants"].values():
            variant["assumed"] = [lines.setdefault(line, len(lines)) for line in variant["assumed"]]
        found.append(entry)
    return found, list(lines)


def entry_of(read: Reader, lang: Lang) -> dict[str, Any]:
    """One model, with each choice that its switches allow; `read` makes its spec for a choice.

    Raises:
        InputError: from `read`.
    """
    spec = read(())
    names = sorted(switch.name for switch in spec.switches)
    choices = chain.from_iterable(combinations(names, number) for number in range(len(names) + 1))
    return {
        "name": spec.name,
        "title": spec.title,
        "date": spec.date,
        "source": spec.source,
        "verified": spec.verified.get(lang) if spec.verified else "",
        "model_type": spec.model_type,
        "max_positions": spec.max_positions,
        "weight_params": spec.weight_params,
        "shape": shape_of(spec),
        "switches": [{"name": s.name, "off": s.off.get(lang), "on": s.on.get(lang)} for s in spec.switches],
        "variants": {",".join(choice): _variant(read(choice) if choice else spec, lang) for choice in choices},
    }


def shape_of(spec: ModelSpec) -> dict[str, int] | None:
    """The five-number formula's layers, KV heads and head dimension; None unless all layers are alike and full."""
    layer = spec.layers[0]
    if not isinstance(layer, FullAttention) or layer.key_dim != layer.value_dim or set(spec.layers) != {layer}:
        return None
    return {"layers": len(spec.layers), "kv_heads": layer.num_kv_heads, "head_dim": layer.key_dim}


def own_shape(lang: Lang) -> dict[str, Any]:
    """What holds for a shape of the reader's own: the name of its only kind of layer, and what is taken for granted."""
    spec = ModelSpec("own", (FullAttention(1, 8, 8),), num_heads=1, hidden_size=1)
    return {
        "title": FullAttention.title.get(lang),
        "assumed": [line.get(lang) for line in lasting_assumptions(spec)],
    }


def formats(lang: Lang) -> list[dict[str, Any]]:
    """Every cache format: how each kind of tensor is packed."""
    return [_format(form, lang) for form in FORMATS.values()]


def packed_roles() -> list[str]:
    """Tensors that are written in the cache's format; all others keep the model's own or the one they name."""
    return sorted(PACKED)


def _format(form: CacheFormat, lang: Lang) -> dict[str, Any]:
    return {
        "name": form.name,
        "packing": _packing(form.packing),
        "compute": form.compute.name,
        "compute_bytes": form.compute.element_bytes,
        "own": {
            role: _packing(packing)
            for role in ("latent", "position", "index")
            if (form.roles is None or role in form.roles) and (packing := form.of(role)) != form.packing
        },
        "roles": None if form.roles is None else sorted(form.roles),
        "residual_length": form.residual_length,
        "note": form.note.get(lang) if form.note else "",
    }


def _packing(packing: Packing) -> list[int | None]:
    return [packing.bits, packing.group_size, packing.group_bytes]


def _variant(spec: ModelSpec, lang: Lang) -> dict[str, Any]:
    return {
        "assumed": [line.get(lang) for line in lasting_assumptions(spec)],
        "groups": [_group(group, lang) for group in sums.groups(spec)],
        "mtp": [_group(group, lang) for group in sums.groups(spec, include_mtp=True) if group.mtp],
    }


def lasting_assumptions(spec: ModelSpec) -> list[Text]:
    """The assumptions that hold whatever the controls say: those of one device that hold of two as well."""
    spread = set(assumptions_of(spec, 1, BF16, Ranks(tp=2), include_mtp=True))
    return [line for line in assumptions_of(spec, 1, BF16, Ranks(), include_mtp=False) if line in spread]


def _group(group: sums.Group, lang: Lang) -> dict[str, Any]:
    layer = group.layer
    shared = isinstance(layer, SharedFromOwner)
    found = {
        "kind": layer.kind,
        "title": layer.title.get(lang),
        "shape": layer.shape().get(lang),
        "layers": list(group.indices),
        "tensors": [_tensor(tensor) for tensor in layer.tensors()],
    }
    if shared:
        found |= {"owner": layer.owner, "reads": [_tensor(tensor) for tensor in layer.source.tensors()]}  # type: ignore[attr-defined]
    return found


def _tensor(tensor: Tensor) -> dict[str, Any]:
    """A tensor; what is left out is the usual: a row for every token, all of them read, the cache's format, shared."""
    found: dict[str, Any] = {"role": tensor.role, "heads": tensor.heads, "dim": tensor.dim}
    if tensor.rows != EVERY_TOKEN:
        found["rows"] = _terms(tensor.rows)
    if tensor.read is not None:
        found["read"] = _terms(tensor.read)
    if tensor.dtype is not None:
        found["dtype"] = tensor.dtype
    if tensor.replicated:
        found["replicated"] = True
    return found


def _terms(terms: Terms) -> list[list[int | None]]:
    return [[weight, rows.every, rows.skip, rows.cap] for weight, rows in terms]

"""An estimate against the cache itself: the reader's spec of a thin model, and the bytes that its cache holds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from explorer.probing import hugging_face, terms
from explorer.probing.fill import fill
from explorer.probing.thin import ThinConfig, thin_config
from explorer.probing.weigh import Weighed, weigh
from explorer.specs.from_config import from_config
from explorer.specs.layers import LayerKind, SharedFromOwner
from explorer.specs.model import ModelSpec


@dataclass(frozen=True)
class Proof:
    """One comparison.

    Attributes:
        model_type: the architecture.
        kv_len: tokens that the cache has seen.
        estimated_bytes: what the spec says.
        real_bytes: what the cache holds.
        explained: bytes beyond the estimate that the rules of `terms.py` predict, by rule.
        unexplained_bytes: what neither estimate nor rules account for, layer by layer and without a sign, so that too
            much in one layer does not make up for too little in another. 0 is a proof.
        missing_kinds: whether the thin model lacks a kind of layer that the real one has, or has one of its own.
    """

    model_type: str
    kv_len: int
    estimated_bytes: int
    real_bytes: int
    explained: dict[str, int]
    unexplained_bytes: int
    missing_kinds: bool

    @property
    def difference_bytes(self) -> int:
        """The cache's bytes beyond the estimate; negative if it holds fewer."""
        return self.real_bytes - self.estimated_bytes

    @property
    def explained_bytes(self) -> int:
        """The part of the difference that the rules predict."""
        return sum(self.explained.values())

    @property
    def holds(self) -> bool:
        """Whether every byte is accounted for, and for the real model's own kinds of layers."""
        return not self.unexplained_bytes and not self.missing_kinds and self.difference_bytes == self.explained_bytes


@dataclass(frozen=True)
class Subject:
    """A model to be weighed beside what is said about it.

    Attributes:
        thin: the configuration that it was built from.
        spec: what the reader says of that configuration.
        model: the model, with random weights.
        missing_kinds: see `Proof`.
    """

    thin: ThinConfig
    spec: ModelSpec
    model: Any
    missing_kinds: bool


def subject(config: Mapping[str, Any], longest_window: int) -> Subject:
    """Read a real configuration, thin it, read the thin one and build it.

    Args:
        config: a real model's `config.json`.
        longest_window: windows above this are shortened to it.

    Raises:
        InputError: the configuration cannot be read or built.
    """
    thin = thin_config(config, longest_window=longest_window)
    spec = from_config(thin.fields)
    same_windows = from_config(thin_config(config).fields)
    missing = kinds(same_windows) != kinds(from_config(config))
    return Subject(thin, spec, hugging_face.build(thin.fields), missing)


def prove(made: Subject, kv_len: int) -> Proof:
    """Let the model see `kv_len` tokens and compare."""
    return compare(made.spec, weigh(fill(made.model, kv_len)), kv_len, missing_kinds=made.missing_kinds)


def compare(spec: ModelSpec, weighed: Weighed, kv_len: int, *, missing_kinds: bool = False) -> Proof:
    """A spec against a cache that has been weighed."""
    estimates = [layer.bytes_at(kv_len, terms.FORMAT) for layer in spec.layers]
    predictions = [terms.predicted(layer, kv_len, spec.model_type) for layer in spec.layers]
    explained: dict[str, int] = {}
    for prediction in predictions:
        for name, num_bytes in prediction.items():
            explained[name] = explained.get(name, 0) + num_bytes
    expected = [estimate + sum(more.values()) for estimate, more in zip(estimates, predictions, strict=True)]
    return Proof(
        model_type=spec.model_type,
        kv_len=kv_len,
        estimated_bytes=sum(estimates),
        real_bytes=weighed.held_bytes,
        explained=explained,
        unexplained_bytes=_unexplained(expected, weighed),
        missing_kinds=missing_kinds,
    )


def _unexplained(expected: list[int], weighed: Weighed) -> int:
    """Sum of what is off in each layer; of the whole, where the cache does not keep its layers apart."""
    in_layers = [weighed.layer_bytes(index) for index in range(len(expected))]
    if sum(in_layers) != weighed.held_bytes:
        return abs(weighed.held_bytes - sum(expected))
    return sum(abs(real - wanted) for real, wanted in zip(in_layers, expected, strict=True))


def kinds(spec: ModelSpec) -> frozenset[LayerKind]:
    """The different kinds of layers that keep something of their own."""
    return frozenset(layer for layer in spec.layers if not isinstance(layer, SharedFromOwner))

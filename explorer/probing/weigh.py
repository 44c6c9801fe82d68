"""What a cache object really holds: every tensor that hangs off it, counted to the byte.

The walk knows no cache class. It follows attributes, lists, tuples and dicts and finds tensors. A byte is counted once
however many views show it (a cache may keep Key and Value as one tensor), and only where a view shows it: what a view's
storage holds beside it is named `retained_bytes`, for it is freed or reused at the next step and belongs to no token.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

# What hangs off a cache but is no part of it.
_FOREIGN = (nn.Module, type, torch.device, torch.dtype, torch.Stream, str, bytes, int, float, complex)

# By the address of a storage: itself (kept alive, so that no other takes its address), and its bytes shown so far.
_Seen = dict[int, tuple[torch.UntypedStorage, torch.Tensor]]


@dataclass(frozen=True)
class Held:
    """One tensor of a cache.

    Attributes:
        name: where it hangs, without the layer's number ("keys", "conv_states.0").
        layer: the layer it belongs to; None for a tensor of all layers together.
        shape: its axes.
        dtype: torch's name of its element type ("bfloat16").
        num_bytes: bytes that it shows and that no tensor before it showed.
    """

    name: str
    layer: int | None
    shape: tuple[int, ...]
    dtype: str
    num_bytes: int


@dataclass(frozen=True)
class Weighed:
    """A cache on the scales.

    Attributes:
        tensors: what it holds, in the order of the walk; a pure alias has 0 bytes.
        retained_bytes: bytes of the same storages that no tensor of the cache shows (slack capacity).
    """

    tensors: tuple[Held, ...]
    retained_bytes: int
    _by_layer: dict[int | None, int] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        for held in self.tensors:
            self._by_layer[held.layer] = self._by_layer.get(held.layer, 0) + held.num_bytes

    @property
    def held_bytes(self) -> int:
        """All bytes that the cache's tensors show, each counted once."""
        return sum(held.num_bytes for held in self.tensors)

    def layer_bytes(self, layer: int | None) -> int:
        """The bytes of one layer; of None, those that belong to no single layer."""
        return self._by_layer.get(layer, 0)

    def by_dtype(self) -> dict[str, int]:
        """Bytes by element type."""
        found: dict[str, int] = defaultdict(int)
        for held in self.tensors:
            found[held.dtype] += held.num_bytes
        return dict(found)


def weigh(cache: Any) -> Weighed:
    """Count every byte that `cache` holds.

    Args:
        cache: a cache object of any class, or a list, tuple or dict of tensors.
    """
    seen: _Seen = {}
    layered = not isinstance(cache, list | tuple)  # a bare list may be sorted by anything
    tensors = [_counted(path, tensor, seen, layered) for path, tensor in _tensors(cache, (), set())]
    retained = sum(storage.nbytes() - int(shown.sum()) for storage, shown in seen.values())
    return Weighed(tuple(tensors), retained)


def _counted(path: tuple[str | int, ...], tensor: torch.Tensor, seen: _Seen, layered: bool) -> Held:
    layer = next((step for step in path if layered and isinstance(step, int)), None)
    at = path.index(layer) if layer is not None else -1
    name = ".".join(str(step) for index, step in enumerate(path) if index != at)
    fresh = _newly_shown(tensor, seen) if tensor.numel() else 0
    return Held(name, layer, tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."), fresh)


def _newly_shown(tensor: torch.Tensor, seen: _Seen) -> int:
    """Bytes of its storage that `tensor` shows first: marked one by one, exact for any strides and overlaps."""
    storage = tensor.untyped_storage()
    if storage.data_ptr() not in seen:
        seen[storage.data_ptr()] = (storage, torch.zeros(storage.nbytes(), dtype=torch.bool))
    shown = seen[storage.data_ptr()][1]
    before, item = int(shown.sum()), tensor.element_size()
    size, stride = (*tensor.shape, item), (*(step * item for step in tensor.stride()), 1)
    shown.as_strided(size, stride, tensor.storage_offset() * item).fill_(True)
    return int(shown.sum()) - before


def _tensors(
    value: Any, path: tuple[str | int, ...], visited: set[int]
) -> Iterator[tuple[tuple[str | int, ...], torch.Tensor]]:
    if isinstance(value, torch.Tensor):
        yield path, value
        return
    if value is None or isinstance(value, _FOREIGN) or id(value) in visited or _is_config(value):
        return
    visited.add(id(value))
    for step, child in _children(value):
        # `layers` says only that a number follows.
        yield from _tensors(child, path if step == "layers" else (*path, step), visited)


def _children(value: Any) -> Iterator[tuple[str | int, Any]]:
    if isinstance(value, dict):
        yield from ((key if isinstance(key, int) else str(key), child) for key, child in value.items())
    elif isinstance(value, list | tuple):
        yield from enumerate(value)
    elif hasattr(value, "__dict__"):
        yield from vars(value).items()


def _is_config(value: Any) -> bool:
    return any(base.__name__ in ("PreTrainedConfig", "PretrainedConfig") for base in type(value).__mro__)

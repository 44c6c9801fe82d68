"""The readers of configs: one function for each family, in a file of its own under `families/`, found by itself.

    @reader("gemma3", "gemma3_text")
    def read(fields: Fields) -> ModelSpec: ...

A reader gets the fields of the language model, taken out of a multimodal config, and says what each layer keeps.
"""

import importlib
import pkgutil
from collections.abc import Callable
from functools import cache

from explorer.specs.fields import Fields
from explorer.specs.model import ModelSpec

Reader = Callable[[Fields], ModelSpec]
_PACKAGE = "explorer.specs.families"
_READERS: dict[str, Reader] = {}
_READ_OVERRIDES: set[str] = set()


def reader(*model_types: str, overrides: bool = False) -> Callable[[Reader], Reader]:
    """Declare a function the reader of these model types.

    Args:
        model_types: what configs of the family say.
        overrides: it makes use of `per_layer_config` (`overrides.py`), which is refused for all others.
    """

    def declare(function: Reader) -> Reader:
        for model_type in model_types:
            if model_type in _READERS:
                raise ValueError(f"model_type {model_type!r} has two readers: {_READERS[model_type]} and {function}")
            _READERS[model_type] = function
            if overrides:
                _READ_OVERRIDES.add(model_type)
        return function

    return declare


@cache
def readers() -> dict[str, Reader]:
    """All readers by model type, in alphabetical order."""
    for module in pkgutil.iter_modules(importlib.import_module(_PACKAGE).__path__):
        importlib.import_module(f"{_PACKAGE}.{module.name}")
    return dict(sorted(_READERS.items()))


def reads_overrides(model_type: str) -> bool:
    """Whether the reader of this type makes use of `per_layer_config`."""
    return model_type in _READ_OVERRIDES

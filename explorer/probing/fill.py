"""Let a model fill its own cache: a prefill, then token by token."""

import inspect
from collections.abc import Iterator
from typing import Any

import torch

from explorer.probing import hugging_face

# What forward calls its cache, and its output too: it changed over the versions and still differs between families.
_CACHE_NAMES = ("cache", "past_key_values", "cache_params", "state")
DECODE_STEPS = 3


def fill(model: Any, kv_len: int, decode_steps: int = DECODE_STEPS) -> Any:
    """The model's own cache after `kv_len` tokens: a prefill, then `decode_steps` of them one by one.

    Args:
        model: a causal language model.
        kv_len: tokens seen in all, 1 or more.
        decode_steps: how many of them are decoded singly (fewer when `kv_len` is short).

    Raises:
        InputError: the model cannot run.
    """
    *_, cache = caches(model, kv_len - min(decode_steps, kv_len - 1), kv_len)
    return cache


def caches(model: Any, prompt_len: int, kv_len: int) -> Iterator[Any]:
    """The model's own cache after a prefill of `prompt_len` tokens and after each further one up to `kv_len`.

    It may be the same object each time, changed. A cache that the model cannot be told from is refused.

    Raises:
        InputError: the model cannot run, or keeps no cache.
    """
    name = next((each for each in _CACHE_NAMES if each in inspect.signature(model.forward).parameters), None)
    vocabulary = model.config.get_text_config(decoder=True).vocab_size
    ids = torch.randint(1, vocabulary, (1, kv_len), generator=torch.Generator().manual_seed(kv_len))
    cache = None
    for start, end in ((0, prompt_len), *((at, at + 1) for at in range(prompt_len, kv_len))):
        kept: dict[str, Any] = {} if name is None or cache is None else {name: cache}
        try:
            with torch.inference_mode(), hugging_face.quiet():
                out = model(ids[:, start:end], use_cache=True, **kept)
            cache = out[name]
        except Exception as error:  # whatever its code raises, the model did not run
            raise hugging_face.refused(model.config.model_type, error) from error
        yield cache

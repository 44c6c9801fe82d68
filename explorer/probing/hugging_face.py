"""All that is asked of transformers: configurations as objects, its choice of cache classes, random models.

Configurations are data. Nothing here follows `auto_map`, trusts remote code or opens a connection.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from explorer.errors import InputError
from explorer.specs.limits import short

# 2 GB in bfloat16.
MOST_WEIGHTS = 10**9

# Fields that could make transformers look for code, packages or kernels, and that say nothing about a cache.
_IGNORED = frozenset({"auto_map", "quantization_config", "_attn_implementation", "attn_implementation", "dtype",
                      "torch_dtype", "_name_or_path", "compression_config"})  # fmt: skip


def language_config(config: Mapping[str, Any]) -> Any:
    """The configuration object that transformers makes of the language model's part of `config`.

    Raises:
        InputError: transformers does not know the type or cannot read the config.
    """
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    model_type = config.get("model_type")
    if not isinstance(model_type, str) or model_type not in CONFIG_MAPPING:
        raise InputError(
            f"model_type {short(model_type)} is not known to the installed transformers",
            f"已安装的 transformers 不认识 model_type {short(model_type)}",
        )
    data = {name: value for name, value in config.items() if name not in _IGNORED}
    try:
        with quiet():
            return CONFIG_MAPPING[model_type].from_dict(data).get_text_config(decoder=True)
    except Exception as error:  # its classes raise whatever their checks and arithmetic raise
        raise refused(model_type, error) from error


def language_fields(config: Mapping[str, Any], real: Any) -> dict[str, Any]:
    """The part of `config` that `real` was made from, as plain fields with the model type of `real`."""
    if config.get("model_type") == real.model_type:
        found: Mapping[str, Any] = config
    else:
        nested = [value for value in config.values() if isinstance(value, dict) and "num_hidden_layers" in value]
        found = nested[0] if len(nested) == 1 else real.to_dict()
    return {name: value for name, value in found.items() if name not in _IGNORED} | {"model_type": real.model_type}


def cache_classes(real: Any) -> list[str]:
    """The class that transformers' own cache would use for each layer; empty where it has no opinion."""
    from transformers import DynamicCache

    try:
        return [type(layer).__name__ for layer in DynamicCache(config=real).layers]
    except Exception:  # families with a cache of their own do not suit it
        return []


def build(fields: Mapping[str, Any], dtype: Any = None) -> Any:
    """A causal language model with random weights, in evaluation mode on the CPU.

    Args:
        fields: a language model's configuration, small enough to build.
        dtype: torch element type of its weights, and so of most of its cache; None for bfloat16.

    Raises:
        InputError: transformers has no language model for it, or cannot build it.
    """
    import torch
    from transformers import AutoModelForCausalLM

    from explorer.probing.quick_init import QuickInit

    real = language_config(fields)
    if type(real) not in AutoModelForCausalLM._model_mapping:
        raise InputError(
            f"transformers has no causal language model for {real.model_type}",
            f"transformers 没有 {real.model_type} 的因果语言模型",
        )
    try:
        with quiet(), torch.random.fork_rng(devices=()):
            torch.manual_seed(0)
            _fits(AutoModelForCausalLM, real)
            with QuickInit():
                return AutoModelForCausalLM.from_config(real, dtype=dtype or torch.bfloat16).eval()
    except InputError:
        raise
    except Exception as error:
        raise refused(real.model_type, error) from error


def _fits(factory: Any, real: Any) -> None:
    """Build it of nothing first: a model of this many weights is not thin.

    Raises:
        InputError: it is too large.
    """
    import torch
    import torch._dynamo  # model files import it, and torch 2.8 cannot while "meta" is the default device

    with torch.device("meta"):
        hollow = factory.from_config(real)
    weights = sum(parameter.numel() for parameter in hollow.parameters())
    if weights > MOST_WEIGHTS:
        raise InputError(
            f"even thin, this {real.model_type} has {weights:,} weights: more than the {MOST_WEIGHTS:,} built here",
            f"即使是薄模型，这份 {real.model_type} 也有 {weights:,} 个权重：超过此处允许的 {MOST_WEIGHTS:,}",
        )


@contextmanager
def quiet() -> Iterator[None]:
    """Keeps transformers' advice (missing fast kernels, unusual configurations) out of the log."""
    from transformers.utils import logging

    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)


def refused(model_type: str, error: Exception) -> InputError:
    """The error that says what transformers made of a configuration."""
    line = " ".join((str(error) or type(error).__name__).split())[:160]
    return InputError(
        f"transformers refuses this {model_type} config: {line}", f"transformers 不接受这份 {model_type} 配置：{line}"
    )

"""Random weights in a fraction of the time: a large tensor repeats one block of random numbers.

Most of the time that a thin model takes is drawing numbers that no cache depends on. The mode is one thread's own.
"""

from typing import Any

import torch
from torch.overrides import TorchFunctionMode

BLOCK = 2**16
_STD = 0.02
_DRAWS = frozenset(
    {"normal_", "uniform_", "trunc_normal_", "kaiming_uniform_", "kaiming_normal_", "xavier_uniform_", "xavier_normal_"}
)


class QuickInit(TorchFunctionMode):
    """While it is on, whatever fills a large tensor with random numbers fills it with a repeated block of them."""

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        """Fill quickly, or do what was asked."""
        given = kwargs or {}
        tensor = args[0] if args else given.get("tensor")
        if getattr(func, "__name__", "") in _DRAWS and isinstance(tensor, torch.Tensor) and _is_large(tensor):
            _fill(tensor)
            return tensor
        return func(*args, **given)


def _is_large(tensor: torch.Tensor) -> bool:
    return tensor.numel() > 4 * BLOCK and tensor.is_contiguous() and tensor.device.type == "cpu"


@torch.no_grad()
def _fill(tensor: torch.Tensor) -> None:
    block = torch.randn(BLOCK, dtype=tensor.dtype) * _STD
    flat = tensor.view(-1)
    whole = flat.numel() // BLOCK
    flat[: whole * BLOCK].view(whole, BLOCK).copy_(block.expand(whole, BLOCK))
    flat[whole * BLOCK :].copy_(block[: flat.numel() - whole * BLOCK])

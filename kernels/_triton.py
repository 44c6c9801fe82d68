"""The one place that knows whether Triton can run here.

Triton ships for Linux only. Elsewhere `jit` leaves a kernel a plain function that is never called, so that the
references and the CPU paths in this package still import and run.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

try:
    import triton
    import triton.language as tl

    HAS_TRITON = True
    jit: Callable[..., Any] = triton.jit
except ImportError:
    HAS_TRITON = False
    tl = SimpleNamespace(constexpr=object)  # type: ignore[assignment]

    def jit(fn: Any = None, **options: Any) -> Any:
        """Leave the kernel as it is; without Triton nothing launches it."""
        return fn if fn is not None else lambda kernel: kernel


INTERPRET = os.environ.get("TRITON_INTERPRET") == "1"
MAX_GRID_YZ = 65_535  # CUDA C++ Programming Guide, technical specifications; the first dimension may have 2^31 - 1


def can_launch(tensor: Tensor) -> bool:
    """Whether a Triton kernel can run on `tensor`: on a GPU, or on the CPU under the interpreter."""
    return HAS_TRITON and (tensor.is_cuda or INTERPRET)


def launch(kernel: Any, grid: tuple[int, ...], *args: Any, **constants: Any) -> None:
    """Start `kernel` on the device of its tensors: Triton itself takes the current one, whatever it is given.

    Args:
        kernel: the jitted function.
        grid: programs in each of up to three dimensions.
        args: run-time arguments in the kernel's order; the first is a tensor.
        constants: constexpr arguments and launch options by name.

    Raises:
        ValueError: tensors on several devices, or a grid that no GPU takes.
    """
    device = args[0].device
    for name, arg in zip(kernel.arg_names, args, strict=False):
        if isinstance(arg, Tensor) and arg.device != device:
            raise ValueError(f"{name.removesuffix('_ptr')} is on {arg.device}: expected {device}, like all tensors")
    if max(grid[1:], default=0) > MAX_GRID_YZ:
        raise ValueError(f"{grid[1:]} programs: a GPU takes at most {MAX_GRID_YZ}; pass fewer sequences or splits")
    with torch.cuda.device_of(args[0]):
        kernel[grid](*args, **constants)


def next_power_of_2(n: int) -> int:
    """The smallest power of two that is at least `n` (1 or more): what `tl.arange` can span."""
    return 1 << (n - 1).bit_length()


def padded(head_dim: int) -> int:
    """What a head takes in a tile: a power of two, and the 16 that `tl.dot` wants at least.

    The interpreter multiplies narrower ones too; a GPU's compiler refuses them.
    """
    return max(16, next_power_of_2(head_dim))


@dataclass(frozen=True)
class AotCase:
    """A kernel at one real shape, to be compiled ahead of time. A kernel's file lists its own as `AOT_CASES`.

    Attributes:
        kernel: the jitted function.
        label: the shape in words, e.g. "decode, 9/3 heads of 64, block 16, bf16".
        types: Triton type of each run-time argument by name: "*bf16", "*i32", "i32", "fp32".
        constants: value of each constexpr by name; None also for a pointer that is left out.
        aligned: run-time integers known to be multiples of 16; pointers are taken as aligned.
        num_warps: as the launcher passes it.
        num_stages: likewise.
    """

    kernel: Any
    label: str
    types: dict[str, str]
    constants: dict[str, Any]
    aligned: tuple[str, ...] = ()
    num_warps: int = 4
    num_stages: int = 3

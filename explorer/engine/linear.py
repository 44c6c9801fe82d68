"""Matrix products with fixed weights, in the fastest form that the device has.

On a CPU with oneDNN the weight is reordered once into oneDNN's blocked layout: one row times a matrix then runs at
the memory's speed (measured on 2 cores, bf16, [49152, 576]: 1.8 ms against 4.2 ms for the plain layout).
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

PACKED = "oneDNN, weights reordered"
PLAIN = "torch.nn.functional.linear"


def packing_available(dtype: torch.dtype, device: torch.device) -> bool:
    """Whether weights of this dtype can be reordered here; tried once on a small matrix."""
    if device.type != "cpu" or not torch.backends.mkldnn.is_available():
        return False
    try:
        probe = Linear(torch.ones(16, 16, dtype=dtype), None, packed=True)
        return bool(torch.equal(probe(torch.ones(1, 16, dtype=dtype)), torch.full((1, 16), 16, dtype=dtype)))
    except (RuntimeError, AttributeError, NotImplementedError):
        return False


class Linear:
    """`x @ weight.T + bias`, with two fused forms that a decoder needs.

    Args:
        weight: [out_features, in_features]; not kept when packed.
        bias: [out_features] or None.
        packed: use oneDNN's own layout (see `packing_available`).
    """

    def __init__(self, weight: Tensor, bias: Tensor | None, packed: bool):
        self.out_features, self.in_features = weight.shape
        self.weight_bytes = weight.nbytes + (bias.nbytes if bias is not None else 0)
        self.bias = bias
        self.packed = packed
        self.weight = torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), 1) if packed else weight

    def __call__(self, x: Tensor) -> Tensor:
        """[tokens, in_features] -> [tokens, out_features]."""
        if self.packed:
            return _pointwise()(x, self.weight, self.bias, "none", [], "")
        return F.linear(x, self.weight, self.bias)

    @property
    def implementation(self) -> str:
        """What runs, for a Record's provenance."""
        return PACKED if self.packed else PLAIN

    def add(self, x: Tensor, residual: Tensor) -> Tensor:
        """The product plus `residual` [tokens, out_features]."""
        if self.packed:
            return _binary()(x, residual, self.weight, self.bias, "add")
        return F.linear(x, self.weight, self.bias) + residual


def _pointwise() -> Callable[..., Tensor]:
    return torch.ops.mkldnn._linear_pointwise.default


def _binary() -> Callable[..., Tensor]:
    return torch.ops.mkldnn._linear_pointwise.binary

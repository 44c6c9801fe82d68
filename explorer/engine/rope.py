"""Rotary position embedding (Su et al. 2021, arXiv:2104.09864), half-split layout as in Llama checkpoints."""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor


class Rope:
    """Rotates Queries and Keys by their positions; the table grows as longer contexts come.

    Args:
        parameters: `rope_theta`, `rope_type` and that type's own fields.
        head_dim: width of one head.
        max_positions: the context that the model was made for, in tokens.
        dtype: of the rotated tensors; angles are computed in float32.
        device: where the table lives.
    """

    def __init__(
        self, parameters: Mapping[str, Any], head_dim: int, max_positions: int, dtype: torch.dtype, device: torch.device
    ):
        self.head_dim, self.dtype, self.device = head_dim, dtype, device
        self.inv_freq, self.factor = inverse_frequencies(parameters, head_dim, max_positions)
        self.cos = self.sin = torch.empty(0)
        self.reserve(1024)

    def reserve(self, num_positions: int) -> None:
        """Make sure that positions 0..num_positions-1 are in the table."""
        if num_positions <= self.cos.shape[0]:
            return
        size = max(num_positions, 2 * self.cos.shape[0])
        angle = torch.arange(size, dtype=torch.float32)[:, None] * self.inv_freq[None, :]
        cos, sin = angle.cos() * self.factor, angle.sin() * self.factor
        # The sign of the half-turn sits in the table, so that a rotation is one roll and one multiply-add.
        self.sin = torch.cat((-sin, sin), dim=-1).to(self.device, self.dtype)
        self.cos = torch.cat((cos, cos), dim=-1).to(self.device, self.dtype)

    def at(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Cosine and signed sine for `positions` [tokens], each [tokens, 1, head_dim]."""
        return self.cos[positions][:, None], self.sin[positions][:, None]


def rotate(x: Tensor, angles: tuple[Tensor, Tensor]) -> Tensor:
    """Rotate `x` [tokens, heads, head_dim] by angles from `Rope.at`."""
    cos, sin = angles
    return torch.addcmul(x * cos, x.roll(x.shape[-1] // 2, -1), sin)


def inverse_frequencies(parameters: Mapping[str, Any], head_dim: int, max_positions: int) -> tuple[Tensor, float]:
    """Radians per position for each pair of dimensions, [head_dim / 2] float32, and a factor on cosine and sine."""
    kind = parameters["rope_type"]
    base = float(parameters["rope_theta"])
    plain = 1.0 / base ** (torch.arange(0, head_dim, 2, dtype=torch.int64).float() / head_dim)
    if kind == "linear":
        return plain / float(parameters["factor"]), 1.0
    if kind == "llama3":
        return _llama3(plain, parameters), 1.0
    if kind == "yarn":
        return _yarn(plain, parameters, base, head_dim, max_positions)
    return plain, 1.0


def _llama3(plain: Tensor, parameters: Mapping[str, Any]) -> Tensor:
    """Llama 3.1: long wavelengths divided by `factor`, short ones kept, a ramp between."""
    factor, original = float(parameters["factor"]), float(parameters["original_max_position_embeddings"])
    low, high = float(parameters["low_freq_factor"]), float(parameters["high_freq_factor"])
    turns = original * plain / (2 * math.pi)  # rotations within the original context
    ramp = ((turns - low) / (high - low)).clamp(0, 1)
    return plain * (ramp + (1 - ramp) / factor)


def _yarn(
    plain: Tensor, parameters: Mapping[str, Any], base: float, head_dim: int, max_positions: int
) -> tuple[Tensor, float]:
    """YaRN (Peng et al. 2023, arXiv:2309.00071, section 3.2 and equation 22)."""
    original = float(parameters.get("original_max_position_embeddings") or max_positions)
    factor = float(parameters.get("factor") or max_positions / original)
    fast, slow = float(parameters.get("beta_fast") or 32), float(parameters.get("beta_slow") or 1)

    def dimension(turns: float) -> float:
        return head_dim * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(base))

    low, high = dimension(fast), dimension(slow)
    if parameters.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, head_dim - 1)
    ramp = ((torch.arange(head_dim // 2).float() - low) / max(high - low, 0.001)).clamp(0, 1)
    attention = parameters.get("attention_factor")
    if attention is None:
        attention = 0.1 * math.log(factor) + 1.0 if factor > 1 else 1.0
    return plain / factor * ramp + plain * (1 - ramp), float(attention)

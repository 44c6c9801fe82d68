"""Layers whose memory of the past has a fixed size: a recurrent state, with the last inputs of its short convolution.

A state is overwritten at every step, so it neither grows nor can be cut back to an earlier token.
"""

from dataclasses import dataclass
from typing import ClassVar

from explorer.specs import pieces
from explorer.specs.layers import LayerKind
from explorer.specs.tensors import Tensor
from explorer.text import Text


@dataclass(frozen=True)
class StateTensor:
    """One tensor of a fixed size.

    Attributes:
        role: "state" or "conv".
        heads: heads or groups; tensor-parallel ranks share them.
        rows: rows of one head: the key dimension of a state, the tokens that a convolution looks back on.
        dim: elements of one row.
        dtype: "fp32" for a state that is kept so; None for the model's own format.
    """

    role: str
    heads: int
    rows: int
    dim: int
    dtype: str | None = None

    def tensor(self) -> Tensor:
        """The same for the sums."""
        return Tensor(self.role, self.heads, self.dim, pieces.fixed(self.rows), dtype=self.dtype)


@dataclass(frozen=True)
class RecurrentState(LayerKind):
    """Linear attention or a state space model.

    Attributes:
        name: which ("Gated DeltaNet", "Mamba-2").
        states: its tensors.
    """

    kind: ClassVar[str] = "recurrent_state"
    title: ClassVar[Text] = Text("recurrent state", "循环状态")

    name: str
    states: tuple[StateTensor, ...]

    def tensors(self) -> tuple[Tensor, ...]:
        """State and convolution."""
        return tuple(state.tensor() for state in self.states)

    def shape(self) -> Text:
        """Its name and the sizes of its tensors."""
        sizes = [f"{s.role} {s.heads} x {s.rows} x {s.dim}" for s in self.states]
        return Text(f"{self.name}: {', '.join(sizes)}", f"{self.name}：{'，'.join(sizes)}")


def delta_net(
    name: str, key: tuple[int, int], value: tuple[int, int], kernel: int, *, dtype: str | None = "fp32"
) -> RecurrentState:
    """Gated DeltaNet, KDA: a `key_dim x value_dim` matrix for each value head; a convolution on queries, keys, values.

    Args:
        name: "Gated DeltaNet" or "Kimi Delta Attention".
        key: heads and dimension of queries and keys.
        value: heads and dimension of values.
        kernel: taps of the convolution; `kernel - 1` earlier inputs are kept.
        dtype: of the state.
    """
    (key_heads, key_dim), (value_heads, value_dim) = key, value
    return RecurrentState(
        name,
        (
            StateTensor("state", value_heads, key_dim, value_dim, dtype),
            StateTensor("conv", key_heads, kernel - 1, 2 * key_dim),
            StateTensor("conv", value_heads, kernel - 1, value_dim),
        ),
    )


def mamba2(
    heads: int, head_dim: int, state_dim: int, groups: int, kernel: int, *, dtype: str | None = None
) -> RecurrentState:
    """Mamba-2: a `head_dim x state_dim` matrix a head; a convolution on the inputs and on B and C of each group."""
    return RecurrentState(
        "Mamba-2",
        (
            StateTensor("state", heads, head_dim, state_dim, dtype),
            StateTensor("conv", heads, kernel - 1, head_dim),
            StateTensor("conv", groups, kernel - 1, 2 * state_dim),
        ),
    )


def mamba1(width: int, state_dim: int, kernel: int, *, dtype: str | None = None) -> RecurrentState:
    """Mamba: `state_dim` numbers and `kernel - 1` earlier inputs for each of `width` channels."""
    return RecurrentState(
        "Mamba", (StateTensor("state", width, 1, state_dim, dtype), StateTensor("conv", width, kernel - 1, 1))
    )

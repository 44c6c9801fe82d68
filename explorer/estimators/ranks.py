"""A cache spread over several devices: what one rank keeps, and what all ranks keep together.

Tensor-parallel ranks share the KV heads of a layer, at least one each: beyond that, and for an MLA latent always, each
rank keeps a copy. Pipeline stages share the layers, data-parallel replicas the sequences.
"""

import itertools
from dataclasses import dataclass

from explorer.errors import InputError
from explorer.specs.layers import LayerKind
from explorer.specs.limits import whole
from explorer.specs.model import ModelSpec


@dataclass(frozen=True)
class Ranks:
    """How a model is spread.

    Attributes:
        tp: tensor-parallel ranks.
        pp: pipeline stages.
        dp: data-parallel replicas.
    """

    tp: int = 1
    pp: int = 1
    dp: int = 1

    def __post_init__(self) -> None:
        """Check each.

        Raises:
            InputError: one is out of range.
        """
        whole("tp", self.tp)
        whole("pp", self.pp)
        whole("tp", self.dp, shown_as="dp")

    @property
    def devices(self) -> int:
        """All of them."""
        return self.tp * self.pp * self.dp

    def stages(self, spec: ModelSpec) -> list[tuple[LayerKind, ...]]:
        """The layers of each pipeline stage: runs of one length, the first longer by a layer if it does not divide.

        Raises:
            InputError: there are more stages than layers.
        """
        layers = spec.layers
        if self.pp > len(layers):
            raise InputError(
                f"pp={self.pp}: the model has {len(layers)} layers; expected at most one stage for each",
                f"pp={self.pp}：模型只有 {len(layers)} 层，每级至少一层",
            )
        length, longer = divmod(len(layers), self.pp)
        starts = [stage * length + min(stage, longer) for stage in range(self.pp + 1)]
        return [layers[start:end] for start, end in itertools.pairwise(starts)]

    def sequences(self, batch: int) -> int:
        """Sequences of the fullest replica."""
        return -(-batch // self.dp)

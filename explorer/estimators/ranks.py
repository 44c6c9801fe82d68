"""A cache spread over several devices: what one rank keeps, and what all ranks keep together.

Tensor-parallel ranks share the KV heads of a layer, at least one each: beyond that, and for an MLA latent always, each
rank keeps a copy. Pipeline stages share the layers, data-parallel replicas the sequences.
"""

import itertools
from dataclasses import dataclass

from explorer.errors import InputError
from explorer.specs.layers import LayerKind, SharedFromOwner
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
            InputError: there are more stages than layers, or a layer reads the cache of one on another stage.
        """
        layers = spec.layers
        if self.pp > len(layers):
            raise InputError(
                f"pp={self.pp}: the model has {len(layers)} layers; expected at most one stage for each",
                f"pp={self.pp}：模型只有 {len(layers)} 层，每级至少一层",
            )
        length, longer = divmod(len(layers), self.pp)
        starts = [stage * length + min(stage, longer) for stage in range(self.pp + 1)]
        for start, end in itertools.pairwise(starts):
            _check_owners(layers[start:end], start, self.pp)
        return [layers[start:end] for start, end in itertools.pairwise(starts)]

    def sequences(self, batch: int) -> int:
        """Sequences of the fullest replica."""
        return -(-batch // self.dp)


def _check_owners(stage: tuple[LayerKind, ...], start: int, pp: int) -> None:
    for index, layer in enumerate(stage, start=start):
        if isinstance(layer, SharedFromOwner) and not start <= layer.owner < start + len(stage):
            raise InputError(
                f"pp={pp}: layer {index} reads the cache of layer {layer.owner}, which would be on another stage; "
                "expected pp=1 for this model",
                f"pp={pp}：第 {index} 层读取第 {layer.owner} 层的缓存，而后者会在另一级上；该模型应取 pp=1",
            )

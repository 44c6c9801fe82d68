"""A store that also remembers what passed through it, so that a page can show attention as it really was."""

from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.engine.stores.base import Step
from explorer.engine.stores.contiguous import ContiguousStore


@dataclass
class LayerTrace:
    """One layer's attention over a prompt, float32 on the CPU.

    Attributes:
        query: rotated Queries, [tokens, num_heads, head_dim].
        key: rotated Keys, [tokens, num_kv_heads, head_dim].
        value: Values, like `key`.
        output: what the store answered, [tokens, num_heads, head_dim].
    """

    query: Tensor
    key: Tensor
    value: Tensor
    output: Tensor


class RecordingStore(ContiguousStore):
    """A contiguous store that keeps each layer's tensors of the last step."""

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor, step: Step) -> Tensor:
        """See `KVStore.attend`."""
        out = super().attend(layer, q, k, v, step)
        if layer == 0:
            self.layers: list[LayerTrace] = []
        self.layers.append(LayerTrace(*(t.detach().to("cpu", torch.float32) for t in (q, k, v, out))))
        return out

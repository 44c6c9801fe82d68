"""Attention as it really was: every number that one head used for one prompt."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from explorer.engine.generate import check_prompt
from explorer.engine.model import DTYPES, Model
from explorer.engine.stores.recording import LayerTrace, RecordingStore
from explorer.errors import InputError
from kernels.grouped_attention import causal_mask

Array = NDArray[np.float32]


@dataclass(frozen=True)
class HeadTrace:
    """One head's attention over `tokens` positions.

    Attributes:
        query: [tokens, head_dim], rotated.
        key: [tokens, head_dim], rotated, of the KV head that this Query head reads.
        value: [tokens, head_dim].
        scores: Query times Key over sqrt(head_dim), [tokens, tokens], -inf where a Query may not look.
        weights: softmax of each row of `scores`.
        output: what the engine computed, [tokens, head_dim].
        kv_head: which KV head is read.
    """

    query: Array
    key: Array
    value: Array
    scores: Array
    weights: Array
    output: Array
    kv_head: int


class PromptTrace:
    """All layers and heads of one prompt.

    Args:
        model: what ran.
        token_ids: the prompt.
        layers: what passed through the store.
        next_token_id: the greedy next token.
    """

    def __init__(self, model: Model, token_ids: Sequence[int], layers: list[LayerTrace], next_token_id: int):
        self.config, self.token_ids, self.next_token_id = model.config, tuple(token_ids), next_token_id
        self._layers = layers
        self.sink_share = np.stack([self._sink_share(i) for i in range(len(layers))])

    def layer(self, layer: int, head: int) -> HeadTrace:
        """One head's numbers.

        Raises:
            InputError: there is no such layer or head.
        """
        config = self.config
        if not (0 <= layer < config.num_layers and 0 <= head < config.num_heads):
            raise InputError(
                f"layer={layer}, head={head}: expected 0 to {config.num_layers - 1} and 0 to {config.num_heads - 1}",
                f"layer={layer},head={head}：应为 0 到 {config.num_layers - 1} 和 0 到 {config.num_heads - 1}",
            )
        trace, kv_head = self._layers[layer], head // config.queries_per_kv
        scores = self._scores(layer)[head]
        return HeadTrace(
            query=trace.query[:, head].numpy(),
            key=trace.key[:, kv_head].numpy(),
            value=trace.value[:, kv_head].numpy(),
            scores=scores.numpy(),
            weights=torch.softmax(scores, dim=-1).numpy(),
            output=trace.output[:, head].numpy(),
            kv_head=kv_head,
        )

    def _scores(self, layer: int) -> Tensor:
        """[num_heads, tokens, tokens] float32."""
        trace, tokens = self._layers[layer], len(self.token_ids)
        keys = trace.key.repeat_interleave(self.config.queries_per_kv, dim=1).transpose(0, 1)
        scores = torch.matmul(trace.query.transpose(0, 1), keys.transpose(1, 2)) * self.config.scale
        seen = causal_mask(tokens, tokens, self.config.layer_windows[layer], scores.device)
        return scores.masked_fill(~seen, float("-inf"))

    def _sink_share(self, layer: int) -> Array:
        """Mean weight that the Queries after the first give to position 0, [num_heads]; NaN for a single token."""
        weights = torch.softmax(self._scores(layer), dim=-1)[:, 1:, 0]
        return weights.mean(dim=-1).numpy()


@torch.inference_mode()
def trace_prompt(model: Model, token_ids: Sequence[int]) -> PromptTrace:
    """Run a prompt once and keep what every head saw. Memory grows with the prompt: about 1 MB for 8 tokens.

    Raises:
        InputError: the prompt is empty or too long.
    """
    check_prompt(model, token_ids, 0)
    store = RecordingStore(model.config, DTYPES[model.dtype], model.device, len(token_ids))
    step = store.begin([0], [len(token_ids)])
    logits = model.decoder.forward(torch.tensor(list(token_ids), device=model.device), step, store)
    return PromptTrace(model, token_ids, store.layers, int(logits[0].argmax()))

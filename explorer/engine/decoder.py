"""A decoder of the Llama family, written for one purpose: to run against any key/value store, fast.

Tokens of all sequences are packed on one axis, so prefill in chunks, ragged batches and decode are the same code. The
Query, Key and Value projections are one product, gate and up another. The head runs only where it is asked to.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from explorer.engine.config import ModelConfig
from explorer.engine.linear import Linear
from explorer.engine.rope import Rope, rotate
from explorer.engine.stores.base import KVStore, Step

# Above this many tokens torch's own rms_norm wins on a CPU; below, its separate operations cost more than their work.
SMALL_NORM_TOKENS = 32


class RMSNorm:
    """Divide by the root of the mean square, times a weight (Zhang and Sennrich 2019, arXiv:1910.07467)."""

    def __init__(self, weight: Tensor, eps: float):
        self.weight, self.eps = weight, eps
        self.twice = torch.cat((weight, weight))

    def __call__(self, x: Tensor) -> Tensor:
        """Over the last axis of `x`."""
        width = self.weight.shape[0]
        if x.is_cuda or x.numel() > SMALL_NORM_TOKENS * width:
            return F.rms_norm(x, (width,), self.weight, self.eps)
        # (x, -x) has mean zero and the mean square of x as its variance: LayerNorm of it is RMSNorm of x, and on a
        # CPU LayerNorm is one fused operation (9 us where rms_norm takes 17 for one token of 576).
        both = F.layer_norm(torch.cat((x, -x), dim=-1), (2 * width,), self.twice, None, self.eps)
        return both.narrow(-1, 0, width)


@dataclass
class Layer:
    """The weights of one decoder layer."""

    attention_norm: RMSNorm
    qkv: Linear
    query_norm: RMSNorm | None
    key_norm: RMSNorm | None
    output: Linear
    mlp_norm: RMSNorm
    gate_up: Linear
    down: Linear


class Decoder:
    """Embedding, layers, final norm and head.

    Args:
        config: the model's shape.
        weights: tensors by their Hugging Face names, already in the dtype and on the device to run with.
        packed: reorder the weights for oneDNN (see `linear.packing_available`).
    """

    def __init__(self, config: ModelConfig, weights: Mapping[str, Tensor], packed: bool):
        self.config, self.packed = config, packed
        self.embedding = weights["model.embed_tokens.weight"]
        self.dtype, self.device = self.embedding.dtype, self.embedding.device
        self.layers = [self._layer(weights, f"model.layers.{i}.") for i in range(config.num_layers)]
        self.norm = RMSNorm(weights["model.norm.weight"], config.norm_eps)
        head = self.embedding if config.tie_embeddings else weights["lm_head.weight"]
        self.head = Linear(head, None, packed)
        self.rope = Rope(config.rope, config.head_dim, config.max_positions, self.dtype, self.device)

    def _layer(self, weights: Mapping[str, Tensor], prefix: str) -> Layer:
        config = self.config

        def linear(names: Sequence[str], has_bias: bool) -> Linear:
            parts = [prefix + name for name in names]
            bias = torch.cat([weights[f"{part}.bias"] for part in parts]) if has_bias else None
            return Linear(torch.cat([weights[f"{part}.weight"] for part in parts]), bias, self.packed)

        def norm(name: str) -> RMSNorm:
            return RMSNorm(weights[f"{prefix}{name}.weight"], config.norm_eps)

        return Layer(
            attention_norm=norm("input_layernorm"),
            qkv=linear([f"self_attn.{x}_proj" for x in "qkv"], config.qkv_bias),
            query_norm=norm("self_attn.q_norm") if config.qk_norm else None,
            key_norm=norm("self_attn.k_norm") if config.qk_norm else None,
            output=linear(["self_attn.o_proj"], config.o_bias),
            mlp_norm=norm("post_attention_layernorm"),
            gate_up=linear(["mlp.gate_proj", "mlp.up_proj"], config.mlp_bias),
            down=linear(["mlp.down_proj"], config.mlp_bias),
        )

    def forward(self, token_ids: Tensor, step: Step, store: KVStore, logit_rows: Sequence[int] | None = None) -> Tensor:
        """Run the step's tokens through all layers.

        Args:
            token_ids: int64 [sum(q_lens)], the new tokens of all sequences in the step's order.
            step: from `store.begin`.
            store: where Keys and Values go and are read from.
            logit_rows: tokens (on the packed axis) whose next-token logits are wanted; the last of each sequence if
                None.

        Returns:
            [rows, vocab_size], the decoder's dtype.
        """
        self.rope.reserve(max(step.kv_lens))
        angles = self.rope.at(step.positions)
        step.rope = self.rope
        x = F.embedding(token_ids, self.embedding)
        for index, layer in enumerate(self.layers):
            x = self._attention(index, layer, x, step, store, angles)
            gate, up = layer.gate_up(layer.mlp_norm(x)).chunk(2, dim=-1)
            x = layer.down.add(F.silu(gate).mul_(up), x)
        store.end(step)
        if logit_rows is None:
            logit_rows = step.last_rows()
        if len(logit_rows) < x.shape[0]:
            x = x[torch.as_tensor(logit_rows, device=x.device)]
        return self.head(self.norm(x))

    def _attention(
        self, index: int, layer: Layer, x: Tensor, step: Step, store: KVStore, angles: tuple[Tensor, Tensor]
    ) -> Tensor:
        """The residual stream after one layer's attention, [tokens, hidden_size]."""
        heads, kv_heads = self.config.num_heads, self.config.num_kv_heads
        qkv = layer.qkv(layer.attention_norm(x)).view(x.shape[0], heads + 2 * kv_heads, self.config.head_dim)
        qk, v = qkv.split((heads + kv_heads, kv_heads), dim=1)
        if layer.query_norm is not None and layer.key_norm is not None:
            q, k = qk.split((heads, kv_heads), dim=1)
            qk = torch.cat((layer.query_norm(q), layer.key_norm(k)), dim=1)
        q, k = rotate(qk, angles).split((heads, kv_heads), dim=1)
        if store.rotates_keys:
            k = qk.narrow(1, heads, kv_heads)
        out = store.attend(index, q, k, v, step)
        return layer.output.add(out.reshape(x.shape[0], -1), x)

    @property
    def implementation(self) -> str:
        """What computes the products, for a Record's provenance."""
        return self.head.implementation

"""One decode step after another; on CUDA as a captured graph, so that the host's share of a step is one launch.

A graph replays the same kernels on the same addresses. So tokens, positions and the mask live in fixed tensors, and
the number of slots read is rounded up: one graph serves `BUCKET` context lengths.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from explorer.engine.decoder import Decoder
from explorer.engine.stores.base import KVStore
from explorer.engine.stores.contiguous import ContiguousStore

BUCKET = 256


class DecodeGraph:
    """One decode step of some sequences up to a context length.

    Args:
        decoder: the network.
        store: holds the sequences, in neighbouring rows.
        seq_ids: the sequences.
        kv_len: longest context that the graph serves, in tokens.
        capture: record a CUDA graph; without it the same steps run one by one (how tests check them on a CPU).
    """

    def __init__(self, decoder: Decoder, store: ContiguousStore, seq_ids: Sequence[int], kv_len: int, capture: bool):
        self.decoder, self.store = decoder, store
        self.step = store.fixed_step(seq_ids, kv_len)
        self.token_ids = torch.zeros(len(seq_ids), dtype=torch.int64, device=store.device)
        self.slots = torch.arange(kv_len, device=store.device)
        decoder.rope.reserve(kv_len)
        self.graph = self._capture() if capture else None

    def _capture(self) -> torch.cuda.CUDAGraph:
        """Warm up on a side stream, as capture demands, then record. The first sequences' slot 0 is put back after."""
        kept = [(t, t[..., 0, :].clone()) for t in (*self.store.keys, *self.store.values)]
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self._forward()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.logits = self._forward()
        for tensor, slot in kept:
            tensor[..., 0, :] = slot
        return graph

    def _forward(self) -> Tensor:
        torch.le(self.slots[None], self.step.positions[:, None], out=self.step.plan.visible)
        return self.decoder.forward(self.token_ids, self.step, self.store)

    def run(self, token_ids: Sequence[int], kv_lens: Sequence[int]) -> Tensor:
        """Logits [batch, vocab_size] for one new token of each sequence; valid until the next run.

        Args:
            token_ids: the new tokens.
            kv_lens: each sequence's length with its new token.
        """
        self.token_ids.copy_(torch.tensor(list(token_ids)))
        self.step.positions.copy_(torch.tensor(list(kv_lens)) - 1)
        if self.graph is None:
            return self._forward()
        self.graph.replay()
        return self.logits


class DecodeStepper:
    """Runs decode steps, through graphs where the device and the store allow it.

    Args:
        decoder: the network.
        store: holds the sequences.
    """

    def __init__(self, decoder: Decoder, store: KVStore):
        self.decoder, self.store = decoder, store
        self.graphs: dict[tuple[tuple[int, ...], int], DecodeGraph] = {}

    @property
    def uses_graphs(self) -> bool:
        """Whether steps of neighbouring rows are replayed as CUDA graphs."""
        full = all(window is None for window in self.decoder.config.layer_windows)
        return self.store.device.type == "cuda" and type(self.store) is ContiguousStore and full

    def __call__(self, seq_ids: Sequence[int], token_ids: Sequence[int]) -> Tensor:
        """Feed one token to each sequence; logits [batch, vocab_size]."""
        step = self.store.begin(seq_ids, [1] * len(seq_ids))
        if self.uses_graphs:
            graph = self._graph(step.seq_ids, max(step.kv_lens))
            if graph is not None:
                return graph.run(token_ids, step.kv_lens)
        tokens = torch.tensor(list(token_ids), device=self.store.device)
        return self.decoder.forward(tokens, step, self.store)

    def _graph(self, seq_ids: tuple[int, ...], kv_len: int) -> DecodeGraph | None:
        assert isinstance(self.store, ContiguousStore)
        rows = tuple(self.store.row_of[seq] for seq in seq_ids)
        if rows != tuple(range(rows[0], rows[0] + len(rows))):
            return None
        bucket = min(-(-kv_len // BUCKET) * BUCKET, self.store.capacity)
        key = (seq_ids, bucket)
        if key not in self.graphs:
            # Each graph keeps its own workspace: one at a time, so that memory does not grow with the context.
            self.graphs.clear()
            self.graphs[key] = DecodeGraph(self.decoder, self.store, seq_ids, bucket, capture=True)
        return self.graphs[key]

    @property
    def implementation(self) -> str:
        """What runs, for a Record's provenance."""
        return f"CUDA graph for each {BUCKET} tokens of context" if self.uses_graphs else "step by step"

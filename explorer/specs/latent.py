"""Layers that keep something smaller than Keys and Values: a latent, with an indexer, or entries made of many tokens.

None of it is split over tensor-parallel ranks: every head needs the whole latent, so each rank keeps a copy.
"""

from dataclasses import dataclass
from typing import ClassVar

from explorer.specs import pieces
from explorer.specs.layers import LayerKind
from explorer.specs.pieces import Rows, Terms
from explorer.specs.tensors import Tensor
from explorer.text import Text


@dataclass(frozen=True)
class LatentAttention(LayerKind):
    """MLA: one latent for Keys and Values of all heads, and one small Key that carries the position.

    DeepSeek-V2, arXiv:2405.04434. An engine that expands the latent into per-head Keys and Values before it stores them
    pays for full attention instead.

    Attributes:
        latent_dim: elements of the latent (`kv_lora_rank`).
        position_dim: elements of the RoPE part (`qk_rope_head_dim`).
    """

    kind: ClassVar[str] = "latent"
    title: ClassVar[Text] = Text("latent (MLA)", "潜变量（MLA）")

    latent_dim: int
    position_dim: int

    def tensors(self) -> tuple[Tensor, ...]:
        """The latent and its position part, for every token."""
        return (
            Tensor("latent", 1, self.latent_dim, replicated=True),
            Tensor("position", 1, self.position_dim, replicated=True),
        )

    def shape(self) -> Text:
        """Latent and position part."""
        return Text(f"{self.latent_dim} + {self.position_dim}", f"{self.latent_dim} + {self.position_dim}")


@dataclass(frozen=True)
class IndexedLatent(LayerKind):
    """DSA: a latent, and indexer keys that choose which `index_topk` tokens a query attends to (DeepSeek-V3.2).

    All indexer keys are read at each step, of the latents only the chosen.

    Attributes:
        latent_dim: elements of the latent.
        position_dim: elements of the RoPE part.
        index_dim: elements of an indexer key; 0 for a layer that reuses an earlier layer's choice.
        index_topk: tokens that a query attends to.
    """

    kind: ClassVar[str] = "latent_indexed"
    title: ClassVar[Text] = Text("latent with an indexer (DSA)", "潜变量加索引器（DSA）")

    latent_dim: int
    position_dim: int
    index_dim: int
    index_topk: int

    def tensors(self) -> tuple[Tensor, ...]:
        """The latent, its position part and the indexer's key, for every token."""
        chosen = pieces.window(self.index_topk)
        found = (
            Tensor("latent", 1, self.latent_dim, read=chosen, replicated=True),
            Tensor("position", 1, self.position_dim, read=chosen, replicated=True),
        )
        return (*found, Tensor("index", 1, self.index_dim, replicated=True)) if self.index_dim else found

    def shape(self) -> Text:
        """Latent, position part and indexer key."""
        dims = f"{self.latent_dim} + {self.position_dim}"
        if not self.index_dim:
            return Text(f"{dims}, another layer's choice", f"{dims}，沿用另一层的选择")
        return Text(f"{dims}, indexer key {self.index_dim}", f"{dims}，索引器 Key {self.index_dim}")


@dataclass(frozen=True)
class CompressedAttention(LayerKind):
    """DeepSeek-V4: a short window of raw entries, and one compressed entry for every `ratio` tokens.

    CSA ("c4a", ratio 4) has overlapping windows of 8 tokens and an indexer; HCA ("c128a", ratio 128) has neither and
    attends to all compressed entries. One vector of `dim` elements is both Key and Value. Only complete runs of `ratio`
    tokens have an entry: `kv_len // ratio`.

    Attributes:
        dim: elements of one entry.
        window: raw entries kept.
        ratio: tokens of one compressed entry.
        index_dim: elements of an indexer key, one for each compressed entry; 0 for none.
        index_topk: compressed entries that a query attends to; 0 for all.
        overlap: entries are made of two runs of tokens, so the last complete run is carried along.
        count_state: the compressor's own fp32 values and gates of tokens that have no entry yet are counted.
    """

    kind: ClassVar[str] = "compressed"
    title: ClassVar[Text] = Text("compressed (CSA, HCA)", "压缩（CSA、HCA）")

    dim: int
    window: int
    ratio: int
    index_dim: int = 0
    index_topk: int = 0
    overlap: bool = False
    count_state: bool = False

    def tensors(self) -> tuple[Tensor, ...]:
        """The window, the compressed entries, the indexer's keys and, if counted, the compressor's state."""
        entries = pieces.one_in(self.ratio)
        chosen: Terms | None = ((1, Rows(self.ratio, cap=self.index_topk)),) if self.index_topk else None
        found = [
            Tensor("kv", 1, self.dim, pieces.window(self.window), replicated=True),
            Tensor("kv", 1, self.dim, entries, chosen, replicated=True),
        ]
        if self.index_dim:
            found.append(Tensor("index", 1, self.index_dim, entries, replicated=True))
        if self.count_state:
            found += [self._state(dim) for dim in (self.dim, self.index_dim) if dim]
            if self.overlap:
                found += [self._carried(dim) for dim in (self.dim, self.index_dim) if dim]
        return tuple(found)

    def shape(self) -> Text:
        """Window, ratio and entry."""
        index, index_zh = (
            (f", indexer key {self.index_dim}", f"，索引器 Key {self.index_dim}") if self.index_dim else ("", "")
        )
        return Text(
            f"{self.dim} (K = V), the last {self.window:,} tokens and one entry for every {self.ratio}{index}",
            f"{self.dim}（K = V），最近 {self.window:,} 个 token，另每 {self.ratio} 个 token 一个条目{index_zh}",
        )

    def _state(self, dim: int) -> Tensor:
        """Value and gate of each token since the last entry; twice as wide where entries overlap."""
        width = 2 * dim * (2 if self.overlap else 1)
        return Tensor("compressor", 1, width, pieces.within(self.ratio), dtype="fp32", replicated=True)

    def _carried(self, dim: int) -> Tensor:
        """The half of the last complete run that the next entry will use."""
        rows: Terms = ((self.ratio, Rows(self.ratio, cap=1)),)
        return Tensor("compressor", 1, 2 * dim, rows, dtype="fp32", replicated=True)

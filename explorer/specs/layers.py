"""What one layer keeps of the past: a layer kind per class, each a frozen value that answers in exact bytes.

A kind lists its tensors; how many rows each has follows from the tokens seen (`pieces.py`), how many bytes a row takes
from the cache's format (`formats.py`). Latent and compressed kinds are in `latent.py`, recurrent ones in `states.py`.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from explorer.specs import pieces
from explorer.specs.formats import CacheFormat, cache_format
from explorer.specs.pieces import Piece, Terms
from explorer.specs.tensors import Tensor
from explorer.text import Text

Form = CacheFormat | int | str


@dataclass(frozen=True)
class LayerKind:
    """The questions that every layer kind answers, for one sequence. `form` is a format, its name or element bytes."""

    kind: ClassVar[str]
    title: ClassVar[Text]

    def tensors(self) -> tuple[Tensor, ...]:
        """What it keeps of its own."""
        return ()

    def shape(self) -> Text:
        """Its sizes in words, for a ledger."""
        return Text("", "")

    def pieces(self, form: Form, tp: int = 1) -> tuple[Piece, ...]:
        """The terms of its size, on one of `tp` tensor-parallel ranks."""
        chosen = cache_format(form)
        return tuple(piece for tensor in self.tensors() for piece in tensor.pieces(chosen, tp))

    def read_pieces(self, form: Form, tp: int = 1) -> tuple[Piece, ...]:
        """The terms of what one decoded token reads."""
        chosen = cache_format(form)
        return tuple(piece for tensor in self.tensors() for piece in tensor.read_pieces(chosen, tp))

    def bytes_at(self, kv_len: int, form: Form, tp: int = 1) -> int:
        """Bytes kept once `kv_len` tokens have been seen."""
        return pieces.total(self.pieces(form, tp), kv_len)

    def read_bytes_at(self, kv_len: int, form: Form, tp: int = 1) -> int:
        """Bytes read from the cache to decode one token that attends to `kv_len` tokens, itself included."""
        return pieces.total(self.read_pieces(form, tp), kv_len)

    def growing_bytes_per_token(self, form: Form, tp: int = 1) -> int | Fraction:
        """The slope: bytes that each further token adds at any length, however long the sequence already is."""
        return pieces.slope(self.pieces(form, tp))

    def constant_bytes(self, form: Form, tp: int = 1) -> int | Fraction:
        """Bytes that do not depend on the length, once the layer has filled whatever it fills."""
        return pieces.constant(self.pieces(form, tp))


@dataclass(frozen=True)
class FullAttention(LayerKind):
    """Attention over the whole past: one Key and one Value per token and KV head (MHA, GQA and MQA alike).

    Attributes:
        num_kv_heads: Key/Value heads; fewer than query heads is GQA, one is MQA.
        key_dim: elements of one Key.
        value_dim: elements of one Value; some models have it unlike `key_dim`. 0: one vector serves as both.
    """

    kind: ClassVar[str] = "full_attention"
    title: ClassVar[Text] = Text("full attention", "全注意力")

    num_kv_heads: int
    key_dim: int
    value_dim: int

    def tensors(self) -> tuple[Tensor, ...]:
        """Keys and Values of all tokens."""
        return _keys_and_values(self.num_kv_heads, self.key_dim, self.value_dim, pieces.EVERY_TOKEN)

    def shape(self) -> Text:
        """Heads and dimensions."""
        return _heads(self.num_kv_heads, self.key_dim, self.value_dim)


@dataclass(frozen=True)
class SlidingWindow(LayerKind):
    """Attention to the last `window` tokens, the current one included; older ones are dropped.

    Counted is the ideal window: `min(kv_len, window)` tokens. Implementations differ: transformers keeps one less
    between steps, a paged engine whole blocks and the chunk that it prefills.

    Attributes:
        num_kv_heads: Key/Value heads.
        key_dim: elements of one Key.
        value_dim: elements of one Value; 0: one vector serves as both.
        window: tokens.
    """

    kind: ClassVar[str] = "sliding_window"
    title: ClassVar[Text] = Text("sliding window", "滑动窗口")

    num_kv_heads: int
    key_dim: int
    value_dim: int
    window: int

    def tensors(self) -> tuple[Tensor, ...]:
        """Keys and Values of the window."""
        return _keys_and_values(self.num_kv_heads, self.key_dim, self.value_dim, pieces.window(self.window))

    def shape(self) -> Text:
        """Heads, dimensions and the window."""
        heads = _heads(self.num_kv_heads, self.key_dim, self.value_dim)
        return Text(f"{heads.en}, the last {self.window:,} tokens", f"{heads.zh}，最近 {self.window:,} 个 token")


@dataclass(frozen=True)
class ChunkedAttention(LayerKind):
    """Attention inside fixed chunks (Llama 4): token i sees the tokens of its own chunk up to itself.

    Kept: up to a whole chunk, `min(kv_len, chunk)` tokens, as caches of fixed size do; the tokens of a finished chunk
    are never read again. Read: `(kv_len - 1) mod chunk + 1` tokens.

    Attributes:
        num_kv_heads: Key/Value heads.
        key_dim: elements of one Key.
        value_dim: elements of one Value.
        chunk: tokens of a chunk.
    """

    kind: ClassVar[str] = "chunked_attention"
    title: ClassVar[Text] = Text("chunked attention", "分块注意力")

    num_kv_heads: int
    key_dim: int
    value_dim: int
    chunk: int

    def tensors(self) -> tuple[Tensor, ...]:
        """Keys and Values of one chunk."""
        read: Terms = ((1, pieces.ALL), (-self.chunk, pieces.Rows(self.chunk, skip=1)))
        kept = pieces.window(self.chunk)
        return _keys_and_values(self.num_kv_heads, self.key_dim, self.value_dim, kept, read)

    def shape(self) -> Text:
        """Heads, dimensions and the chunk."""
        heads = _heads(self.num_kv_heads, self.key_dim, self.value_dim)
        return Text(f"{heads.en}, chunks of {self.chunk:,} tokens", f"{heads.zh}，每块 {self.chunk:,} 个 token")


@dataclass(frozen=True)
class CrossAttention(LayerKind):
    """A decoder's look at the encoder: Keys and Values of the encoder's output, made once and kept.

    Attributes:
        num_kv_heads: Key/Value heads.
        key_dim: elements of one Key.
        value_dim: elements of one Value.
        encoder_tokens: length of the encoder's output.
    """

    kind: ClassVar[str] = "cross_attention"
    title: ClassVar[Text] = Text("cross-attention", "交叉注意力")

    num_kv_heads: int
    key_dim: int
    value_dim: int
    encoder_tokens: int

    def tensors(self) -> tuple[Tensor, ...]:
        """Keys and Values of the encoder's tokens."""
        return _keys_and_values(self.num_kv_heads, self.key_dim, self.value_dim, pieces.fixed(self.encoder_tokens))

    def shape(self) -> Text:
        """Heads, dimensions and the encoder's length."""
        heads = _heads(self.num_kv_heads, self.key_dim, self.value_dim)
        return Text(
            f"{heads.en}, {self.encoder_tokens:,} encoder tokens",
            f"{heads.zh}，编码器 {self.encoder_tokens:,} 个 token",
        )


@dataclass(frozen=True)
class SharedFromOwner(LayerKind):
    """A layer that attends with another layer's Keys and Values (CLA, Gemma 3n and 4): it keeps nothing of its own.

    Attributes:
        owner: index of the layer whose cache it reads.
        source: that layer's kind.
    """

    kind: ClassVar[str] = "shared"
    title: ClassVar[Text] = Text("shared with another layer", "与另一层共享")

    owner: int
    source: LayerKind

    def read_pieces(self, form: Form, tp: int = 1) -> tuple[Piece, ...]:
        """What it reads of its owner's cache."""
        return self.source.read_pieces(form, tp)

    def shape(self) -> Text:
        """Whose cache it reads."""
        return Text(f"reads the cache of layer {self.owner}", f"读取第 {self.owner} 层的缓存")


@dataclass(frozen=True)
class NoCache(LayerKind):
    """A layer without attention or state: an MLP or a mixture of experts alone."""

    kind: ClassVar[str] = "none"
    title: ClassVar[Text] = Text("no cache", "无缓存")


@dataclass(frozen=True)
class Combined(LayerKind):
    """A layer that keeps several things side by side: attention and a state, or a decoder's own and cross-attention.

    Attributes:
        parts: the kinds.
    """

    kind: ClassVar[str] = "combined"
    title: ClassVar[Text] = Text("several in one layer", "一层多种")

    parts: tuple[LayerKind, ...]

    def tensors(self) -> tuple[Tensor, ...]:
        """What all its parts keep."""
        return tuple(tensor for part in self.parts for tensor in part.tensors())

    def read_pieces(self, form: Form, tp: int = 1) -> tuple[Piece, ...]:
        """What all its parts read."""
        return tuple(piece for part in self.parts for piece in part.read_pieces(form, tp))

    def shape(self) -> Text:
        """What all its parts say."""
        shapes = [part.shape() for part in self.parts]
        return Text("; ".join(shape.en for shape in shapes), "；".join(shape.zh for shape in shapes))


def _heads(heads: int, key_dim: int, value_dim: int) -> Text:
    dims = f"({key_dim} + {value_dim})" if value_dim else f"{key_dim} (K = V)"
    return Text(f"{heads} KV {'head' if heads == 1 else 'heads'} x {dims}", f"{heads} 个 KV 头 × {dims}")


def _keys_and_values(
    heads: int, key_dim: int, value_dim: int, rows: Terms, read: Terms | None = None
) -> tuple[Tensor, ...]:
    if not value_dim:
        return (Tensor("kv", heads, key_dim, rows, read),)
    return Tensor("key", heads, key_dim, rows, read), Tensor("value", heads, value_dim, rows, read)

"""What one layer keeps of the past: a layer kind per class, each a frozen value that answers in exact bytes.

A kind answers four questions for one sequence. Every kind of cache, whether it grows, stops growing at a window or
never grows, fits them; a model's cache is the sum over its layers.
"""

from dataclasses import dataclass
from typing import ClassVar, Protocol

from explorer.text import Text


class LayerKind(Protocol):
    """The questions that every layer kind answers, for one sequence."""

    kind: ClassVar[str]
    title: ClassVar[Text]

    def bytes_at(self, kv_len: int, dtype_bytes: int) -> int:
        """Bytes kept once `kv_len` tokens have been seen."""
        ...

    def read_bytes_at(self, kv_len: int, dtype_bytes: int) -> int:
        """Bytes read from the cache to decode one token that attends to `kv_len` tokens, itself included."""
        ...

    def growing_bytes_per_token(self, dtype_bytes: int) -> int:
        """The slope: bytes that each further token adds at any length, however long the sequence already is."""
        ...

    def constant_bytes(self, dtype_bytes: int) -> int:
        """Bytes that do not depend on the length, once the layer has filled whatever it fills."""
        ...


@dataclass(frozen=True)
class FullAttention:
    """Attention over the whole past: one Key and one Value per token and KV head (MHA, GQA and MQA alike).

    Attributes:
        num_kv_heads: Key/Value heads; fewer than query heads is GQA, one is MQA.
        key_dim: elements of one Key.
        value_dim: elements of one Value; some models have it unlike `key_dim`.
    """

    kind: ClassVar[str] = "full_attention"
    title: ClassVar[Text] = Text("full attention", "全注意力")

    num_kv_heads: int
    key_dim: int
    value_dim: int

    def bytes_at(self, kv_len: int, dtype_bytes: int) -> int:
        """Keys and Values of all `kv_len` tokens."""
        return kv_len * self.growing_bytes_per_token(dtype_bytes)

    def read_bytes_at(self, kv_len: int, dtype_bytes: int) -> int:
        """All of it: a new Query looks at every Key and mixes every Value."""
        return self.bytes_at(kv_len, dtype_bytes)

    def growing_bytes_per_token(self, dtype_bytes: int) -> int:
        """`num_kv_heads * (key_dim + value_dim)` elements."""
        return self.num_kv_heads * (self.key_dim + self.value_dim) * dtype_bytes

    def constant_bytes(self, dtype_bytes: int) -> int:
        """Nothing: everything kept belongs to some token."""
        del dtype_bytes
        return 0

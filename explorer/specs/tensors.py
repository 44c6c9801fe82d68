"""One tensor of a layer's cache, and the pieces that it comes to in a format and on one rank."""

from dataclasses import dataclass

from explorer.errors import InputError
from explorer.specs.dtypes import DTYPES
from explorer.specs.formats import CacheFormat, Packing
from explorer.specs.pieces import EVERY_TOKEN, Piece, Rows, Terms

# Written in the cache's format; everything else keeps the model's own element format or the one it names.
PACKED = frozenset({"key", "value", "kv", "latent", "position", "index"})


@dataclass(frozen=True)
class Tensor:
    """What a layer keeps under one name.

    Attributes:
        role: "key", "value", "kv" (one vector that is both), "latent", "position" (a latent's RoPE part), "index"
            (indexer keys), "state", "conv", "compressor".
        heads: how many rows lie side by side.
        dim: elements of one row of one head.
        rows: how many there are.
        read: rows read to decode one token; None for all of them.
        dtype: a format of its own ("fp32"); None for the cache's (or the model's, if the role is not packed).
        replicated: every rank of a tensor-parallel group keeps all of it.
    """

    role: str
    heads: int
    dim: int
    rows: Terms = EVERY_TOKEN
    read: Terms | None = None
    dtype: str | None = None
    replicated: bool = False

    def pieces(self, form: CacheFormat, tp: int = 1) -> tuple[Piece, ...]:
        """The terms of its size on one of `tp` ranks."""
        return self._pieces(self.rows, form, tp)

    def read_pieces(self, form: CacheFormat, tp: int = 1) -> tuple[Piece, ...]:
        """The terms of what one decoded token reads."""
        return self._pieces(self.rows if self.read is None else self.read, form, tp)

    def format_name(self, form: CacheFormat) -> str:
        """The name of the format that it is written in."""
        return self.dtype or (form.name if self.role in PACKED else form.compute.name)

    def heads_on_rank(self, tp: int) -> int:
        """Heads that one of `tp` ranks keeps: its share, or a copy where there are fewer heads than ranks.

        Raises:
            InputError: they cannot be shared evenly.
        """
        if self.replicated:
            return self.heads
        if self.heads % tp and tp % self.heads:
            raise InputError(
                f"tp={tp}: {self.heads} heads of a cache cannot be shared evenly; expected a divisor or a multiple of "
                f"{self.heads}",
                f"tp={tp}：缓存的 {self.heads} 个头无法均分；应为 {self.heads} 的约数或倍数",
            )
        return max(1, self.heads // tp)

    def _pieces(self, terms: Terms, form: CacheFormat, tp: int) -> tuple[Piece, ...]:
        heads = self.heads_on_rank(tp)
        if self.role in PACKED and self.dtype is None:
            packing = form.of(self.role)
            if form.residual_length:
                return self._with_residual(terms, form, heads)
        else:
            packing = Packing(8 * DTYPES[self.dtype].element_bytes) if self.dtype else form.plain
        return tuple(Piece(self.role, weight * heads * packing.row_bytes(self.dim), rows) for weight, rows in terms)

    def _with_residual(self, terms: Terms, form: CacheFormat, heads: int) -> tuple[Piece, ...]:
        """KIVI (arXiv:2402.02750): Values older than the last R tokens are packed, Keys in runs of R tokens."""
        size, found = form.residual_length, []
        full = heads * form.plain.row_bytes(self.dim)
        for weight, rows in terms:
            if rows.every != 1:
                found.append(Piece(self.role, weight * full, rows))
            elif self.role == "value":
                packed = heads * form.packing.row_bytes(self.dim)
                cap = None if rows.cap is None else max(rows.cap - size, 0)
                recent = size if rows.cap is None else min(size, rows.cap)
                found.append(Piece(self.role, weight * full, Rows(1, rows.skip, recent)))
                found.append(Piece(self.role, weight * packed, Rows(1, rows.skip + size, cap)))
            else:  # per channel: groups run along the tokens, so a run of R tokens is dim rows of R elements
                run = heads * self.dim * form.packing.row_bytes(size)
                cap = None if rows.cap is None else rows.cap // size
                found.append(Piece(self.role, weight * full, rows))
                found.append(Piece(self.role, weight * (run - size * full), Rows(size, rows.skip, cap)))
        return tuple(found)

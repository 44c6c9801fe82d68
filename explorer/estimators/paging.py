"""What fixed-size blocks cost: slots that stay empty at the end of each request, and entries of its block table.

    token   0 ... 15 | 16 ... 31 | 32 33 . . .      34 tokens, block_size 16: 3 blocks, 14 slots empty

Small blocks leave little empty and need long tables, large blocks the reverse. Token j lies in logical block
floor(j / block_size) at offset j mod block_size; where that block lies in memory, only the block table says.
Source: Kwon et al. 2023 (vLLM), arXiv:2309.06180, sections 4.1, 4.2 and 7.2.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from explorer.errors import InputError
from explorer.specs.limits import short, whole

MAX_BLOCK_SIZE = 1024
MAX_REQUESTS = 4096
ENTRY_BYTES = 4  # vLLM, FlashInfer and FlashAttention keep block tables as int32


@dataclass(frozen=True)
class Paging:
    """Requests in blocks of one size.

    Attributes:
        lengths: tokens of each request.
        block_size: tokens of a block.
    """

    lengths: tuple[int, ...]
    block_size: int

    @property
    def tokens(self) -> int:
        """All tokens."""
        return sum(self.lengths)

    @property
    def blocks(self) -> int:
        """Blocks handed out, which is also the number of table entries."""
        return sum(-(-tokens // self.block_size) for tokens in self.lengths)

    @property
    def slots(self) -> int:
        """Slots of these blocks."""
        return self.blocks * self.block_size

    @property
    def unfilled(self) -> int:
        """Slots without a token: the ends of last blocks."""
        return self.slots - self.tokens

    @property
    def unfilled_each(self) -> Fraction:
        """Slots without a token, per request."""
        return Fraction(self.unfilled, len(self.lengths))

    @property
    def unfilled_share(self) -> Fraction:
        """The part of all handed-out slots in which no token lies."""
        return Fraction(self.unfilled, self.slots)

    @property
    def table_bytes(self) -> int:
        """Size of all block tables, without padding to the longest."""
        return self.blocks * ENTRY_BYTES


def paging(lengths: Sequence[object], block_size: object) -> Paging:
    """Lay requests out in blocks.

    Args:
        lengths: tokens of each request, 1 to 4,096 of them.
        block_size: tokens of a block, 1 to 1,024.

    Raises:
        InputError: a value is out of range.
    """
    if not 1 <= len(lengths) <= MAX_REQUESTS:
        raise InputError(
            f"{len(lengths):,} lengths: expected 1 to {MAX_REQUESTS:,} requests",
            f"{len(lengths):,} 个长度：应有 1 到 {MAX_REQUESTS:,} 个请求",
        )
    return Paging(tuple(whole("tokens", tokens) for tokens in lengths), checked_block_size(block_size))


def checked_block_size(block_size: object) -> int:
    """`block_size` as a whole number of tokens.

    Raises:
        InputError: it is none, or out of range.
    """
    usable = isinstance(block_size, int) and not isinstance(block_size, bool)
    if usable and 1 <= block_size <= MAX_BLOCK_SIZE:  # type: ignore[operator]
        return int(block_size)  # type: ignore[call-overload, no-any-return]
    raise InputError(
        f"block_size={short(block_size)}: expected 1 to {MAX_BLOCK_SIZE:,} tokens",
        f"block_size={short(block_size)}：应为 1 到 {MAX_BLOCK_SIZE:,} 个 token",
    )


def expected_unfilled(block_size: int) -> Fraction:
    """Empty slots of a request whose length modulo `block_size` is equally likely to be anything: (B - 1) / 2."""
    return Fraction(checked_block_size(block_size) - 1, 2)


def place(token: int, block_size: int) -> tuple[int, int]:
    """(logical block, offset in it) of a token, both counted from 0.

    Args:
        token: its position, counted from 0.
        block_size: tokens of a block.

    Raises:
        InputError: a value is out of range.
    """
    if isinstance(token, bool) or not isinstance(token, int) or token < 0:
        raise InputError(f"token={short(token)}: expected 0 or more", f"token={short(token)}：应不小于 0")
    return divmod(token, checked_block_size(block_size))

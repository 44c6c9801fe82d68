"""Roofline: how much arithmetic a step does for each byte that it moves, and what that allows a device to reach.

A device does at most `peak` operations a second and moves at most `bandwidth` bytes a second. An operation that does
`intensity` operations for each byte can reach `min(peak, intensity * bandwidth)`; the two meet at the ridge.
Every byte is counted once, as if it were read from memory once: a lower bound of time, never a prediction.
Source: Williams, Waterman, Patterson 2009, "Roofline"; multiplication and addition count as two operations.
"""

from dataclasses import dataclass
from fractions import Fraction

from explorer.errors import InputError

ACTIVATION_BYTES = 2  # Queries, activations and outputs stay in bf16, whatever the weights or the cache are stored in.


@dataclass(frozen=True)
class Work:
    """What one operation does.

    Attributes:
        flops: floating-point operations; a multiply-add is two.
        num_bytes: bytes moved to or from memory.
    """

    flops: int
    num_bytes: int

    @property
    def intensity(self) -> Fraction:
        """Operations for each byte."""
        return Fraction(self.flops, self.num_bytes)

    def bound_s(self, peak_flops: int, bandwidth_bytes_per_s: int) -> float:
        """Seconds that it takes at least: the longer one of all its arithmetic and all its traffic."""
        return max(self.flops / peak_flops, self.num_bytes / bandwidth_bytes_per_s)

    def compute_bound(self, peak_flops: int, bandwidth_bytes_per_s: int) -> bool:
        """Whether arithmetic sets the bound; on the ridge itself both do."""
        return self.intensity >= ridge(peak_flops, bandwidth_bytes_per_s)


def gemm(rows: int, inner: int, columns: int, weight_bytes: int = 2, activation_bytes: int = ACTIVATION_BYTES) -> Work:
    """A projection `Y = X W`, X [rows, inner], W [inner, columns].

    Args:
        rows: tokens that pass at once: batch times prompt length in prefill, batch in decode.
        inner: width of what comes in.
        columns: width of what goes out.
        weight_bytes: bytes of one weight.
        activation_bytes: bytes of one number of X and Y.
    """
    _positive(rows=rows, inner=inner, columns=columns, weight_bytes=weight_bytes, activation_bytes=activation_bytes)
    moved = inner * columns * weight_bytes + rows * (inner + columns) * activation_bytes
    return Work(2 * rows * inner * columns, moved)


def grouped_attention(
    num_heads: int, num_kv_heads: int, head_dim: int, kv_len: int, batch: int = 1, element_bytes: int = 2
) -> Work:
    """Decode attention of one layer, one Query per sequence and head: MHA, GQA and MQA alike.

    Scores and the weighted sum are `2 * head_dim` operations each for every Query head and cached token; softmax, a few
    operations per score, is left out. Moved are all Keys and Values once, the Queries and the output.

    Args:
        num_heads: Query heads, a multiple of `num_kv_heads`.
        num_kv_heads: Key/Value heads.
        head_dim: elements of a Key, equal to those of a Value.
        kv_len: cached tokens of each sequence.
        batch: sequences, each with a cache of its own.
        element_bytes: bytes of one cached number.

    Raises:
        InputError: a number is not positive, or the heads do not divide.
    """
    _positive(num_heads=num_heads, num_kv_heads=num_kv_heads, head_dim=head_dim, kv_len=kv_len, batch=batch)
    _positive(element_bytes=element_bytes)
    if num_heads % num_kv_heads:
        raise InputError(
            f"num_heads={num_heads}: expected a multiple of num_kv_heads={num_kv_heads}",
            f"num_heads={num_heads}：应为 num_kv_heads={num_kv_heads} 的整数倍",
        )
    cache = 2 * num_kv_heads * head_dim * kv_len * element_bytes
    own = 2 * num_heads * head_dim * ACTIVATION_BYTES
    return Work(batch * 4 * num_heads * head_dim * kv_len, batch * (cache + own))


def latent_attention(
    num_heads: int, latent_dim: int, position_dim: int, kv_len: int, batch: int = 1, element_bytes: int = 2
) -> Work:
    """Decode attention of one MLA layer with absorbed matrices: every head scores and sums the latents themselves.

    A score takes `latent_dim + position_dim` multiply-adds, the sum `latent_dim`. The projections around it (Query to
    latent width and back) are products with weights and not part of it.

    Args:
        num_heads: Query heads.
        latent_dim: elements of the latent.
        position_dim: elements of the Key part that carries the position.
        kv_len: cached tokens of each sequence.
        batch: sequences.
        element_bytes: bytes of one cached number.

    Raises:
        InputError: a number is not positive.
    """
    _positive(num_heads=num_heads, latent_dim=latent_dim, kv_len=kv_len, batch=batch, element_bytes=element_bytes)
    if position_dim < 0:
        raise InputError(f"position_dim={position_dim}: expected 0 or more", f"position_dim={position_dim}：不应为负")
    scored = latent_dim + position_dim
    flops = 2 * num_heads * kv_len * (scored + latent_dim)
    own = num_heads * (scored + latent_dim) * ACTIVATION_BYTES
    return Work(batch * flops, batch * (kv_len * scored * element_bytes + own))


def ridge(peak_flops: int, bandwidth_bytes_per_s: int) -> Fraction:
    """The intensity at which a device's arithmetic and its memory take equally long, FLOP/byte."""
    _positive(peak_flops=peak_flops, bandwidth_bytes_per_s=bandwidth_bytes_per_s)
    return Fraction(peak_flops, bandwidth_bytes_per_s)


def score_multiplications(key_dim: int, latent_dim: int, kv_len: int) -> tuple[int, int]:
    """Multiplications of one MLA head for the content scores of one Query, both ways.

    Returns:
        First with every latent expanded to a Key (`kv_len` products with the up-projection, then dot products of
        `key_dim`); second with the up-projection absorbed (one product, then dot products of `latent_dim`).
    """
    _positive(key_dim=key_dim, latent_dim=latent_dim, kv_len=kv_len)
    up = key_dim * latent_dim
    return kv_len * (up + key_dim), up + kv_len * latent_dim


def _positive(**numbers: int) -> None:
    for name, number in numbers.items():
        if number < 1:
            raise InputError(f"{name}={number}: expected 1 or more", f"{name}={number}：应为不小于 1 的数")

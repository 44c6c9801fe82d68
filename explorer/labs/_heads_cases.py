"""One decode step of one layer's attention, by the number of KV heads, on caches that have to come from memory."""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor

from explorer.estimators import roofline
from explorer.estimators.roofline import Work
from kernels.grouped_attention import decode_attention, decode_attention_reference
from kernels.mla_decode import mla_decode, mla_decode_reference
from kernels.paged_attention import paged_attention

LATENT_DIM, ROPE_DIM, NOPE_DIM = 512, 64, 128  # of DeepSeek-V2 and V3
BLOCK_SIZE = 64
_NOISE = 4_194_301  # prime: two KV heads never get the same numbers, whatever their size


@dataclass(frozen=True)
class Step:
    """The sizes that all rows share.

    Attributes:
        batch: sequences.
        kv_len: tokens of each, a multiple of `BLOCK_SIZE`.
        num_heads: Query heads.
        head_dim: elements of a Key and of a Value.
        dtype: of Queries and cache.
        device: where.
    """

    batch: int
    kv_len: int
    num_heads: int
    head_dim: int
    dtype: torch.dtype
    device: torch.device

    def kv_bytes(self, num_kv_heads: int) -> int:
        """Bytes of the Keys and Values, by formula."""
        return 2 * self.batch * num_kv_heads * self.kv_len * self.head_dim * self.dtype.itemsize

    def latent_bytes(self) -> int:
        """Bytes of the latents with their position part, by formula."""
        return self.batch * self.kv_len * (LATENT_DIM + ROPE_DIM) * self.dtype.itemsize

    def random(self, *shape: int) -> Tensor:
        """Queries: normal, the same in every run."""
        noise = torch.randn(shape, generator=torch.Generator().manual_seed(prod(shape)))
        return noise.to(self.device, self.dtype)


@dataclass(frozen=True)
class Case:
    """One row.

    Attributes:
        stored_bytes: what the context takes, read off the tensors.
        work: arithmetic of the step, and bytes that it moves.
        attend: the step, on the part of the pool that was read longest ago.
        difference: the largest difference from a float32 reference, for the last sequence.
    """

    stored_bytes: int
    work: Work
    attend: Callable[[], Tensor]
    difference: Callable[[], float]


class Pool:
    """Random numbers in one long piece. Caches are cut from it in turn, so each is the part read longest ago.

    Args:
        num_bytes: its size, at least twice the largest cache.
        step: dtype and device.
        check: called while it is filled.
    """

    def __init__(self, num_bytes: int, step: Step, check: Callable[[], None]):
        self.all = torch.empty(num_bytes // step.dtype.itemsize, dtype=step.dtype, device=step.device)
        noise = torch.randn(min(_NOISE, len(self.all)), generator=torch.Generator().manual_seed(1))
        noise = noise.to(step.device, step.dtype)
        for start in range(0, len(self.all), len(noise)):
            check()
            self.all[start : start + len(noise)] = noise[: len(self.all) - start]
        self._next = 0

    def take(self, *shape: int) -> Tensor:
        """The next part, contiguous."""
        size = prod(shape)
        start = self._next if self._next + size <= len(self.all) else 0
        self._next = start + size
        return self.all[start : start + size].view(shape)


def shared_heads(step: Step, num_kv_heads: int, pool: Pool, paged: bool) -> Case:
    """MHA, GQA and MQA: every `num_heads / num_kv_heads` Query heads share a Key and a Value.

    Args:
        step: the sizes.
        num_kv_heads: Key/Value heads.
        pool: where the caches lie.
        paged: Keys and Values in blocks, read by the paged kernel; else in one piece for each head.
    """
    q, scale = step.random(step.batch, step.num_heads, step.head_dim), step.head_dim**-0.5
    blocks = step.kv_len // BLOCK_SIZE
    table, kv_lens = _table(step), torch.full((step.batch,), step.kv_len, dtype=torch.int32, device=step.device)
    whole = (step.batch, num_kv_heads, step.kv_len, step.head_dim)
    shape = (step.batch * blocks, num_kv_heads, BLOCK_SIZE, step.head_dim) if paged else whole

    def on(keys: Tensor, values: Tensor) -> Tensor:
        if not paged:
            return decode_attention(q, keys, values, None, scale)
        return paged_attention(q, keys, values, table, kv_lens, scale=scale, max_q_len=1, max_kv_len=step.kv_len).out

    def difference() -> float:
        keys, values = pool.take(*shape), pool.take(*shape)
        out = on(keys, values)[-1:].float().cpu()
        if paged:
            keys, values = (x[table[-1].long()].transpose(0, 1).reshape(1, *whole[1:]) for x in (keys, values))
        query, keys, values = (x[-1:].cpu() for x in (q, keys, values))
        wanted = decode_attention_reference(query, keys, values, kv_lens[-1:].cpu(), scale)
        return (out - wanted).abs().max().item()

    stored = pool.take(*shape).nbytes + pool.take(*shape).nbytes
    flops = roofline.grouped_attention(step.num_heads, num_kv_heads, step.head_dim, step.kv_len, step.batch).flops
    work = Work(flops, stored + 2 * q.nbytes)
    return Case(stored, work, lambda: on(pool.take(*shape), pool.take(*shape)), difference)


def latent(step: Step, pool: Pool) -> Case:
    """MLA with absorbed projections: every head attends to the latents themselves."""
    queries = step.random(step.batch, step.num_heads, LATENT_DIM), step.random(step.batch, step.num_heads, ROPE_DIM)
    table, kv_lens = _table(step), torch.full((step.batch,), step.kv_len, dtype=torch.int32, device=step.device)
    shape = (step.batch * (step.kv_len // BLOCK_SIZE), BLOCK_SIZE, LATENT_DIM + ROPE_DIM)
    scale = (NOPE_DIM + ROPE_DIM) ** -0.5

    def on(cache: Tensor) -> Tensor:
        out = mla_decode(*queries, cache, table, kv_lens, scale=scale)
        assert isinstance(out, Tensor)
        return out

    def difference() -> float:
        cache = pool.take(*shape)
        content, rope = (x[-1:].cpu() for x in queries)
        wanted, _ = mla_decode_reference(content, rope, cache.cpu(), table[-1:].cpu(), kv_lens[-1:].cpu(), scale)
        return (on(cache)[-1:].float().cpu() - wanted).abs().max().item()

    stored = pool.take(*shape).nbytes
    flops = roofline.latent_attention(step.num_heads, LATENT_DIM, ROPE_DIM, step.kv_len, step.batch).flops
    moved = stored + sum(q.nbytes for q in queries) + queries[0].nbytes
    return Case(stored, Work(flops, moved), lambda: on(pool.take(*shape)), difference)


def _table(step: Step) -> Tensor:
    """A block table, every block of every sequence anywhere in the pool, [batch, blocks]."""
    blocks = step.batch * (step.kv_len // BLOCK_SIZE)
    order = torch.randperm(blocks, generator=torch.Generator().manual_seed(2))
    return order.to(step.device, torch.int32).view(step.batch, -1)

"""Random work for the kernels, drawn from a number: shapes, element types, blocks, windows, sinks, caps and mixes.

The same number always draws the same work. `python -m tests.kernels.fuzz FIRST COUNT` tries many numbers, on the CPU
path or, with TRITON_INTERPRET=1, in Triton's interpreter.
"""

import random
import sys

import torch

from kernels.attention_sums import attention_sums, attention_sums_reference
from kernels.flash_attention import flash_attention, flash_attention_reference
from kernels.kv_write import kv_write, kv_write_reference
from kernels.mla_decode import mla_decode, mla_decode_reference
from kernels.paged_attention import paged_attention, paged_attention_reference
from tests.kernels.closeness import assert_close

DTYPES = [torch.float32, torch.float16, torch.bfloat16]
HEAD_DIMS = [1, 8, 20, 64, 64, 80, 96, 128, 256]
BLOCK_SIZES = [1, 3, 8, 16, 16, 17, 24, 32, 100, 256]


class Draw:
    """Everything that one number decides."""

    def __init__(self, seed):
        self.dice, self.torch = random.Random(seed), torch.Generator().manual_seed(seed)
        self.dtype = self.dice.choice(DTYPES)

    def heads(self):
        num_kv_heads = self.dice.choice([1, 1, 2, 3, 5])
        return num_kv_heads * self.dice.choice([1, 2, 3, 4, 7, 16, 20]), num_kv_heads, self.dice.choice(HEAD_DIMS)

    def lengths(self):
        """(new tokens, tokens in all) of each sequence: decode, chunks, drafts, whole prompts, now and then nothing."""
        found = []
        for _ in range(self.dice.choice([1, 1, 2, 3, 6])):
            kv_len = self.dice.choice([1, 2, 15, 16, 17, 63, 64, 65, self.dice.randint(1, 150)])
            q_len = self.dice.choice([0, 1, 1, 1, self.dice.randint(1, min(kv_len, 5)), self.dice.randint(1, kv_len)])
            found.append((q_len, kv_len))
        return found

    def window(self):
        return self.dice.choice([None, None, 1, 2, 7, 33, 64, 1000, 1 << 40])

    def scale(self, head_dim):
        """Not far from the usual one: in bf16 a score of 15 is rounded to a sixteenth, and the CPU path has such."""
        return self.dice.choice([None, 0.6 * head_dim**-0.5])

    def randn(self, *size, factor=1.0):
        return (torch.randn(size, generator=self.torch) * factor).to(self.dtype)

    def pool(self, lens, block_size, *row):
        """A pool of NaN, and a block table whose entries past a sequence's end are nonsense."""
        counts = [-(-n // block_size) for n in lens]
        spare = self.dice.choice([0, 1, 7, 40])
        # Neighbours, neighbours with gaps, or anywhere.
        ids = list(range(sum(counts) + spare))
        if self.dice.random() < 0.7:
            self.dice.shuffle(ids)
        pool = torch.full((len(ids), *row), float("nan"), dtype=self.dtype)
        table = torch.full((len(lens), max(counts) + self.dice.randint(0, 2)), 1 << 30, dtype=torch.int32)
        for seq, count in enumerate(counts):
            table[seq, :count] = torch.tensor(ids[:count])
            ids = ids[count:]
        return pool, table

    def places(self, table, lens, block_size):
        """(block, offset) of every token of every sequence."""
        return [
            (int(table[seq, t // block_size]), t % block_size) for seq, kv_len in enumerate(lens) for t in range(kv_len)
        ]


def near(actual, expected, draw, what):
    assert_close(actual, expected, draw.dtype, what, at_least=0.3)


def ints(values):
    return torch.tensor(values, dtype=torch.int32)


def paged(draw, run):
    (num_heads, num_kv_heads, head_dim), block_size = draw.heads(), draw.dice.choice(BLOCK_SIZES)
    q_lens, kv_lens = zip(*draw.lengths(), strict=True)
    keys, table = draw.pool(kv_lens, block_size, num_kv_heads, block_size, head_dim)
    values = keys.clone()
    for pool in (keys, values):
        for block, offset in draw.places(table, kv_lens, block_size):
            pool[block, :, offset] = draw.randn(num_kv_heads, head_dim)
    if draw.dice.random() < 0.15 and len(kv_lens) > 1:  # a prefix in common
        shared = min(kv_lens[0], kv_lens[1]) // block_size
        table[1, :shared] = table[0, :shared]
    q = draw.randn(sum(q_lens), num_heads + draw.dice.randint(0, 2), head_dim)[:, :num_heads]
    options = {
        "scale": draw.scale(head_dim),
        "window": draw.window(),
        "softcap": draw.dice.choice([None, None, 0.5, 30.0]),
        "sinks": draw.dice.choice([None, None, draw.randn(num_heads, factor=3.0)]),
    }
    starts = ints([0, *torch.tensor(q_lens).cumsum(0).tolist()])
    args = q, keys, values, table, ints(kv_lens)
    expected = paged_attention_reference(*args, starts, **options | {"scale": options["scale"] or head_dim**-0.5})
    hints = {"max_q_len": max(*q_lens, 1), "max_kv_len": max(kv_lens)} if draw.dice.random() < 0.5 else {}
    splits = draw.dice.choice([None, 1, 2, 3, 9])
    decode = {} if set(q_lens) == {1} and not hints and draw.dice.random() < 0.5 else {"q_starts": starts}
    found = run(paged_attention, *args, num_splits=splits, return_lse=True, **decode, **options, **hints)
    near(found.out, expected.out, draw, "output")
    near(found.lse, expected.lse, draw, "LSE")
    plain = run(paged_attention, *args, num_splits=splits, **decode, **options, **hints)
    near(plain.out, expected.out, draw, "output without LSE")


def packed(draw, run):
    num_heads, num_kv_heads, head_dim = draw.heads()
    q_lens, kv_lens = zip(*draw.lengths(), strict=True)
    starts, starts_k = (torch.tensor([0, *each]).cumsum(0).int() for each in (q_lens, kv_lens))
    q = draw.randn(sum(q_lens), num_heads, head_dim)
    wide = torch.full((sum(kv_lens) + 9, 2 * num_kv_heads + 1, head_dim), float("nan"), dtype=draw.dtype)
    inner = wide[: sum(kv_lens), : 2 * num_kv_heads]
    inner.copy_(draw.randn(*inner.shape))
    k, v = inner.split(num_kv_heads, 1)
    how = {"cu_seqlens_k": starts_k, "sliding_window": draw.window(), "scale": draw.scale(head_dim)}
    out, lse = flash_attention_reference(q, k, v, starts, **how)
    found, its_lse = run(flash_attention, q, k, v, starts, return_lse=True, **how)
    near(found, out, draw, "output")
    near(its_lse, lse, draw, "LSE")
    near(run(flash_attention, q, k, v, starts, **how), out, draw, "output without LSE")
    expected = attention_sums_reference(q, k, lse, starts, **how)
    near(run(attention_sums, q, k, lse, starts, **how), expected, draw, "sums")


def latent(draw, run):
    num_heads, block_size = draw.dice.choice([1, 3, 16, 17, 40]), draw.dice.choice(BLOCK_SIZES)
    latent_dim, rope_dim = draw.dice.choice([(8, 4), (48, 16), (100, 20), (512, 64)])
    kv_lens = [kv_len for _, kv_len in draw.lengths()]
    cache, table = draw.pool(kv_lens, block_size, block_size, latent_dim + rope_dim)
    for block, offset in draw.places(table, kv_lens, block_size):
        cache[block, offset] = draw.randn(latent_dim + rope_dim)
    queries = (draw.randn(len(kv_lens), num_heads, dim) for dim in (latent_dim, rope_dim))
    kind = draw.dice.choice([torch.int32, torch.int64])
    args = *queries, cache, table.to(kind), torch.tensor(kv_lens, dtype=kind)
    out, lse = mla_decode_reference(*args, 0.1)
    splits = draw.dice.choice([None, 1, 2, 3, 9])
    found, its_lse = run(mla_decode, *args, scale=0.1, num_splits=splits, return_lse=True)
    near(found, out, draw, "output")
    near(its_lse, lse, draw, "LSE")


def writes(draw, run):
    (_, num_kv_heads, head_dim), block_size = draw.heads(), draw.dice.choice(BLOCK_SIZES)
    tokens, num_blocks = draw.dice.randint(0, 40), 40 // block_size + 2
    wide = draw.randn(tokens, 2 * num_kv_heads + 1, head_dim)
    slots = torch.randperm(num_blocks * block_size, generator=draw.torch)[:tokens]
    slots[torch.rand(tokens, generator=draw.torch) < 0.2] = -1
    shape = num_blocks, num_kv_heads, block_size, head_dim
    pools = [torch.full(shape, 7.0, dtype=draw.dtype) for _ in range(4)]
    new = wide[:, :num_kv_heads], wide[:, num_kv_heads : 2 * num_kv_heads]
    slots = slots.to(draw.dice.choice([torch.int32, torch.int64]))
    kv_write_reference(*new, *pools[:2], slots)
    written = run(kv_write, *new, *pools[2:], slots, changed=(2, 3))
    assert all(torch.equal(a, b) for a, b in zip(pools[:2], written, strict=True)), "a slot differs"


KINDS = paged, paged, packed, latent, writes


def attempt(seed, run):
    """Draw work number `seed` and compare what `run` makes of it with the reference.

    Args:
        seed: any whole number.
        run: calls a launcher; with `changed`, it gives these arguments as the call left them.
    """
    draw = Draw(seed)
    kind = KINDS[seed % len(KINDS)]
    try:
        kind(draw, run)
    except Exception as fault:
        raise AssertionError(f"{kind.__name__}, number {seed}: {type(fault).__name__}: {fault}") from fault


def here(fn, *args, changed=(), **kwargs):
    """Calls a launcher in this process."""
    result = fn(*args, **kwargs)
    return [args[i] for i in changed] if changed else result


if __name__ == "__main__":
    first, count = map(int, sys.argv[1:])
    wrong = 0
    for number in range(first, first + count):
        try:
            attempt(number, here)
        except AssertionError as fault:
            wrong += 1
            sys.stdout.write(f"{fault}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{count} numbers from {first}: {wrong} wrong\n")

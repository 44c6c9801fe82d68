"""The latent case of `kernel-speed`: one decode step over DeepSeek's compressed cache.

All heads read the same row of 512 + 64 numbers, so there is much more arithmetic for each byte than with separate
heads: with 128 heads about as much as a GPU of 2022 can do while it reads.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from explorer.estimators.roofline import Work, latent_attention
from explorer.labs import kernel_speed_rivals as rivals
from explorer.labs.kernel_speed_attention import SDPA
from explorer.labs.kernel_speed_case import OURS, Case, Kind, Shape, layers_for, scattered, spread_out
from explorer.labs.kernel_speed_rivals import FLASH_ATTN, FLASHINFER
from kernels.mla_decode import mla_decode

NUM_HEADS, LATENT_DIM, ROPE_DIM, NOPE_DIM = 128, 512, 64, 128  # DeepSeek-V3
SCALE = (NOPE_DIM + ROPE_DIM) ** -0.5


def mla_decode_case(shape: Shape, device: torch.device) -> Case:
    """One new token for each sequence; the shape's own heads play no part."""
    generator = torch.Generator(device).manual_seed(shape.kv_len + shape.batch)

    def randn(*size: int) -> Tensor:
        return torch.randn(size, generator=generator, dtype=shape.dtype, device=device)

    # On a CPU the arithmetic takes longer than any reading.
    layers = layers_for(cache_bytes(shape)) if device.type == "cuda" else 1
    table = scattered(shape, device, generator)
    kv_lens = torch.full((shape.batch,), shape.kv_len, dtype=torch.int32, device=device)
    rows = randn(shape.batch, shape.kv_len, LATENT_DIM + ROPE_DIM)
    cache = torch.empty(shape.batch * shape.blocks, shape.block_size, LATENT_DIM + ROPE_DIM, dtype=shape.dtype,
                        device=device)  # fmt: skip
    cache[table.flatten().long()] = rows.view(-1, shape.block_size, LATENT_DIM + ROPE_DIM)
    rows, caches = spread_out(rows[:, None], layers), spread_out(cache, layers)
    q_latent, q_rope = randn(shape.batch, NUM_HEADS, LATENT_DIM), randn(shape.batch, NUM_HEADS, ROPE_DIM)
    query = torch.cat((q_latent, q_rope), 2)[:, None]  # the heads as if they were positions of one head

    def ours(layer: int) -> Tensor:
        out = mla_decode(q_latent, q_rope, caches[layer], table, kv_lens, scale=SCALE)
        assert isinstance(out, Tensor), "the log-sum-exp was not asked for"
        return out

    def sdpa(layer: int) -> Tensor:
        return F.scaled_dot_product_attention(query, rows[layer], rows[layer, ..., :LATENT_DIM], scale=SCALE)[:, 0]

    case = Case(work(shape), layers, {OURS: ours, SDPA: sdpa})
    case.absent[FLASH_ATTN] = "has no attention over latents"
    library, fact = rivals.find(FLASHINFER, device)
    if library is None:
        case.absent[FLASHINFER] = fact
    else:
        case.add({f"{FLASHINFER} {fact}": lambda: rivals.flashinfer_mla(
            library, q_latent, q_rope, caches, table, kv_lens, SCALE)})  # fmt: skip
    return case


def work(shape: Shape) -> Work:
    """Every row once, the Queries and the output."""
    return latent_attention(NUM_HEADS, LATENT_DIM, ROPE_DIM, shape.kv_len, shape.batch, shape.dtype.itemsize)


def cache_bytes(shape: Shape) -> int:
    """One layer's rows."""
    return shape.batch * shape.kv_len * (LATENT_DIM + ROPE_DIM) * shape.dtype.itemsize


def _need_bytes(shape: Shape) -> int:
    return (2 * layers_for(cache_bytes(shape)) + 2) * cache_bytes(shape)


MLA_DECODE = Kind("mla_decode", True, _need_bytes, lambda shape: work(shape).flops, mla_decode_case)

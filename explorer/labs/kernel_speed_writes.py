"""The cases of `kernel-speed` that only move bytes: new tokens into their blocks, and blocks into other blocks."""

import torch
from torch import Tensor

from explorer.estimators.roofline import Work
from explorer.labs import kernel_speed_rivals as rivals
from explorer.labs.kernel_speed_case import OURS, Call, Case, Kind, Shape, layers_for, scattered, spread_out
from explorer.labs.kernel_speed_rivals import FLASH_ATTN, FLASHINFER
from kernels.block_copy import block_copy
from kernels.kv_write import kv_write

INDEXING = "torch indexing"
LAYERS = 32  # whose blocks are copied by one call, as in Llama 3.1 8B
SLOT_BYTES = 8  # a slot is an int64


def kv_write_case(shape: Shape, device: torch.device) -> Case:
    """All tokens of all sequences are written, as after a prefill."""
    generator = torch.Generator(device).manual_seed(shape.kv_len)
    layers, table = layers_for(2 * shape.cache_bytes), scattered(shape, device, generator)
    size = (shape.batch * shape.kv_len, shape.num_kv_heads, shape.head_dim)
    k, v = (torch.randn(size, generator=generator, dtype=shape.dtype, device=device) for _ in range(2))
    pools = [spread_out(_empty_pool(shape, device), layers) for _ in range(2)]
    offsets = torch.arange(shape.block_size, device=device)
    slots = (table.long()[..., None] * shape.block_size + offsets).flatten()
    blocks, places = slots // shape.block_size, slots % shape.block_size

    def ours(layer: int) -> None:
        kv_write(k, v, pools[0][layer], pools[1][layer], slots)

    def indexing(layer: int) -> None:
        pools[0][layer][blocks, :, places] = k
        pools[1][layer][blocks, :, places] = v

    def result(call: Call) -> list[Tensor]:
        return _after(call, [pool[0] for pool in pools])

    case = Case(write_work(shape), layers, {OURS: ours, INDEXING: indexing}, result=result)
    case.absent[FLASH_ATTN] = "writes only while it attends"
    library, fact = rivals.find(FLASHINFER, device)
    if library is None:
        case.absent[FLASHINFER] = fact
    else:
        kv_lens = torch.full((shape.batch,), shape.kv_len, dtype=torch.int32, device=device)
        case.add({f"{FLASHINFER} {fact}": lambda: rivals.flashinfer_append(
            library, k, v, pools[0], pools[1], table, kv_lens)})  # fmt: skip
    return case


def write_work(shape: Shape) -> Work:
    """Keys and Values read and written, and each token's slot."""
    return Work(0, 2 * shape.cache_bytes + SLOT_BYTES * shape.batch * shape.kv_len)


def block_copy_case(shape: Shape, device: torch.device) -> Case:
    """Copy-on-write as after a fork: each sequence's last block gets a copy, in all layers' pools at once."""
    generator = torch.Generator(device).manual_seed(shape.batch)
    count = shape.batch
    pools = []
    for _ in range(2 * LAYERS):
        pool = torch.zeros(2 * count, *_empty_pool(shape, device).shape[1:], dtype=shape.dtype, device=device)
        pool[:count] = torch.randn(pool[:count].shape, generator=generator, dtype=shape.dtype, device=device)
        pools.append(pool)
    order = torch.randperm(count, generator=generator, device=device)
    pairs = list(zip(order.tolist(), range(count, 2 * count), strict=True))
    targets = slice(count, 2 * count)

    def ours(layer: int) -> None:
        block_copy(pools, pairs)

    def indexing(layer: int) -> None:
        for pool in pools:
            pool[targets] = pool[order]

    def result(call: Call) -> list[Tensor]:
        return _after(call, [pool[targets] for pool in pools])

    case = Case(copy_work(shape), 1, {OURS: ours, INDEXING: indexing}, result=result)
    case.absent |= {FLASHINFER: "has no such operation", FLASH_ATTN: "has no such operation"}
    return case


def copy_work(shape: Shape) -> Work:
    """Keys and Values of all layers read and written."""
    return Work(0, 2 * shape.cache_bytes * LAYERS)


def _empty_pool(shape: Shape, device: torch.device) -> Tensor:
    size = (shape.batch * shape.blocks, shape.num_kv_heads, shape.block_size, shape.head_dim)
    return torch.zeros(size, dtype=shape.dtype, device=device)


def _after(call: Call, changed: list[Tensor]) -> list[Tensor]:
    """What `call` leaves in memory that was blank before."""
    for tensor in changed:
        tensor.zero_()
    call(0)
    return [tensor.clone() for tensor in changed]


def _write_bytes(shape: Shape) -> int:
    """The pools of all layers, the new tokens, and twice what was written, to compare it."""
    return (layers_for(2 * shape.cache_bytes) + 4) * shape.cache_bytes


def _copy_bytes(shape: Shape) -> int:
    """Sources and targets, and twice the targets."""
    return 4 * LAYERS * shape.cache_bytes


KV_WRITE = Kind("kv_write", True, _write_bytes, lambda shape: 0, kv_write_case)
BLOCK_COPY = Kind("block_copy", True, _copy_bytes, lambda shape: 0, block_copy_case, one_block=True)

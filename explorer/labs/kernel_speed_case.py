"""One operation of a real size, done by this repository's kernel and by its rivals on the same data.

In a model every layer has a cache of its own, so a kernel finds its cache in memory and not in the processor's own
caches. Here too: a small cache is laid out several times, and calls take these layers in turn.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from explorer.estimators.roofline import Work

Call = Callable[[int], Any]  # takes the layer whose cache is used

OURS = "this kernel"
COLD_BYTES = 256 << 20  # all layers' caches together; an H200 keeps 50 MiB near its processors, this machine less
MOST_LAYERS = 64
GPU_CALLS = 8  # calls in one timed piece: while one runs, the host prepares the next, as in a model's step


@dataclass(frozen=True)
class Shape:
    """What is attended to.

    Attributes:
        batch: sequences.
        kv_len: tokens of each, a multiple of `block_size`.
        num_heads: Query heads.
        num_kv_heads: KV heads.
        head_dim: elements of a Query, Key or Value.
        block_size: tokens in a block.
        dtype: of everything.
    """

    batch: int
    kv_len: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    block_size: int
    dtype: torch.dtype

    @property
    def blocks(self) -> int:
        """Blocks of one sequence."""
        return self.kv_len // self.block_size

    @property
    def cache_bytes(self) -> int:
        """Keys and Values of one layer."""
        return 2 * self.batch * self.kv_len * self.num_kv_heads * self.head_dim * self.dtype.itemsize

    def __str__(self) -> str:
        return f"{self.batch} × {self.kv_len:,}"


@dataclass
class Case:
    """One operation at one shape.

    Attributes:
        work: arithmetic and bytes of one call, each byte once.
        layers: caches that calls take in turn.
        calls: who does it, by name; the first is `OURS`.
        absent: rivals that are not here, and why.
        result: runs a call on layer 0 and gives the tensors that it made or changed.
    """

    work: Work
    layers: int
    calls: dict[str, Call]
    absent: dict[str, str] = field(default_factory=dict)
    result: Callable[[Call], list[Tensor]] = lambda call: [call(0)]

    def add(self, rivals: dict[str, Callable[[], Call]]) -> None:
        """Take in rivals that can be prepared and run; the others are named with what was wrong.

        A library for GPUs refuses shapes, types and devices that it was not built for with errors of all kinds.
        """
        for name, prepare in rivals.items():
            try:
                call = prepare()
                self.result(call)
            except Exception as error:
                first_line = (str(error).strip().splitlines() or [""])[0][:120]
                self.absent[name] = f"{type(error).__name__}: {first_line}".rstrip(": ")
            else:
                self.calls[name] = call

    def count(self, device: torch.device) -> int:
        """Calls in one timed piece: a pass over the layers, and on a GPU at least a few."""
        return max(self.layers, GPU_CALLS) if device.type == "cuda" else self.layers

    def piece(self, name: str, device: torch.device) -> Callable[[], None]:
        """What is timed: `count` calls, each on the next layer."""
        call, count = self.calls[name], self.count(device)

        def run() -> None:
            for i in range(count):
                call(i % self.layers)

        return run

    def differences(self) -> dict[str, float]:
        """The largest difference of each rival's result from ours."""
        ours = self.result(self.calls[OURS])
        found = {}
        for name, call in self.calls.items():
            if name != OURS:
                found[name] = max(_difference(a, b) for a, b in zip(ours, self.result(call), strict=True))
        return found


@dataclass(frozen=True)
class Kind:
    """A kernel that can be timed.

    Attributes:
        function: its name in `kernels`.
        batched: whether one call takes many sequences; a prompt alone is enough work.
        need_bytes: bytes allocated at a shape.
        flops: arithmetic of one call at a shape.
        make: allocates and prepares.
        one_block: it works on one block of each sequence, however long that is.
    """

    function: str
    batched: bool
    need_bytes: Callable[[Shape], int]
    flops: Callable[[Shape], int]
    make: Callable[[Shape, torch.device], Case]
    one_block: bool = False


def layers_for(num_bytes: int) -> int:
    """How many caches of `num_bytes` make a pass over them read memory."""
    return max(1, min(MOST_LAYERS, -(-COLD_BYTES // num_bytes)))


def spread_out(tensor: Tensor, layers: int) -> Tensor:
    """`layers` copies of a tensor, each in memory of its own, [layers, ...]."""
    return tensor[None].expand(layers, *tensor.shape).contiguous()


def scattered(shape: Shape, device: torch.device, generator: torch.Generator) -> Tensor:
    """A block table that uses a pool's blocks in random order, int32 [batch, blocks]."""
    order = torch.randperm(shape.batch * shape.blocks, generator=generator, device=device)
    return order.view(shape.batch, shape.blocks).int()


def _difference(a: Tensor, b: Tensor) -> float:
    assert a.shape == b.shape, f"{tuple(a.shape)} and {tuple(b.shape)}"
    return 0.0 if torch.equal(a, b) else (a.float() - b.float()).abs().max().item()

"""The paged store: Keys and Values in blocks of `block_size` tokens that lie anywhere in one pool.

    pool         [num_blocks, num_kv_heads, block_size, head_dim] for each layer
    block_table  logical block i of a sequence -> block id
    slot_mapping token at position p -> block_table[p // block_size] * block_size + p % block_size

Only the last block of a sequence can have unfilled slots. Heads come before slots: what a head reads of a block lies
in one piece.

On a CPU every block that is read costs some time whatever its size, so there the pool joins neighbouring blocks, as an
operating system joins pages: [num_blocks / pieces, num_kv_heads, pieces * block_size, head_dim]. Slots keep their
numbers. A sequence is given the next piece of its last block while it can have it; where it cannot, it is still read
correctly, through a copy.
Source: Kwon et al. 2023 (vLLM), arXiv:2309.06180, section 4.
"""

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from explorer.engine.block_pool import BlockPool
from explorer.engine.config import ModelConfig
from explorer.engine.stores.base import KVStore, Step
from kernels._triton import INTERPRET, can_launch
from kernels.block_copy import block_copy
from kernels.kv_write import kv_write, rows_of, write_rows
from kernels.paged_attention import paged_attention
from kernels.paged_attention_cpu import Scoring, StepPlan, attend_step, plan_step
from kernels.paged_attention_plan import Layout

# Against contiguous rows of 2,048 Keys a decode step takes 2.1 times as long with 16 slots, 1.25 with 128, 1.10 with
# 512 and 1.03 with 1,024 (8 sequences, bf16, 9/3 heads of 64, 2 cores); of 512 Keys, 1.1 with 512 and 2.1 with 1,024.
READ_SIZE = 512


@dataclass
class _Plan:
    """Attributes:
    slot_mapping: int64 [tokens], where each new token goes.
    starts: where each sequence's tokens begin on the packed axis, and where the last one's end.
    tables: each sequence's blocks.
    rows: for torch: the slots as rows of a pool (`rows_of`).
    reads: for torch: how the step is read, by window.
    on_device: for Triton: block table, lengths and starts, int32.
    """

    slot_mapping: Tensor
    starts: list[int]
    tables: list[list[int]]
    rows: Tensor | None = None
    reads: dict[int | None, StepPlan] = field(default_factory=dict)
    on_device: tuple[Tensor, Tensor, Tensor] | None = None


class PagedStore(KVStore):
    """Keys and Values in fixed-size blocks from a common pool.

    Args:
        config: the model's shape.
        dtype: of the stored elements.
        device: where they live.
        num_blocks: blocks in the pool.
        block_size: tokens in a block.
        read_size: on a CPU, slots of the pool's own blocks at most, where `block_size` is smaller. Long contexts are
            read faster with more, short ones with less.
    """

    def __init__(
        self, config: ModelConfig, dtype: torch.dtype, device: torch.device, num_blocks: int, block_size: int = 16,
        read_size: int = READ_SIZE,
    ):  # fmt: skip
        super().__init__(config, dtype, device)
        self.by_triton = can_launch(torch.empty(0, device=device))
        self.pieces = 1 if self.by_triton else pieces_for(num_blocks, block_size, read_size)
        self.pool = BlockPool(num_blocks, block_size, run=self.pieces)
        self.num_tokens = self.pool.num_tokens
        self.num_blocks, self.block_size = num_blocks, block_size
        self.scoring = Scoring(config.scale)
        self.layout = Layout(block_size, config.num_heads, config.num_kv_heads, self.pieces)
        shape = (num_blocks // self.pieces, config.num_kv_heads, self.pieces * block_size, config.head_dim)
        self.keys = [torch.zeros(shape, dtype=dtype, device=device) for _ in range(config.num_layers)]
        self.values = [torch.zeros(shape, dtype=dtype, device=device) for _ in range(config.num_layers)]

    @property
    def block_bytes(self) -> int:
        """Bytes of one block over all layers, Keys and Values."""
        return self.allocated_bytes // self.num_blocks

    def _reserve(self, seq_ids: tuple[int, ...], q_lens: tuple[int, ...], kv_lens: tuple[int, ...]) -> _Plan:
        copies = self.pool.append(dict(zip(seq_ids, q_lens, strict=True)))
        if copies:
            self._copy(copies)
        return self._plan(seq_ids, q_lens, kv_lens)

    def _copy(self, pairs: list[tuple[int, int]]) -> None:
        """Copy whole blocks in every layer; where the pool joins them, a block is one row for each head."""
        pools = [*self.keys, *self.values]
        if self.pieces > 1:
            rows = self.layout.piece_rows(torch.tensor(pairs).T)  # [2, heads, pairs]
            pools = [pool.view(-1, self.block_size * self.config.head_dim) for pool in pools]
            pairs = list(zip(*rows.flatten(1).tolist(), strict=True))
        block_copy(pools, pairs)

    def _plan(self, seq_ids: tuple[int, ...], q_lens: tuple[int, ...], kv_lens: tuple[int, ...]) -> _Plan:
        starts = [0]
        for n in q_lens:
            starts.append(starts[-1] + n)
        if max(q_lens) == 1:
            slots = torch.tensor([self._slot(seq, n - 1) for seq, n in zip(seq_ids, kv_lens, strict=True)])
        else:
            parts = zip(seq_ids, q_lens, kv_lens, strict=True)
            slots = torch.cat([self._slots(seq, kv_len - q_len, kv_len) for seq, q_len, kv_len in parts])
        plan = _Plan(slots.to(self.device), starts, [list(self.pool.tables[seq]) for seq in seq_ids])
        if self.by_triton:
            longest = max(map(len, plan.tables))
            padded = [table + [0] * (longest - len(table)) for table in plan.tables]
            # torch takes lists of lists number by number: 0.86 and 0.23 ms for 32 sequences of 512 blocks.
            numbers = (torch.from_numpy(np.array(x, dtype=np.int32)) for x in (padded, kv_lens, starts))
            table, lens, begins = (x.to(self.device) for x in numbers)
            plan.on_device = table, lens, begins
        else:
            plan.rows = rows_of(slots, self.config.num_kv_heads, self.layout.read_size)
        return plan

    def _slot(self, seq_id: int, position: int) -> int:
        block, offset = divmod(position, self.block_size)
        return self.pool.tables[seq_id][block] * self.block_size + offset

    def _slots(self, seq_id: int, start: int, stop: int) -> Tensor:
        first = start // self.block_size
        table = torch.tensor(self.pool.tables[seq_id][first : -(-stop // self.block_size)])
        position = torch.arange(start, stop)
        return table[position // self.block_size - first] * self.block_size + position % self.block_size

    def write(self, layer: int, k: Tensor, v: Tensor, step: Step) -> None:
        """Take in one layer's new Keys and Values; arguments as for `attend`."""
        plan: _Plan = step.plan
        if plan.rows is None:
            kv_write(k, v, self.keys[layer], self.values[layer], plan.slot_mapping)
        else:
            write_rows(k, v, self.keys[layer], self.values[layer], plan.rows)

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor, step: Step) -> Tensor:
        """See `KVStore.attend`."""
        plan: _Plan = step.plan
        keys, values, window = self.keys[layer], self.values[layer], self.config.layer_windows[layer]
        self.write(layer, k, v, step)
        if plan.on_device is not None:
            table, lens, starts = plan.on_device
            return paged_attention(
                q, keys, values, table, lens, q_starts=starts, scale=self.config.scale, window=window,
                max_q_len=max(step.q_lens), max_kv_len=max(step.kv_lens),
            ).out  # fmt: skip
        if window not in plan.reads:
            plan.reads[window] = plan_step(plan.tables, step.kv_lens, plan.starts, self.layout, window)
        return attend_step(q, keys, values, plan.reads[window], self.scoring)[0]

    def fork(self, parent: int, child: int) -> None:
        """Start a second sequence that shares everything with the first, until one of them writes.

        Raises:
            InputError: there is no such parent, or the child exists.
        """
        self.pool.fork(parent, child)

    def free(self, seq_id: int) -> None:
        """See `KVStore.free`."""
        self.pool.free(seq_id)

    def truncate(self, seq_id: int, kv_len: int) -> None:
        """See `KVStore.truncate`; blocks that become empty go back to the pool."""
        self.pool.truncate(seq_id, kv_len)

    def check_invariants(self) -> None:
        """See `BlockPool.check_invariants`."""
        self.pool.check_invariants()

    @property
    def allocated_bytes(self) -> int:
        """See `KVStore.allocated_bytes`."""
        return sum(t.nbytes for t in (*self.keys, *self.values))

    @property
    def stored_bytes(self) -> int:
        """Blocks in use, the unfilled slots of each last block included."""
        return self.block_bytes * (self.num_blocks - self.pool.num_free)

    @property
    def unfilled_bytes(self) -> int:
        """The part of `stored_bytes` that no token occupies: the tails of the last blocks."""
        return self.pool.unfilled_slots * (self.block_bytes // self.block_size)

    @property
    def implementation(self) -> str:
        """See `KVStore.implementation`."""
        how = f"torch, blocks read in place, {self.layout.read_size} slots in one product"
        if self.by_triton:
            how = "Triton paged attention" + (" in its interpreter" if INTERPRET else "")
        return f"paged store, block_size {self.block_size}, {how}"


def pieces_for(num_blocks: int, block_size: int, read_size: int = READ_SIZE) -> int:
    """How many neighbouring blocks a pool on a CPU joins: as many as divide it and make at most `read_size` slots."""
    return max(n for n in range(1, max(1, read_size // block_size) + 1) if num_blocks % n == 0)

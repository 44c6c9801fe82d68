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

import torch
from torch import Tensor

from explorer.engine.config import ModelConfig
from explorer.engine.stores.base import KVStore, Step
from explorer.errors import InputError, ResourceError
from kernels._triton import INTERPRET, can_launch
from kernels.kv_write import kv_write, rows_of, write_rows
from kernels.paged_attention import paged_attention
from kernels.paged_attention_cpu import Scoring, StepPlan, attend_step, plan_step
from kernels.paged_attention_plan import Layout

# Slots of the pool's own blocks on a CPU, at most, where block_size is smaller. Against contiguous rows of 2,048 Keys a
# step takes 1.10 to 1.15 times as long with 64 to 256 and 1.05 with 512 (8 sequences, bf16, 9/3 heads of 64, 2 cores).
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
    """

    def __init__(
        self, config: ModelConfig, dtype: torch.dtype, device: torch.device, num_blocks: int, block_size: int = 16
    ):
        super().__init__(config, dtype, device)
        if num_blocks < 1 or not 1 <= block_size <= 1024:
            raise InputError(
                f"num_blocks={num_blocks}, block_size={block_size}: expected at least 1 block of 1 to 1024 tokens",
                f"num_blocks={num_blocks},block_size={block_size}：应至少有 1 个 block，每个 1 到 1024 个 token",
            )
        self.num_blocks, self.block_size = num_blocks, block_size
        self.by_triton = can_launch(torch.empty(0, device=device))
        self.pieces = 1 if self.by_triton else pieces_for(num_blocks, block_size)
        self.layout = Layout(block_size, config.num_heads, config.num_kv_heads, self.pieces)
        shape = (num_blocks // self.pieces, config.num_kv_heads, self.pieces * block_size, config.head_dim)
        self.keys = [torch.zeros(shape, dtype=dtype, device=device) for _ in range(config.num_layers)]
        self.values = [torch.zeros(shape, dtype=dtype, device=device) for _ in range(config.num_layers)]
        self.free_blocks = list(range(num_blocks - 1, -1, -1))  # taken from the end: lowest ids first
        self.block_tables: dict[int, list[int]] = {}

    @property
    def block_bytes(self) -> int:
        """Bytes of one block over all layers, Keys and Values."""
        return self.allocated_bytes // self.num_blocks

    def _reserve(self, seq_ids: tuple[int, ...], q_lens: tuple[int, ...], kv_lens: tuple[int, ...]) -> _Plan:
        need = [
            -(-kv_len // self.block_size) - len(self.block_tables.get(seq, ()))
            for seq, kv_len in zip(seq_ids, kv_lens, strict=True)
        ]
        if sum(need) > len(self.free_blocks):
            raise ResourceError(
                f"{sum(need)} blocks are needed and {len(self.free_blocks)} are free; free a sequence first",
                f"需要 {sum(need)} 个 block，但只剩 {len(self.free_blocks)} 个；请先释放一个序列",
            )
        for seq, count in zip(seq_ids, need, strict=True):
            table = self.block_tables.setdefault(seq, [])
            table.extend(self._take(table[-1] if table else None, count))
        return self._plan(seq_ids, q_lens, kv_lens)

    def _take(self, last: int | None, count: int) -> list[int]:
        """`count` free blocks to follow block `last`: its neighbours, then whole blocks of the pool, then any."""
        if count <= 0:
            return []
        if self.pieces == 1:
            return [self.free_blocks.pop() for _ in range(count)]
        taken: list[int] = []
        free = dict.fromkeys(reversed(self.free_blocks))  # in the order in which they are given out
        while len(taken) < count:
            following = -1 if last is None or (last + 1) % self.pieces == 0 else last + 1
            last = following if following in free else self._whole(free)
            del free[last]
            taken.append(last)
        self.free_blocks = list(reversed(free))
        return taken

    def _whole(self, free: dict[int, None]) -> int:
        """The first free block that begins a block of the pool all of which is free; the first free one if none is."""
        for block in free:
            if block % self.pieces == 0 and all(block + i in free for i in range(1, self.pieces)):
                return block
        return next(iter(free))

    def _plan(self, seq_ids: tuple[int, ...], q_lens: tuple[int, ...], kv_lens: tuple[int, ...]) -> _Plan:
        starts = [0]
        for n in q_lens:
            starts.append(starts[-1] + n)
        parts = zip(seq_ids, q_lens, kv_lens, strict=True)
        slots = torch.cat([self._slots(seq, kv_len - q_len, kv_len) for seq, q_len, kv_len in parts])
        plan = _Plan(slots.to(self.device), starts, [list(self.block_tables[seq]) for seq in seq_ids])
        if self.by_triton:
            longest = max(map(len, plan.tables))
            padded = [table + [0] * (longest - len(table)) for table in plan.tables]
            numbers = (torch.tensor(x, dtype=torch.int32) for x in (padded, kv_lens, starts))
            table, lens, begins = (x.to(self.device) for x in numbers)
            plan.on_device = table, lens, begins
        else:
            plan.rows = rows_of(slots, self.config.num_kv_heads, self.layout.read_size)
        return plan

    def _slots(self, seq_id: int, start: int, stop: int) -> Tensor:
        position = torch.arange(start, stop)
        table = torch.tensor(self.block_tables[seq_id])
        return table[position // self.block_size] * self.block_size + position % self.block_size

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor, step: Step) -> Tensor:
        """See `KVStore.attend`."""
        plan: _Plan = step.plan
        keys, values, window = self.keys[layer], self.values[layer], self.config.layer_windows[layer]
        if plan.on_device is not None:
            kv_write(k, v, keys, values, plan.slot_mapping)
            table, lens, starts = plan.on_device
            return paged_attention(
                q, keys, values, table, lens, q_starts=starts, scale=self.config.scale, window=window,
                max_q_len=max(step.q_lens), max_kv_len=max(step.kv_lens),
            ).out  # fmt: skip
        assert plan.rows is not None
        write_rows(k, v, keys, values, plan.rows)
        if window not in plan.reads:
            plan.reads[window] = plan_step(plan.tables, step.kv_lens, plan.starts, self.layout, window)
        return attend_step(q, keys, values, plan.reads[window], Scoring(self.config.scale))[0]

    def free(self, seq_id: int) -> None:
        """See `KVStore.free`."""
        self.num_tokens.pop(seq_id, None)
        self.free_blocks.extend(reversed(self.block_tables.pop(seq_id, [])))

    def truncate(self, seq_id: int, kv_len: int) -> None:
        """See `KVStore.truncate`; blocks that become empty go back to the pool."""
        if not 0 <= kv_len <= self.num_tokens.get(seq_id, 0):
            raise InputError(
                f"kv_len={kv_len}: expected 0 to {self.num_tokens.get(seq_id, 0)}",
                f"kv_len={kv_len}：应为 0 到 {self.num_tokens.get(seq_id, 0)}",
            )
        table, keep = self.block_tables[seq_id], -(-kv_len // self.block_size)
        self.free_blocks.extend(reversed(table[keep:]))
        del table[keep:]
        self.num_tokens[seq_id] = kv_len

    def check_invariants(self) -> None:
        """Free and used blocks make up the pool, and no block is in two places."""
        used = [block for table in self.block_tables.values() for block in table]
        assert sorted(used + self.free_blocks) == list(range(self.num_blocks)), "a block is lost or held twice"
        for seq, table in self.block_tables.items():
            assert len(table) == -(-self.num_tokens[seq] // self.block_size), f"sequence {seq}: table does not fit"

    @property
    def allocated_bytes(self) -> int:
        """See `KVStore.allocated_bytes`."""
        return sum(t.nbytes for t in (*self.keys, *self.values))

    @property
    def stored_bytes(self) -> int:
        """Blocks in use, the unfilled slots of each last block included."""
        return self.block_bytes * (self.num_blocks - len(self.free_blocks))

    @property
    def unfilled_bytes(self) -> int:
        """The part of `stored_bytes` that no token occupies: the tails of the last blocks."""
        slots = sum(len(table) for table in self.block_tables.values()) * self.block_size
        return (slots - sum(self.num_tokens.values())) * (self.block_bytes // self.block_size)

    @property
    def implementation(self) -> str:
        """See `KVStore.implementation`."""
        how = f"torch, blocks read in place, {self.layout.read_size} slots in one product"
        if self.by_triton:
            how = "Triton paged attention" + (" in its interpreter" if INTERPRET else "")
        return f"paged store, block_size {self.block_size}, {how}"


def pieces_for(num_blocks: int, block_size: int) -> int:
    """How many neighbouring blocks a pool on a CPU joins: as many as divide it and make at most `READ_SIZE` slots."""
    return max(n for n in range(1, max(1, READ_SIZE // block_size) + 1) if num_blocks % n == 0)

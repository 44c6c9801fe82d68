"""The paged store: Keys and Values in blocks of `block_size` tokens that lie anywhere in one pool.

    pool         [num_blocks, block_size, num_kv_heads, head_dim] for each layer
    block_table  logical block i of a sequence -> block id
    slot_mapping token at position p -> block_table[p // block_size] * block_size + p % block_size

Only the last block of a sequence can have unfilled slots.
Source: Kwon et al. 2023 (vLLM), arXiv:2309.06180, section 4.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.engine.config import ModelConfig
from explorer.engine.stores.base import KVStore, Step
from explorer.errors import InputError, ResourceError
from kernels.grouped_attention import decode_attention, prefill_attention


@dataclass
class _Plan:
    """Attributes:
    slot_mapping: int64 [tokens], where each new token goes.
    reads: for each sequence its slots in order: a slice where its blocks happen to be neighbours, else int64 indices.
    """

    slot_mapping: Tensor
    reads: list[slice | Tensor]


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
        shape = (num_blocks, block_size, config.num_kv_heads, config.head_dim)
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
            self.block_tables.setdefault(seq, []).extend(self.free_blocks.pop() for _ in range(count))
        slots = [self._slots(seq, 0, kv_len) for seq, kv_len in zip(seq_ids, kv_lens, strict=True)]
        new = [all_slots[-q_len:] for all_slots, q_len in zip(slots, q_lens, strict=True)]
        return _Plan(torch.cat(new).to(self.device), [self._as_slice(all_slots) for all_slots in slots])

    def _slots(self, seq_id: int, start: int, stop: int) -> Tensor:
        position = torch.arange(start, stop)
        table = torch.tensor(self.block_tables[seq_id])
        return table[position // self.block_size] * self.block_size + position % self.block_size

    def _as_slice(self, slots: Tensor) -> slice | Tensor:
        """Neighbouring slots are read in place; scattered ones have to be gathered."""
        first, last = int(slots[0]), int(slots[-1])
        if last - first + 1 == len(slots) and bool((slots.diff() == 1).all()):
            return slice(first, last + 1)
        return slots.to(self.device)

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor, step: Step) -> Tensor:
        """See `KVStore.attend`."""
        plan: _Plan = step.plan
        keys, values = self.keys[layer].flatten(0, 1), self.values[layer].flatten(0, 1)
        keys.index_copy_(0, plan.slot_mapping, k)
        values.index_copy_(0, plan.slot_mapping, v)
        window = self.config.layer_windows[layer]
        out, start = torch.empty_like(q), 0
        for q_len, kv_len, read in zip(step.q_lens, step.kv_lens, plan.reads, strict=True):
            part = slice(start, start + q_len)
            seen_keys, seen_values = keys[read].transpose(0, 1), values[read].transpose(0, 1)
            if q_len == 1:
                first = 0 if window is None else max(0, kv_len - window)
                out[part] = decode_attention(
                    q[part], seen_keys[None, :, first:], seen_values[None, :, first:], None, self.config.scale
                )
            else:
                out[part] = prefill_attention(q[part], seen_keys, seen_values, window, self.config.scale)
            start += q_len
        return out

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
        return f"paged store, block_size {self.block_size}, neighbouring blocks read in place, others gathered by torch"

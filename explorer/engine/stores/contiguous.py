"""The plain store: for every layer one Key and one Value tensor, a row of `capacity` slots for each sequence.

    keys[layer]   [rows, num_kv_heads, capacity, head_dim]

Fast to read, because a head's Keys lie side by side; wasteful, because a row is reserved whole.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from explorer.engine.config import ModelConfig
from explorer.engine.stores.base import KVStore, Step
from explorer.errors import InputError, ResourceError
from kernels.grouped_attention import decode_attention, prefill_attention


@dataclass
class _Plan:
    """Where a step's tokens go, as plain numbers where one sequence decodes (the hot path) and tensors elsewhere."""

    rows: tuple[int, ...]
    decode: bool
    first_row: int = 0
    num_rows: int = 0
    row_index: Tensor | None = None
    slot_index: Tensor | None = None
    visible: Tensor | None = None
    kv_len: int = 0


class ContiguousStore(KVStore):
    """Keys and Values in one row per sequence.

    Args:
        config: the model's shape.
        dtype: of the stored elements.
        device: where they live.
        capacity: slots in each row, in tokens.
        batch: rows.
    """

    def __init__(self, config: ModelConfig, dtype: torch.dtype, device: torch.device, capacity: int, batch: int = 1):
        super().__init__(config, dtype, device)
        if capacity < 1 or batch < 1:
            raise InputError(
                f"capacity={capacity}, batch={batch}: both must be at least 1",
                f"capacity={capacity},batch={batch}：两者都应不小于 1",
            )
        self.capacity, self.batch = capacity, batch
        shape = (batch, config.num_kv_heads, capacity, config.head_dim)
        # Zeros, not empty memory: masked slots are multiplied by zero, and zero times NaN is NaN.
        self.keys = [torch.zeros(shape, dtype=dtype, device=device) for _ in range(config.num_layers)]
        self.values = [torch.zeros(shape, dtype=dtype, device=device) for _ in range(config.num_layers)]
        self.row_of: dict[int, int] = {}

    def _reserve(self, seq_ids: tuple[int, ...], q_lens: tuple[int, ...], kv_lens: tuple[int, ...]) -> _Plan:
        if max(kv_lens) > self.capacity:
            raise ResourceError(
                f"the store holds {self.capacity:,} tokens a sequence; {max(kv_lens):,} were asked for",
                f"缓存每个序列只能容纳 {self.capacity:,} 个 token；请求了 {max(kv_lens):,} 个",
            )
        new = [seq for seq in seq_ids if seq not in self.row_of]
        unused = sorted(set(range(self.batch)) - set(self.row_of.values()))
        if len(new) > len(unused):
            raise ResourceError(
                f"the store has {self.batch} rows, all taken; free a sequence first",
                f"缓存的 {self.batch} 行已全部占用；请先释放一个序列",
            )
        for seq, row in zip(new, unused, strict=False):
            self.row_of[seq] = row
        rows = tuple(self.row_of[seq] for seq in seq_ids)
        if any(n != 1 for n in q_lens):
            return _Plan(rows, decode=False)
        if len(rows) == 1:
            return _Plan(rows, decode=True, first_row=rows[0], num_rows=1)
        return self._batch_plan(rows, kv_lens)

    def _batch_plan(self, rows: tuple[int, ...], kv_lens: tuple[int, ...]) -> _Plan:
        """Neighbouring rows of similar length are read in one product, with a mask; others one by one."""
        consecutive = rows == tuple(range(rows[0], rows[0] + len(rows)))
        similar = len(rows) * max(kv_lens) <= 1.5 * sum(kv_lens)
        if not (consecutive and similar) or any(window is not None for window in self.config.layer_windows):
            return _Plan(rows, decode=True)
        lens, slots = torch.tensor(kv_lens, device=self.device), self._slots_to_read(max(kv_lens))
        visible = None
        if min(kv_lens) != slots:
            visible = torch.arange(slots, device=self.device)[None] < lens[:, None]
        index = torch.tensor(rows, device=self.device)
        return _Plan(rows, True, rows[0], len(rows), index, lens - 1, visible, slots)

    def _slots_to_read(self, kv_len: int) -> int:
        """Whole rows lie in one piece and are read without a copy: worth it while they are not much longer."""
        return self.capacity if self.capacity <= 1.5 * kv_len else kv_len

    def fixed_step(self, seq_ids: Sequence[int], kv_len: int) -> Step:
        """A decode step whose tensors stay where they are, for a CUDA graph: the caller writes `positions` in place.

        Args:
            seq_ids: sequences that lie in neighbouring rows.
            kv_len: slots to read in each row, at least the longest sequence; what lies beyond a position is masked.
        """
        rows = tuple(self.row_of[seq] for seq in seq_ids)
        assert rows == tuple(range(rows[0], rows[0] + len(rows))), "a fixed step needs neighbouring rows"
        positions = torch.zeros(len(rows), dtype=torch.int64, device=self.device)
        visible = torch.zeros(len(rows), kv_len, dtype=torch.bool, device=self.device)
        index = torch.tensor(rows, device=self.device)
        plan = _Plan(rows, True, rows[0], len(rows), index, positions, visible, kv_len)
        return Step(tuple(seq_ids), (1,) * len(rows), (kv_len,) * len(rows), positions, plan)

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor, step: Step) -> Tensor:
        """See `KVStore.attend`."""
        plan: _Plan = step.plan
        if not plan.decode:
            return self._prefill(layer, q, k, v, step)
        if plan.num_rows == 1 and plan.row_index is None:
            return self._decode_one(layer, q, k, v, plan.first_row, step.kv_lens[0])
        if plan.num_rows == 0:
            parts = zip(plan.rows, step.kv_lens, strict=True)
            return torch.cat(
                [
                    self._decode_one(layer, q[i : i + 1], k[i : i + 1], v[i : i + 1], row, kv_len)
                    for i, (row, kv_len) in enumerate(parts)
                ]
            )
        keys, values = self.keys[layer], self.values[layer]
        keys[plan.row_index, :, plan.slot_index] = k
        values[plan.row_index, :, plan.slot_index] = v
        rows, seen = slice(plan.first_row, plan.first_row + plan.num_rows), slice(plan.kv_len)
        return decode_attention(q, keys[rows, :, seen], values[rows, :, seen], plan.visible, self.config.scale)

    def _decode_one(self, layer: int, q: Tensor, k: Tensor, v: Tensor, row: int, kv_len: int) -> Tensor:
        keys, values = self.keys[layer].narrow(0, row, 1), self.values[layer].narrow(0, row, 1)
        keys.select(2, kv_len - 1).copy_(k)
        values.select(2, kv_len - 1).copy_(v)
        window, scale = self.config.layer_windows[layer], self.config.scale
        if window is not None and window < kv_len:
            first = kv_len - window
            return decode_attention(q, keys.narrow(2, first, window), values.narrow(2, first, window), None, scale)
        slots = self._slots_to_read(kv_len)
        return decode_attention(q, keys.narrow(2, 0, slots), values.narrow(2, 0, slots), None, scale, kv_len)

    def write(self, layer: int, k: Tensor, v: Tensor, step: Step) -> None:
        """Take in one layer's new Keys and Values; arguments as for `attend`."""
        start = 0
        for row, q_len, kv_len in zip(step.plan.rows, step.q_lens, step.kv_lens, strict=True):
            part, slots = slice(start, start + q_len), slice(kv_len - q_len, kv_len)
            self.keys[layer][row, :, slots] = k[part].transpose(0, 1)
            self.values[layer][row, :, slots] = v[part].transpose(0, 1)
            start += q_len

    def _prefill(self, layer: int, q: Tensor, k: Tensor, v: Tensor, step: Step) -> Tensor:
        self.write(layer, k, v, step)
        keys, values, window = self.keys[layer], self.values[layer], self.config.layer_windows[layer]
        out, start = torch.empty_like(q), 0
        for row, q_len, kv_len in zip(step.plan.rows, step.q_lens, step.kv_lens, strict=True):
            part = slice(start, start + q_len)
            seen = keys[row, :, :kv_len], values[row, :, :kv_len]
            out[part] = prefill_attention(q[part], *seen, window, self.config.scale)
            start += q_len
        return out

    def free(self, seq_id: int) -> None:
        """See `KVStore.free`."""
        self.row_of.pop(seq_id, None)
        self.num_tokens.pop(seq_id, None)

    def truncate(self, seq_id: int, kv_len: int) -> None:
        """See `KVStore.truncate`."""
        if not 0 <= kv_len <= self.num_tokens.get(seq_id, 0):
            raise InputError(
                f"kv_len={kv_len}: expected 0 to {self.num_tokens.get(seq_id, 0)}",
                f"kv_len={kv_len}：应为 0 到 {self.num_tokens.get(seq_id, 0)}",
            )
        self.num_tokens[seq_id] = kv_len

    @property
    def allocated_bytes(self) -> int:
        """See `KVStore.allocated_bytes`."""
        return sum(t.nbytes for t in (*self.keys, *self.values))

    @property
    def stored_bytes(self) -> int:
        """A sequence occupies its whole row."""
        return self.allocated_bytes // self.batch * len(self.row_of)

    @property
    def implementation(self) -> str:
        """See `KVStore.implementation`."""
        kernel = "torch SDPA" if self.device.type == "cuda" else "torch SDPA up to 1,024 keys, grouped matmul beyond"
        return f"contiguous store, {kernel}"

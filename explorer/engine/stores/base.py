"""The contract between the decoder and whatever keeps its Keys and Values.

For every forward pass the caller asks the store to `begin` a step, the decoder hands each layer's new Queries, Keys
and Values to `attend`, and `end` closes the step. A store may keep all of it, quantise it, drop part of it, share it
or put it in pages: only `attend` sees Keys and Values, so the decoder stays the same.

    positions   0 1 2 3 4 5 6 7
                \\_______/ \\___/
                 cached    this step's tokens (q_len = 3), kv_len = 8
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from explorer.engine.config import ModelConfig
from explorer.engine.rope import Rope
from explorer.errors import InputError


@dataclass
class Step:
    """One forward pass over the new tokens of several sequences, packed along one axis.

    Attributes:
        seq_ids: the sequences, in the order of their tokens.
        q_lens: new tokens of each.
        kv_lens: tokens of each once the new ones are in (positions seen, not entries kept).
        positions: int64 [sum(q_lens)], each new token's place in its sequence.
        plan: the store's own notes for this step.
        rope: the rotation, for stores that keep unrotated Keys; set by the decoder.
    """

    seq_ids: tuple[int, ...]
    q_lens: tuple[int, ...]
    kv_lens: tuple[int, ...]
    positions: Tensor
    plan: Any = None
    rope: Rope | None = None

    @property
    def is_decode(self) -> bool:
        """Whether every sequence brings exactly one token."""
        return all(n == 1 for n in self.q_lens)

    def last_rows(self) -> list[int]:
        """For each sequence the index of its last token on the packed axis."""
        rows, end = [], 0
        for n in self.q_lens:
            end += n
            rows.append(end - 1)
        return rows


class KVStore(ABC):
    """Keys and Values of many sequences.

    Class attributes:
        rotates_keys: the store wants Keys before the rotary rotation and rotates them itself (`step.rope`).
    """

    rotates_keys: ClassVar[bool] = False

    def __init__(self, config: ModelConfig, dtype: torch.dtype, device: torch.device):
        self.config, self.dtype, self.device = config, dtype, device
        self.num_tokens: dict[int, int] = {}

    def begin(self, seq_ids: Sequence[int], q_lens: Sequence[int]) -> Step:
        """Make room for `q_lens` new tokens of each sequence; unknown ids start new sequences.

        Raises:
            InputError: a length is below 1 or an id comes twice.
            ResourceError: the store is full; nothing has changed then.
        """
        if len(set(seq_ids)) != len(seq_ids) or len(seq_ids) != len(q_lens) or any(n < 1 for n in q_lens):
            raise InputError(
                f"seq_ids={list(seq_ids)}, q_lens={list(q_lens)}: expected distinct ids, each with at least 1 token",
                f"seq_ids={list(seq_ids)},q_lens={list(q_lens)}：编号应互不相同，且每个至少有 1 个 token",
            )
        starts = [self.num_tokens.get(seq, 0) for seq in seq_ids]
        kv_lens = tuple(start + n for start, n in zip(starts, q_lens, strict=True))
        plan = self._reserve(tuple(seq_ids), tuple(q_lens), kv_lens)
        positions = torch.cat([torch.arange(end - n, end) for end, n in zip(kv_lens, q_lens, strict=True)])
        for seq, kv_len in zip(seq_ids, kv_lens, strict=True):
            self.num_tokens[seq] = kv_len
        return Step(tuple(seq_ids), tuple(q_lens), kv_lens, positions.to(self.device), plan)

    @abstractmethod
    def _reserve(self, seq_ids: tuple[int, ...], q_lens: tuple[int, ...], kv_lens: tuple[int, ...]) -> Any:
        """Find room for the step and return the plan that `attend` will follow."""

    @abstractmethod
    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor, step: Step) -> Tensor:
        """Take in one layer's new Keys and Values and answer its Queries.

        Args:
            layer: the decoder layer.
            q: rotated Queries, [tokens, num_heads, head_dim].
            k: new Keys, [tokens, num_kv_heads, head_dim]; rotated unless `rotates_keys`.
            v: new Values, like `k`.
            step: from `begin`.

        Returns:
            The heads' outputs, [tokens, num_heads, head_dim].
        """

    def end(self, step: Step) -> None:  # noqa: B027 - most stores have nothing to do
        """All layers have run. Stores that drop or compress entries do it here."""

    @abstractmethod
    def free(self, seq_id: int) -> None:
        """Forget a sequence and give its room back."""

    @abstractmethod
    def truncate(self, seq_id: int, kv_len: int) -> None:
        """Keep only the first `kv_len` tokens of a sequence (a rejected draft is undone so)."""

    @property
    @abstractmethod
    def allocated_bytes(self) -> int:
        """Bytes of all tensors that the store holds, used or not."""

    @property
    @abstractmethod
    def stored_bytes(self) -> int:
        """Bytes that its sequences occupy, with every rounding that the layout brings."""

    @property
    @abstractmethod
    def implementation(self) -> str:
        """What runs, in a few words, for a Record's provenance."""

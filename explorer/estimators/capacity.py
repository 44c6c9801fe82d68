"""What one tensor-parallel rank has to hold, and how much of a load its memory takes. Whole numbers throughout."""

from dataclasses import dataclass

from explorer.estimators.memory import cache_bytes
from explorer.estimators.ranks import Ranks
from explorer.estimators.transfer import rank_weight_bytes
from explorer.specs.dtypes import Dtype
from explorer.specs.limits import whole
from explorer.specs.model import ModelSpec


@dataclass(frozen=True)
class RankUse:
    """One rank's memory.

    Attributes:
        memory_bytes: all of it.
        weight_bytes: the rank's share of the weights.
        reserve_bytes: kept back for everything that is neither weights nor cache.
        kv_bytes_each: the cache of one request on this rank.
        requests: how many there are to be.
    """

    memory_bytes: int
    weight_bytes: int
    reserve_bytes: int
    kv_bytes_each: int
    requests: int

    @property
    def kv_bytes(self) -> int:
        """The caches of all requests on this rank."""
        return self.requests * self.kv_bytes_each

    @property
    def free_bytes(self) -> int:
        """What is left; below zero, what is short."""
        return self.room_bytes - self.kv_bytes

    @property
    def room_bytes(self) -> int:
        """What weights and reserve leave; below zero if not even they fit."""
        return self.memory_bytes - self.weight_bytes - self.reserve_bytes

    @property
    def requests_that_fit(self) -> int:
        """The largest number of such requests."""
        return max(0, self.room_bytes) // self.kv_bytes_each


def rank_use(
    spec: ModelSpec,
    tokens: int,
    requests: int,
    memory_bytes: int,
    *,
    dtype: str | Dtype = "bf16",
    bits_per_weight: int = 16,
    tp: int = 1,
    reserve_bytes: int = 0,
) -> RankUse:
    """The memory of one of `tp` ranks under `requests` requests of `tokens` tokens, none sharing a prefix.

    A rank keeps its share of the KV heads and never less than one; the weights are taken to split evenly. Unfilled
    blocks, fragmentation and block tables are not counted.

    Raises:
        InputError: a value is out of range, the weights are not known, or the ranks cannot share the heads.
    """
    each = cache_bytes(spec, tokens, 1, dtype, ranks=Ranks(tp=tp)).per_rank.total_bytes
    return RankUse(
        memory_bytes=whole("memory_bytes", memory_bytes),
        weight_bytes=rank_weight_bytes(spec, bits_per_weight, tp),
        reserve_bytes=whole("memory_bytes", reserve_bytes, shown_as="reserve_bytes"),
        kv_bytes_each=each,
        requests=whole("batch", requests, shown_as="requests"),
    )

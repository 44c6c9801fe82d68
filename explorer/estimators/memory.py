"""How large a cache is, what it is made of, and where it meets the limits of a device. Whole numbers throughout.

The standard formula, `2 * L * H_kv * D * T * B * S` bytes, is what this sum comes to when every layer is full attention
with Keys and Values of one size. In general a cache is `slope * T + constant` once its windows are full.
"""

from dataclasses import dataclass
from fractions import Fraction

from explorer.estimators import sums
from explorer.estimators.assumptions import assumptions_of
from explorer.estimators.ranks import Ranks
from explorer.estimators.sums import Group
from explorer.specs import pieces
from explorer.specs.dtypes import Dtype
from explorer.specs.formats import CacheFormat, cache_format
from explorer.specs.layers import SharedFromOwner
from explorer.specs.limits import LIMITS, whole
from explorer.specs.model import ModelSpec
from explorer.text import Text

MAX_TOKENS = LIMITS["tokens"].high
ONE_DEVICE = Ranks()


@dataclass(frozen=True)
class LedgerRow:
    """What a number of equal layers contributes.

    Attributes:
        kind: the layer kind's name ("full_attention").
        title: its display name.
        layers: their places in the model, from 0.
        owner: the layer whose cache they read; None if they have their own.
        mtp: they are draft layers, counted after the model's own.
        shape: their sizes in words.
        formats: what each tensor is written in: (("key", "bf16"), ...).
        bytes_each: what one of them keeps for one sequence.
        bytes_per_token_growing: what each further token of one sequence adds, in all of them together.
        constant_bytes: what they keep for one sequence whatever its length.
        total_bytes: all of it, for the whole batch.
        read_bytes: read from them to decode one token of every sequence.
    """

    kind: str
    title: Text
    layers: tuple[int, ...]
    owner: int | None
    mtp: bool
    shape: Text
    formats: tuple[tuple[str, str], ...]
    bytes_each: int
    bytes_per_token_growing: int | Fraction
    constant_bytes: int | Fraction
    total_bytes: int
    read_bytes: int

    @property
    def first_layer(self) -> int:
        """The first of these layers."""
        return self.layers[0]

    @property
    def num_layers(self) -> int:
        """How many of them."""
        return len(self.layers)


@dataclass(frozen=True)
class RankEstimate:
    """What the fullest device keeps, and all of them together.

    Attributes:
        ranks: how the model is spread.
        sequences: sequences on the fullest replica.
        total_bytes: on the fullest device.
        bytes_per_token_growing: there, for each further token of one sequence.
        constant_bytes: there, for one sequence.
        all_ranks_bytes: on all devices together, copies included.
    """

    ranks: Ranks
    sequences: int
    total_bytes: int
    bytes_per_token_growing: int | Fraction
    constant_bytes: int | Fraction
    all_ranks_bytes: int


@dataclass(frozen=True)
class Estimate:
    """The size of a cache.

    Attributes:
        total_bytes: all layers, all tokens, all sequences of the batch; one copy.
        bytes_per_token_growing: what each further token of one sequence adds in the long run.
        constant_bytes: what one sequence keeps whatever its length, once its windows are full.
        settled_at: the length from which on the last window is full.
        read_bytes: read from the cache to decode one token of every sequence.
        ledger: the same by layers.
        assumptions: what the numbers take for granted.
        per_rank: the same for one device of several.
    """

    total_bytes: int
    bytes_per_token_growing: int | Fraction
    constant_bytes: int | Fraction
    settled_at: int
    read_bytes: int
    ledger: tuple[LedgerRow, ...]
    assumptions: tuple[Text, ...]
    per_rank: RankEstimate


def cache_bytes(
    spec: ModelSpec,
    tokens: int,
    batch: int = 1,
    dtype: str | Dtype = "bf16",
    *,
    kv_format: str | CacheFormat | None = None,
    ranks: Ranks = ONE_DEVICE,
    include_mtp: bool = False,
) -> Estimate:
    """The cache of `batch` sequences of `tokens` tokens each.

    Args:
        spec: the model.
        tokens: tokens kept per sequence, prompt and output together.
        batch: sequences of that length, none sharing a prefix.
        dtype: the model's element format, in which Keys and Values are kept unless `kv_format` says otherwise.
        kv_format: a packed format of the cache (`explorer.specs.formats.FORMATS`).
        ranks: devices that share it.
        include_mtp: count the multi-token-prediction layers too.

    Raises:
        InputError: a size is out of range, a format is unknown, or the ranks cannot share the heads.
    """
    tokens, batch, form = whole("tokens", tokens), whole("batch", batch), format_of(dtype, kv_format)
    found = sums.groups(spec, include_mtp)
    keep = sums.kept(found, form)
    ledger = tuple(_row(group, tokens, batch, form) for group in found)
    return Estimate(
        total_bytes=batch * pieces.total(keep, tokens),
        bytes_per_token_growing=pieces.slope(keep),
        constant_bytes=pieces.constant(keep),
        settled_at=pieces.settled_at(keep),
        read_bytes=sum(row.read_bytes for row in ledger),
        ledger=ledger,
        assumptions=assumptions_of(spec, tokens, form, ranks, include_mtp),
        per_rank=_per_rank(spec, tokens, batch, form, ranks, include_mtp),
    )


def format_of(dtype: str | Dtype, kv_format: str | CacheFormat | None = None) -> CacheFormat:
    """The cache's format: `kv_format` over a model in `dtype`, or plain `dtype`.

    Raises:
        InputError: one is unknown, or they do not go together.
    """
    return cache_format(dtype) if kv_format is None else cache_format(kv_format, dtype)


def largest_tokens_that_fit(
    spec: ModelSpec,
    memory_bytes: int,
    weight_bytes: int,
    batch: int = 1,
    dtype: str | Dtype = "bf16",
    *,
    kv_format: str | CacheFormat | None = None,
) -> int:
    """The longest context for which `batch` caches fit into the memory that the weights leave; 0 if none does.

    Only weights and cache are counted: activations, workspace and the runtime want memory too. At most `MAX_TOKENS`.

    Raises:
        InputError: a size is out of range or the format is unknown.
    """
    room = whole("memory_bytes", memory_bytes) - whole("memory_bytes", weight_bytes, shown_as="weight_bytes")
    batch, keep = whole("batch", batch), sums.kept(sums.groups(spec), format_of(dtype, kv_format))
    return sums.longest(keep, lambda size: batch * size <= room, MAX_TOKENS)


def crossing_tokens(
    spec: ModelSpec,
    weight_bytes: int,
    batch: int = 1,
    dtype: str | Dtype = "bf16",
    *,
    kv_format: str | CacheFormat | None = None,
) -> int | None:
    """The shortest context at which `batch` caches are larger than the weights; None if not within `MAX_TOKENS`.

    Raises:
        InputError: a size is out of range or the format is unknown.
    """
    weights = whole("memory_bytes", weight_bytes, shown_as="weight_bytes")
    batch, keep = whole("batch", batch), sums.kept(sums.groups(spec), format_of(dtype, kv_format))
    last_below = sums.longest(keep, lambda size: batch * size <= weights, MAX_TOKENS)
    return None if last_below == MAX_TOKENS else last_below + 1


def _row(group: Group, tokens: int, batch: int, form: CacheFormat) -> LedgerRow:
    layer, number = group.layer, len(group.indices)
    return LedgerRow(
        kind=layer.kind,
        title=layer.title,
        layers=group.indices,
        owner=layer.owner if isinstance(layer, SharedFromOwner) else None,
        mtp=group.mtp,
        shape=layer.shape(),
        formats=tuple(dict.fromkeys((tensor.role, tensor.format_name(form)) for tensor in layer.tensors())),
        bytes_each=layer.bytes_at(tokens, form),
        bytes_per_token_growing=number * layer.growing_bytes_per_token(form),
        constant_bytes=number * layer.constant_bytes(form),
        total_bytes=batch * number * layer.bytes_at(tokens, form),
        read_bytes=batch * number * layer.read_bytes_at(tokens, form),
    )


def _per_rank(
    spec: ModelSpec, tokens: int, batch: int, form: CacheFormat, ranks: Ranks, include_mtp: bool
) -> RankEstimate:
    stages = []
    for number, layers in enumerate(ranks.stages(spec), start=1):
        drafts = spec.mtp_layers if include_mtp and number == ranks.pp else ()
        stages.append(sums.kept(sums.groups_of((*layers, *drafts)), form, ranks.tp))
    fullest = max(stages, key=lambda keep: pieces.total(keep, tokens))
    sequences = ranks.sequences(batch)
    return RankEstimate(
        ranks=ranks,
        sequences=sequences,
        total_bytes=sequences * pieces.total(fullest, tokens),
        bytes_per_token_growing=pieces.slope(fullest),
        constant_bytes=pieces.constant(fullest),
        all_ranks_bytes=batch * ranks.tp * sum(pieces.total(keep, tokens) for keep in stages),
    )

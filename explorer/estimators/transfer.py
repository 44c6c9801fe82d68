"""The least time that bytes take: from memory to the processor in a decode step, over a link when a cache moves.

Everything here is bytes divided by bandwidth, so it is a lower bound and never a forecast: computation, latency,
synchronisation and scheduling come on top, and may overlap. Whole numbers throughout; a time is whole nanoseconds,
rounded half up, so that the browser's copy (`assets/js/worked-example-math.js`) gives the same digits.
"""

from dataclasses import dataclass

from explorer.errors import InputError
from explorer.estimators import sums
from explorer.estimators.memory import format_of
from explorer.estimators.ranks import Ranks
from explorer.specs import pieces, units
from explorer.specs.dtypes import Dtype
from explorer.specs.limits import LIMITS, short, whole
from explorer.specs.model import ModelSpec

NS_PER_S = 10**9
_TIMES = ((1, "ns"), (10**3, "µs"), (10**6, "ms"), (NS_PER_S, "s"))


@dataclass(frozen=True)
class Step:
    """What one decode step reads on one tensor-parallel rank, and the least time that takes.

    Attributes:
        batch: sequences that each get one token.
        weight_bytes: the rank's share of the weights, read once for the whole batch.
        kv_bytes: the cache of all sequences on this rank, read once each.
        ns: time to read both at the given bandwidth.
        kv_ns: time to read the cache alone.
        even_batch: the smallest batch whose caches are at least as many bytes as the weights.
    """

    batch: int
    weight_bytes: int
    kv_bytes: int
    ns: int
    kv_ns: int
    even_batch: int

    @property
    def total_bytes(self) -> int:
        """Weights and cache."""
        return self.weight_bytes + self.kv_bytes

    @property
    def bytes_per_token(self) -> int:
        """Bytes read for each token that comes out, rounded half up."""
        return divided(self.total_bytes, self.batch)


@dataclass(frozen=True)
class Move:
    """Fetching a cache over a link, against computing it again.

    Attributes:
        num_bytes: what crosses the link.
        load_ns: the least time for that.
        load_tokens_per_s: tokens whose cache crosses in a second.
        recompute_ns: time to prefill as many tokens at the given rate.
        break_even_bytes_per_s: the bandwidth at which both take equally long.
    """

    num_bytes: int
    load_ns: int
    load_tokens_per_s: int
    recompute_ns: int
    break_even_bytes_per_s: int


def divided(above: int, below: int) -> int:
    """`above / below` as a whole number, rounded half up."""
    return (2 * above + below) // (2 * below)


def transfer_ns(num_bytes: int, bytes_per_s: int) -> int:
    """The least time for `num_bytes` at `bytes_per_s`, in nanoseconds: 8 GiB at 3 TB/s are 2,863,312.

    Raises:
        InputError: a value is out of range.
    """
    return divided(whole("memory_bytes", num_bytes, shown_as="num_bytes") * NS_PER_S, rate("bytes_per_s", bytes_per_s))


def duration(ns: int) -> str:
    """A time in the unit that suits it, three decimals, rounded half up: "2.863 ms", "15.625 ms", "1.342 s"."""
    for (size, name), (following, _) in zip(_TIMES, (*_TIMES[1:], (0, "")), strict=True):
        thousandths = divided(1_000 * ns, size)
        # 999.9996 µs would round to "1,000.000 µs": then the next unit says it better.
        if not following or thousandths < 1_000 * (following // size):
            return f"{ns:,} ns" if size == 1 else f"{thousandths // 1_000:,}.{thousandths % 1_000:03d} {name}"
    raise AssertionError("the last unit always fits")


def decode_step(
    spec: ModelSpec,
    tokens: int,
    batch: int,
    bytes_per_s: int,
    *,
    dtype: str | Dtype = "bf16",
    bits_per_weight: int = 16,
    ranks: Ranks | None = None,
) -> Step:
    """One decode step of `batch` sequences with `tokens` cached tokens each, seen from one rank.

    Counted: all weights once (their input embedding too, of which a step looks up a row only), and the whole readable
    cache of each sequence once, shared prefixes not merged. Not counted: activations, the exchange between ranks.

    Args:
        spec: the model; its number of weights must be known.
        tokens: cached tokens that a sequence can see.
        batch: sequences.
        bytes_per_s: effective read bandwidth of one rank.
        dtype: the cache's element format.
        bits_per_weight: of the weights as stored, scales not counted.
        ranks: tensor-parallel ranks; the weights are taken to split evenly.

    Raises:
        InputError: a value is out of range, the weights are not known, or the ranks cannot share the heads.
    """
    tokens, batch, tp = whole("tokens", tokens), whole("batch", batch), _tp(ranks)
    weights = rank_weight_bytes(spec, bits_per_weight, tp)
    each = pieces.total(sums.read(sums.groups(spec), format_of(dtype), tp), tokens)
    return Step(
        batch=batch,
        weight_bytes=weights,
        kv_bytes=batch * each,
        ns=transfer_ns(weights + batch * each, bytes_per_s),
        kv_ns=transfer_ns(batch * each, bytes_per_s),
        even_batch=-(-weights // each),
    )


def move(tokens: int, bytes_per_token: int, bytes_per_s: int, prefill_tokens_per_s: int) -> Move:
    """Fetch the cache of `tokens` tokens once, or prefill them again.

    Args:
        tokens: how many.
        bytes_per_token: of their cache.
        bytes_per_s: effective bandwidth of the link.
        prefill_tokens_per_s: the rate at which the serving engine prefills, measured where it matters.

    Raises:
        InputError: a value is out of range.
    """
    tokens, each = whole("tokens", tokens), rate("bytes_per_token", bytes_per_token)
    link, prefill = rate("bytes_per_s", bytes_per_s), rate("prefill_tokens_per_s", prefill_tokens_per_s)
    return Move(
        num_bytes=tokens * each,
        load_ns=transfer_ns(tokens * each, link),
        load_tokens_per_s=divided(link, each),
        recompute_ns=divided(tokens * NS_PER_S, prefill),
        break_even_bytes_per_s=prefill * each,
    )


def rank_weight_bytes(spec: ModelSpec, bits_per_weight: int, tp: int) -> int:
    """A rank's share of the weights, split evenly and rounded up; replicated norms and the like are not counted.

    Raises:
        InputError: the number of weights is not known.
    """
    all_bytes = spec.weight_bytes(bits_per_weight)
    if all_bytes is None:
        raise InputError(
            f"{spec.name}: the number of weights is not known; take a model of the catalogue",
            f"{spec.name}：不知道权重个数，请改用目录中的模型",
        )
    return -(-all_bytes // tp)


def rate(name: str, value: object) -> int:
    """`value` as a positive whole number of something per something.

    Raises:
        InputError: it is none.
    """
    high = LIMITS["memory_bytes"].high
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= high:
        raise InputError(
            f"{name}={short(value)}: expected a whole number, 1 to {units.count(high)}",
            f"{name}={short(value)}：应为 1 到 {units.count(high)} 的整数",
        )
    return value


def _tp(ranks: Ranks | None) -> int:
    if ranks is None:
        return 1
    if ranks.pp != 1 or ranks.dp != 1:
        raise InputError(
            f"pp={ranks.pp}, dp={ranks.dp}: a step is seen from one tensor-parallel rank; expected pp=1 and dp=1",
            f"pp={ranks.pp}、dp={ranks.dp}：这里只看张量并行的一张卡，pp 和 dp 都应为 1",
        )
    return ranks.tp

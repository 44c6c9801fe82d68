"""How large a cache is, what it is made of, and where it meets the limits of a device. Whole numbers throughout.

The standard formula, `2 * L * H_kv * D * T * B * S` bytes, is what this sum comes to when every layer is full attention
with Keys and Values of one size.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby

from explorer.specs.dtypes import Dtype, dtype_of
from explorer.specs.limits import LIMITS, whole
from explorer.specs.model import ModelSpec
from explorer.text import Text

MAX_TOKENS = LIMITS["tokens"].high


@dataclass(frozen=True)
class LedgerRow:
    """What a run of like layers contributes.

    Attributes:
        kind: the layer kind's name ("full_attention").
        title: its display name.
        first_layer: index of the first of these layers.
        num_layers: how many of them.
        bytes_per_token_growing: what each further token of one sequence adds, in all of them together.
        constant_bytes: what they keep for one sequence whatever its length.
        total_bytes: all of it, for the whole batch.
        read_bytes: read from them to decode one token of every sequence.
    """

    kind: str
    title: Text
    first_layer: int
    num_layers: int
    bytes_per_token_growing: int
    constant_bytes: int
    total_bytes: int
    read_bytes: int


@dataclass(frozen=True)
class Estimate:
    """The size of a cache.

    Attributes:
        total_bytes: all layers, all tokens, all sequences of the batch.
        bytes_per_token_growing: what each further token of one sequence adds.
        constant_bytes: what one sequence keeps whatever its length.
        read_bytes: read from the cache to decode one token of every sequence.
        ledger: the same by layers.
        assumptions: what the numbers take for granted.
    """

    total_bytes: int
    bytes_per_token_growing: int
    constant_bytes: int
    read_bytes: int
    ledger: tuple[LedgerRow, ...]
    assumptions: tuple[Text, ...]


def cache_bytes(spec: ModelSpec, tokens: int, batch: int = 1, dtype: str | Dtype = "bf16") -> Estimate:
    """The cache of `batch` sequences of `tokens` tokens each.

    Args:
        spec: the model.
        tokens: tokens kept per sequence, prompt and output together.
        batch: sequences of that length, none sharing a prefix.
        dtype: the element format of Keys and Values.

    Raises:
        InputError: a size is out of range or the format is unknown.
    """
    tokens, batch, form = whole("tokens", tokens), whole("batch", batch), dtype_of(dtype)
    ledger = []
    first = 0
    for layer, run in groupby(spec.layers):
        number = len(list(run))
        ledger.append(
            LedgerRow(
                kind=layer.kind,
                title=layer.title,
                first_layer=first,
                num_layers=number,
                bytes_per_token_growing=number * layer.growing_bytes_per_token(form.element_bytes),
                constant_bytes=number * layer.constant_bytes(form.element_bytes),
                total_bytes=batch * number * layer.bytes_at(tokens, form.element_bytes),
                read_bytes=batch * number * layer.read_bytes_at(tokens, form.element_bytes),
            )
        )
        first += number
    return Estimate(
        total_bytes=sum(row.total_bytes for row in ledger),
        bytes_per_token_growing=sum(row.bytes_per_token_growing for row in ledger),
        constant_bytes=sum(row.constant_bytes for row in ledger),
        read_bytes=sum(row.read_bytes for row in ledger),
        ledger=tuple(ledger),
        assumptions=_assumptions(spec, tokens, form),
    )


def largest_tokens_that_fit(
    spec: ModelSpec, memory_bytes: int, weight_bytes: int, batch: int = 1, dtype: str | Dtype = "bf16"
) -> int:
    """The longest context for which `batch` caches fit into the memory that the weights leave; 0 if none does.

    Only weights and cache are counted: activations, workspace and the runtime want memory too. At most `MAX_TOKENS`.

    Raises:
        InputError: a size is out of range or the format is unknown.
    """
    room = whole("memory_bytes", memory_bytes) - whole("memory_bytes", weight_bytes, shown_as="weight_bytes")
    batch, element_bytes = whole("batch", batch), dtype_of(dtype).element_bytes
    return _longest(lambda tokens: _total(spec, tokens, batch, element_bytes) <= room)


def crossing_tokens(spec: ModelSpec, weight_bytes: int, batch: int = 1, dtype: str | Dtype = "bf16") -> int | None:
    """The shortest context at which `batch` caches are larger than the weights; None if not within `MAX_TOKENS`.

    Raises:
        InputError: a size is out of range or the format is unknown.
    """
    weights = whole("memory_bytes", weight_bytes, shown_as="weight_bytes")
    batch, element_bytes = whole("batch", batch), dtype_of(dtype).element_bytes
    last_below = _longest(lambda tokens: _total(spec, tokens, batch, element_bytes) <= weights)
    return None if last_below == MAX_TOKENS else last_below + 1


def _total(spec: ModelSpec, tokens: int, batch: int, element_bytes: int) -> int:
    return batch * sum(len(list(run)) * layer.bytes_at(tokens, element_bytes) for layer, run in groupby(spec.layers))


def _longest(fits: Callable[[int], bool]) -> int:
    """The largest length in 0..MAX_TOKENS that fits. A cache never shrinks with length, so halving finds it."""
    low, high = 0, MAX_TOKENS
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def _assumptions(spec: ModelSpec, tokens: int, form: Dtype) -> tuple[Text, ...]:
    lines = [
        Text(
            "only the Keys and Values are counted: no weights, activations, unfilled slots of the last block, "
            "alignment or runtime overhead",
            "只计 Key 与 Value：不含权重、激活、最后一个块未填满的槽位、对齐和运行时开销",
        ),
        Text(
            "every sequence has this length and keeps its own copy: no shared prefix",
            "每条序列长度相同、各存一份：不考虑共享前缀",
        ),
        Text(
            "one device holds it all: no tensor or pipeline parallelism",
            "全部放在一个设备上：不考虑张量并行或流水线并行",
        ),
    ]
    if form.note is not None:
        lines.append(form.note)
    if spec.max_positions is not None and tokens > spec.max_positions:
        lines.append(
            Text(
                f"{tokens:,} tokens is beyond the {spec.max_positions:,} positions that the config states: "
                "the arithmetic holds, the model may not",
                f"{tokens:,} 个 token 超过了配置写明的 {spec.max_positions:,} 个位置：算术成立，模型未必可用",
            )
        )
    return (*spec.assumptions, *lines)

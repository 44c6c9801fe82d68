"""What sizes are taken: one table for configs, estimators, the command line and the page's controls.

Wide enough for every published model with room to spare, narrow enough that no input can make a sum long to compute.
"""

from dataclasses import dataclass

from explorer.errors import InputError
from explorer.text import Text


@dataclass(frozen=True)
class Limit:
    """The smallest and largest whole number taken for one quantity.

    Attributes:
        low: smallest.
        high: largest.
        label: what it is called.
    """

    low: int
    high: int
    label: Text


LIMITS: dict[str, Limit] = {
    "num_layers": Limit(1, 1_024, Text("layers", "层数")),
    "num_heads": Limit(1, 1_024, Text("attention heads", "注意力头数")),
    "num_kv_heads": Limit(1, 1_024, Text("KV heads", "KV 头数")),
    "head_dim": Limit(1, 4_096, Text("head dimension", "头维度")),
    "hidden_size": Limit(1, 1_048_576, Text("hidden size", "隐藏维度")),
    "max_positions": Limit(1, 2**30, Text("positions", "位置数")),
    "window": Limit(1, 2**30, Text("tokens of a window", "窗口的 token 数")),
    "max_window_layers": Limit(0, 1_024, Text("layers without a window", "不带窗口的层数")),
    "shared_layers": Limit(0, 1_024, Text("layers that share a cache", "共享缓存的层数")),
    "mtp_layers": Limit(0, 64, Text("draft layers", "草稿层数")),
    "pattern": Limit(1, 1_024, Text("layers of a pattern", "一个周期的层数")),
    "latent_dim": Limit(0, 65_536, Text("latent dimension", "潜变量维度")),
    "index_dim": Limit(0, 4_096, Text("dimension of an indexer key", "索引器 Key 的维度")),
    "topk": Limit(1, 2**30, Text("chosen tokens", "选取的 token 数")),
    "ratio": Limit(1, 65_536, Text("tokens of a compressed entry", "一个压缩条目的 token 数")),
    "state_dim": Limit(1, 65_536, Text("state dimension", "状态维度")),
    "state_heads": Limit(1, 1_048_576, Text("heads or channels of a state", "状态的头数或通道数")),
    "kernel": Limit(1, 1_024, Text("taps of a convolution", "卷积核长度")),
    "encoder_tokens": Limit(1, 2**24, Text("encoder tokens", "编码器 token 数")),
    "group_size": Limit(1, 65_536, Text("elements of a group", "每组元素数")),
    "residual_length": Limit(1, 65_536, Text("tokens kept unpacked", "不压缩的 token 数")),
    "tp": Limit(1, 1_024, Text("tensor-parallel ranks", "张量并行的卡数")),
    "pp": Limit(1, 1_024, Text("pipeline stages", "流水线级数")),
    "tokens": Limit(1, 2**30, Text("tokens", "token 数")),
    "batch": Limit(1, 65_536, Text("sequences in the batch", "批次中的序列数")),
    "memory_bytes": Limit(0, 2**53 - 1, Text("bytes of memory", "显存字节数")),
}


def whole(name: str, value: object, *, shown_as: str | None = None) -> int:
    """`value` as the whole number that `LIMITS[name]` allows.

    Args:
        name: a key of `LIMITS`.
        value: anything; only a real whole number inside the limits passes (no string, no True, no NaN).
        shown_as: the name that the caller knows it by (`num_hidden_layers`); default `name`.

    Raises:
        InputError: with the range that would be right.
    """
    limit = LIMITS[name]
    usable = isinstance(value, int | float) and not isinstance(value, bool) and value == value
    if usable and limit.low <= value <= limit.high and int(value) == value:  # type: ignore[operator, call-overload]
        return int(value)  # type: ignore[call-overload]
    given, name = short(value), shown_as or name
    raise InputError(
        f"{name}={given}: expected a whole number of {limit.label.en}, {limit.low:,} to {limit.high:,}",
        f"{name}={given}：{limit.label.zh}应为整数，{limit.low:,} 到 {limit.high:,}",
    )


def short(value: object) -> str:
    """`value` as it may stand in an error line: quoted if it is text, one line, at most 40 characters."""
    if isinstance(value, list | tuple | dict | set):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, int) and abs(value) >= 10**15:
        return "a number of more than 15 digits"
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."

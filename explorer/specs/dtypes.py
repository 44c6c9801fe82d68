"""How many bytes one stored element takes.

Only formats whose element is a whole number of bytes: 4- and 2-bit caches carry scales and zero points that weigh as
much as the saving they promise, so they are sized where those are counted, not here.
"""

from dataclasses import dataclass

from explorer.errors import InputError
from explorer.text import Text


@dataclass(frozen=True)
class Dtype:
    """One element format of a cache.

    Attributes:
        name: "bf16".
        element_bytes: bytes of one element.
        note: what the number leaves out, if anything.
    """

    name: str
    element_bytes: int
    note: Text | None = None


_SCALES = Text(
    "{name} needs scales as well; they are not counted (one per tensor is next to nothing, one fp32 per head and token "
    "adds 4 bytes for every head_dim elements)",
    "{name} 还需要 scale，这里没有计入（每个张量一个可以忽略；"
    "每个头、每个 token 一个 fp32，则每 head_dim 个元素多 4 字节）",
)

DTYPES: dict[str, Dtype] = {
    dtype.name: dtype
    for dtype in (
        Dtype("fp32", 4),
        Dtype("bf16", 2),
        Dtype("fp16", 2),
        Dtype("fp8", 1, _SCALES.format(name="fp8")),
        Dtype("int8", 1, _SCALES.format(name="int8")),
    )
}

_ALIASES = {
    "float32": "fp32",
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "fp8_e4m3": "fp8",
    "fp8_e5m2": "fp8",
}


def dtype_of(name: str | Dtype) -> Dtype:
    """The format called `name` (also by torch's names: "bfloat16").

    Raises:
        InputError: there is none; says which there are.
    """
    if isinstance(name, Dtype):
        return name
    key = str(name).strip().lower()[:40]
    key = _ALIASES.get(key, key)
    if key not in DTYPES:
        known = ", ".join(DTYPES)
        raise InputError(
            f"dtype={key!r}: expected one of {known} (4-bit caches need their scales counted and are not here)",
            f"dtype={key!r}：应为 {known} 之一（4 位缓存必须计入 scale，不在此表中）",
        )
    return DTYPES[key]

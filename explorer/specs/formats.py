"""How a cache writes its elements: plain, or packed with the scales that a packed format cannot do without.

A 4-bit cache never takes 4 bits an element: q4_0 adds a 16-bit scale to every 32 elements (4.5 bits), KIVI a scale and
a zero point to every group, and it keeps its latest tokens unpacked. What is counted here is what lies in memory.
"""

import re
from dataclasses import dataclass, replace

from explorer.errors import InputError
from explorer.specs.dtypes import DTYPES, Dtype, dtype_of
from explorer.specs.limits import short, whole
from explorer.text import Text

_NAMES = {
    "key": Text("Keys", " Key"),
    "value": Text("Values", " Value"),
    "kv": Text("vectors that are Key and Value in one", "兼作 Key 与 Value 的向量"),
    "latent": Text("latents", "潜变量"),
    "position": Text("their RoPE parts", "潜变量的 RoPE 部分"),
    "index": Text("indexer keys", "索引器 Key"),
}
_KEY_VALUE = frozenset({"key", "value"})


@dataclass(frozen=True)
class Packing:
    """How one row of elements is written.

    Attributes:
        bits: of one element.
        group_size: elements that share a scale; None if no scale is stored, 0 for one scale a row and head.
        group_bytes: bytes of the scale, and of the zero point if there is one.
    """

    bits: int
    group_size: int | None = None
    group_bytes: int = 0

    def row_bytes(self, elements: int) -> int:
        """Bytes of a row of `elements`; a last group that is not full has its scale too."""
        payload = -(-elements * self.bits // 8)
        if self.group_size is None:
            return payload
        groups = 1 if self.group_size == 0 else -(-elements // self.group_size)
        return payload + groups * self.group_bytes


@dataclass(frozen=True)
class CacheFormat:
    """How a cache is written.

    Attributes:
        name: "bf16", "q4_0", "kivi-2".
        packing: of Keys and Values.
        compute: the model's own element format: of whatever is not packed.
        latent: of an MLA latent; None if it is written like Keys and Values.
        position: of an MLA latent's RoPE part; None if it is packed with the latent.
        index: of indexer keys; None if they are written like Keys and Values.
        residual_length: latest tokens that stay unpacked (KIVI); Keys are packed `residual_length` tokens at a time.
        roles: tensors that it is defined for; None for all. It is refused for a model that keeps another.
        note: what the number leaves out or takes for granted.
    """

    name: str
    packing: Packing
    compute: Dtype
    latent: Packing | None = None
    position: Packing | None = None
    index: Packing | None = None
    residual_length: int = 0
    roles: frozenset[str] | None = None
    note: Text | None = None

    def of(self, role: str) -> Packing:
        """The packing of a tensor of this role.

        Raises:
            InputError: the format is not defined for it.
        """
        if self.roles is not None and role not in self.roles:
            kept, defined = _NAMES[role], " + ".join(_NAMES[name].en for name in sorted(self.roles))
            raise InputError(
                f"kv_format={self.name}: a layout for {defined}, and this model keeps {kept.en}; choose another format",
                f"kv_format={self.name}：该布局不适用于本模型所存的{kept.zh}；请换一种格式",
            )
        own = {"latent": self.latent, "position": self.position, "index": self.index}.get(role)
        return own or self.packing

    @property
    def plain(self) -> Packing:
        """The model's own format, unpacked."""
        return Packing(8 * self.compute.element_bytes)


def plain_format(dtype: Dtype) -> CacheFormat:
    """Every element in `dtype`. What never is 8 bits wide (states, convolutions) stays bf16 beside an 8-bit cache."""
    compute = dtype if dtype.element_bytes > 1 else DTYPES["bf16"]
    return CacheFormat(dtype.name, Packing(8 * dtype.element_bytes), compute, note=dtype.note)


def _kivi(nbits: int, group_size: int, residual_length: int, compute: Dtype) -> CacheFormat:
    return CacheFormat(
        f"kivi-{nbits}",
        Packing(nbits, group_size, 4),
        compute,
        residual_length=residual_length,
        roles=_KEY_VALUE,
        note=Text(
            f"KIVI layout: {nbits} bits, an fp16 scale and zero point for every {group_size} elements, the latest "
            f"{residual_length} tokens of the Values and up to {residual_length - 1} of the Keys unpacked",
            f"KIVI 布局：{nbits} 位，每 {group_size} 个元素一组 fp16 的 scale 与零点；Value 最近 {residual_length} 个 "
            f"token、Key 最近至多 {residual_length - 1} 个 token 不压缩",
        ),
    )


_BF16 = DTYPES["bf16"]
FORMATS: dict[str, CacheFormat] = {
    form.name: form
    for form in (
        *(plain_format(dtype) for dtype in DTYPES.values()),
        CacheFormat(
            "fp8_head",
            Packing(8, 0, 4),
            _BF16,
            roles=_KEY_VALUE,
            note=Text("fp8 with an fp32 scale for every token and head", "fp8，每个 token、每个头一个 fp32 scale"),
        ),
        CacheFormat(
            "fp8_ds_mla",
            Packing(8),
            _BF16,
            latent=Packing(8, 128, 4),
            position=Packing(16),
            index=Packing(8, 128, 4),
            roles=frozenset({"latent", "position", "index"}),
            note=Text(
                "fp8_ds_mla: the latent in fp8 with an fp32 scale for every 128 elements, its RoPE part in bf16 (656 B "
                "for 512 + 64), indexer keys in fp8 with an fp32 scale (132 B for 128)",
                "fp8_ds_mla：潜变量用 fp8，每 128 个元素一个 fp32 scale，RoPE 部分用 bf16（512 + 64 共 656 B）；"
                "索引器的 Key 用 fp8 加 fp32 scale（128 维为 132 B）",
            ),
        ),
        CacheFormat(
            "q8_0",
            Packing(8, 32, 2),
            _BF16,
            note=Text(
                "q8_0: an fp16 scale for every 32 elements, 8.5 bits each",
                "q8_0：每 32 个元素一个 fp16 scale，合 8.5 位",
            ),
        ),
        CacheFormat(
            "q4_0",
            Packing(4, 32, 2),
            _BF16,
            note=Text(
                "q4_0: an fp16 scale for every 32 elements, 4.5 bits each",
                "q4_0：每 32 个元素一个 fp16 scale，合 4.5 位",
            ),
        ),
        _kivi(4, 32, 128, _BF16),
        _kivi(2, 32, 128, _BF16),
    )
}

_KIVI = re.compile(r"kivi-([248])((?:,(?:group_size|residual_length)=\d{1,6}){0,2})")


def cache_format(name: "str | int | Dtype | CacheFormat", compute: str | Dtype | None = None) -> CacheFormat:
    """The format called `name`.

    Args:
        name: a key of `FORMATS`, torch's name of a plain one ("bfloat16"), a `Dtype`, the bytes of a plain element, or
            "kivi-2,group_size=64,residual_length=32".
        compute: the model's own element format, for what a packed format leaves unpacked; default bf16.

    Raises:
        InputError: there is none; says which there are.
    """
    form = _named(name)
    if compute is None or form.packing == Packing(8 * form.compute.element_bytes):
        return form
    own = dtype_of(compute)
    if own.element_bytes == 1:
        raise InputError(
            f"dtype={own.name!r} with kv_format={form.name!r}: expected the model's own format (bf16, fp16, fp32)",
            f"dtype={own.name!r} 与 kv_format={form.name!r}：dtype 应为模型自身的格式（bf16、fp16、fp32）",
        )
    return replace(form, compute=own)


def _named(name: "str | int | Dtype | CacheFormat") -> CacheFormat:
    if isinstance(name, CacheFormat):
        return name
    if isinstance(name, Dtype):
        return plain_format(name)
    if isinstance(name, int) and not isinstance(name, bool):
        return plain_format({1: DTYPES["int8"], 2: _BF16, 4: DTYPES["fp32"]}[name])
    key = str(name).strip().lower()[:80]
    if key in FORMATS:
        return FORMATS[key]
    settings = _KIVI.fullmatch(key)
    if settings:
        return _kivi_from(int(settings[1]), settings[2])
    try:
        return plain_format(dtype_of(key))
    except InputError:
        known = ", ".join(FORMATS)
        raise InputError(
            f"kv_format={short(key)}: expected one of {known}, or kivi-2,group_size=64,residual_length=32",
            f"kv_format={short(key)}：应为 {known} 之一，或 kivi-2,group_size=64,residual_length=32",
        ) from None


def _kivi_from(nbits: int, settings: str) -> CacheFormat:
    given = dict(pair.split("=") for pair in settings.split(",") if pair)
    group_size = whole("group_size", int(given.get("group_size", 32)))
    residual_length = whole("residual_length", int(given.get("residual_length", 128)))
    if residual_length % group_size:
        raise InputError(
            f"residual_length={residual_length} is not a multiple of group_size={group_size}: Keys are packed in whole "
            "groups of tokens",
            f"residual_length={residual_length} 不是 group_size={group_size} 的整数倍：Key 按整组 token 压缩",
        )
    return _kivi(nbits, group_size, residual_length, _BF16)

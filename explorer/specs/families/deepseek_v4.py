"""DeepSeek V4: a short window in every layer, and entries made of 4 tokens (CSA) or 128 (HCA) in most."""

from typing import Any

from explorer.errors import InputError
from explorer.specs.families.deepseek import drafts
from explorer.specs.fields import Fields, missing
from explorer.specs.latent import CompressedAttention
from explorer.specs.layers import LayerKind, SlidingWindow
from explorer.specs.limits import short, whole
from explorer.specs.model import ModelSpec
from explorer.specs.readers import reader
from explorer.text import Text

_CSA, _HCA, _SLIDING = "compressed_sparse_attention", "heavily_compressed_attention", "sliding_attention"
_WITHOUT = Text(
    "the compressors' running fp32 values and gates (tokens that have no entry yet, and the run that the next entry "
    "overlaps) are not counted, as in the published 9.62 GiB",
    "不计压缩器自身的 fp32 中间状态（尚未形成条目的 token，以及与下一条目重叠的那一段），与公布的 9.62 GiB 口径一致",
)
_WITH = Text(
    "the compressors' running fp32 values and gates are counted: at most a few hundred KiB in each layer",
    "计入压缩器自身的 fp32 中间状态：每层至多几百 KiB",
)


@reader("deepseek_v4")
def read(fields: Fields) -> ModelSpec:
    """The layout is the file's `layer_types` or `compress_ratios` (0, 4 or 128 for each layer); it is never assumed."""
    num_layers = fields.layers()
    kinds = _kinds(fields)
    types = fields.names("layer_types", num_layers, kinds)
    ratios = fields.get("compress_ratios")
    if types is None:
        types = [_type_of(ratio) for ratio in fields.each("compress_ratios", num_layers) or ()]
    if not types:
        raise missing("compress_ratios")
    after = list(ratios[num_layers:]) if isinstance(ratios, list) else []
    layers = [kinds[_type_of(ratio)] for ratio in after[: drafts(fields)]]
    layers += [kinds[_SLIDING]] * (drafts(fields) - len(layers))
    return fields.spec([kinds[kind] for kind in types], mtp_layers=layers)


def _kinds(fields: Fields) -> dict[str, LayerKind]:
    dim, window = fields.count("head_dim", default=512), fields.count("sliding_window", "window", 128)
    rates = {_CSA: 4, _HCA: 128} | dict(fields.table("compress_rates"))
    counted = fields.switch("compressor-state", _WITHOUT, _WITH)
    return {
        _SLIDING: SlidingWindow(1, dim, 0, window),
        _CSA: CompressedAttention(
            dim,
            window,
            _ratio(rates[_CSA]),
            fields.count("index_head_dim", "index_dim", 128),
            fields.count("index_topk", "topk", 512),
            overlap=True,
            count_state=counted,
        ),
        _HCA: CompressedAttention(dim, window, _ratio(rates[_HCA]), count_state=counted),
    }


def _ratio(value: Any) -> int:
    return whole("ratio", value, shown_as="compress_rates")


def _type_of(ratio: Any) -> str:
    found = {0: _SLIDING, 4: _CSA, 128: _HCA}.get(ratio) if isinstance(ratio, int) else None
    if found is None:
        raise InputError(
            f"compress_ratios holds {short(ratio)}: expected 0, 4 or 128",
            f"compress_ratios 中有 {short(ratio)}：应为 0、4 或 128",
        )
    return found

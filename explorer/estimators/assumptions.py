"""What an estimate takes for granted, in words, each where it matters."""

from explorer.estimators.ranks import Ranks
from explorer.specs.formats import CacheFormat
from explorer.specs.model import ModelSpec
from explorer.text import Text

_COUNTED = Text(
    "only the cache is counted: no weights, activations, unfilled slots of the last block, alignment or runtime "
    "overhead",
    "只计缓存：不含权重、激活、最后一个块未填满的槽位、对齐和运行时开销",
)
_ALONE = Text(
    "every sequence has this length and keeps its own copy: no shared prefix",
    "每条序列长度相同、各存一份：不考虑共享前缀",
)
_ONE_DEVICE = Text(
    "one device holds it all: no tensor or pipeline parallelism",
    "全部放在一个设备上：不考虑张量并行或流水线并行",
)
_WINDOW = Text(
    "a sliding window keeps exactly its last tokens, the current one included; transformers keeps one less between "
    "steps, paged engines whole blocks and the chunk that is being prefilled",
    "滑动窗口恰好保留最近的 token（含当前 token）；transformers 在两步之间少存一个，"
    "分页引擎会多存整块以及正在 prefill 的分块",
)
_CHUNK = Text(
    "chunked attention keeps up to one whole chunk: tokens of a finished chunk lie there until they are overwritten",
    "分块注意力最多保留一整块：已结束的块中的 token 在被覆盖之前仍占位置",
)
_LATENT = Text(
    "the latent is kept as it is; an engine that expands it into per-head Keys and Values keeps many times more",
    "潜变量按原样保存；若引擎把它展开成逐头的 Key 与 Value，则要大很多倍",
)
_STATE = Text(
    "recurrent states are counted once a sequence, with the inputs that the convolution looks back on (its taps less "
    "one); copies for prefix caching or speculative decoding are not",
    "循环状态每条序列计一份，并含卷积回看的输入（卷积核长度减一）；不含为前缀缓存或投机解码保存的副本",
)
_BY_KIND = {
    "sliding_window": _WINDOW,
    "chunked_attention": _CHUNK,
    "latent": _LATENT,
    "latent_indexed": _LATENT,
    "compressed": _WINDOW,
    "recurrent_state": _STATE,
}


def assumptions_of(
    spec: ModelSpec, tokens: int, form: CacheFormat, ranks: Ranks, include_mtp: bool
) -> tuple[Text, ...]:
    """All that holds for this estimate, the reader's own first."""
    lines = [*spec.assumptions, _COUNTED, _ALONE]
    lines += dict.fromkeys(_BY_KIND[kind] for kind in _kinds(spec) if kind in _BY_KIND)
    lines.append(_spread(ranks))
    if spec.mtp_layers:
        lines.append(_drafts(len(spec.mtp_layers), include_mtp))
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
    return tuple(lines)


def _kinds(spec: ModelSpec) -> list[str]:
    found = []
    for layer in dict.fromkeys(spec.layers):
        found += [part.kind for part in getattr(layer, "parts", (layer,))]
    return found


def _spread(ranks: Ranks) -> Text:
    if ranks.devices == 1:
        return _ONE_DEVICE
    return Text(
        f"{ranks.devices} devices (tp {ranks.tp}, pp {ranks.pp}, dp {ranks.dp}): total_bytes is one copy of the whole, "
        "per_rank what the fullest device keeps; KV heads are shared, at least one a rank, latents and indexer keys "
        "copied",
        f"{ranks.devices} 个设备（tp {ranks.tp}、pp {ranks.pp}、dp {ranks.dp}）：total_bytes 为整体一份，"
        "per_rank 为最满设备所存；"
        "KV 头均分、每卡至少一个，潜变量与索引器 Key 每卡一份",
    )


def _drafts(number: int, counted: bool) -> Text:
    if counted:
        return Text(f"{number} MTP layer(s) are counted: drafting is on", f"计入 {number} 个 MTP 层：投机解码已开启")
    return Text(
        f"{number} MTP layer(s) of the checkpoint are not counted: drafting is off",
        f"未计检查点中的 {number} 个 MTP 层：投机解码未开启",
    )

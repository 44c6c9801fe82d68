"""Where transformers' cache keeps more or less than the formula counts: named rules that predict exact bytes.

A rule is arithmetic on a layer kind and a length. A wrong estimate cannot hide behind one: what the rules predict must
equal the difference to the byte, layer by layer. All were read in transformers 5.24 (`cache_utils.py` and the modelling
files) and hold for a model and a cache in bfloat16.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from explorer.specs import pieces
from explorer.specs.formats import cache_format
from explorer.specs.latent import CompressedAttention
from explorer.specs.layers import ChunkedAttention, Combined, LayerKind, SlidingWindow
from explorer.text import Text

FORMAT = "bf16"
_ELEMENT = 2
_FP32 = 4
_SCALAR = 8

# Families whose code keeps a recurrent state in the model's own format; all others keep it in fp32.
_STATE_IN_MODEL_FORMAT = frozenset({"minimax"})
# Families whose earlier inputs are a token shift, not a convolution: one is needed and one is kept.
_NO_KERNEL = frozenset({"rwkv"})


@dataclass(frozen=True)
class Rule:
    """A named difference between an implementation and the formula.

    Attributes:
        name: short, for a table ("window keeps W-1").
        text: what happens and why.
        predict: layer kind, tokens seen and model type to bytes beyond the formula (negative: fewer); 0 where the rule
            does not apply.
    """

    name: str
    text: Text
    predict: Callable[[LayerKind, int, str], int]


def _one_less(layer: LayerKind, kv_len: int, model_type: str) -> int:
    del model_type
    window = _window(layer)
    if window is None or kv_len < window:
        return 0
    if isinstance(layer, CompressedAttention):
        return -layer.dim * _ELEMENT
    return -sum(tensor.heads * tensor.dim for tensor in layer.tensors()) * _ELEMENT


def _kept_twice(layer: LayerKind, kv_len: int, model_type: str) -> int:
    del model_type
    if not isinstance(layer, SlidingWindow) or layer.value_dim:
        return 0
    return layer.num_kv_heads * layer.key_dim * min(kv_len, layer.window - 1) * _ELEMENT


def _window_length(layer: LayerKind, kv_len: int, model_type: str) -> int:
    del kv_len, model_type
    return 0 if _window(layer) is None else _SCALAR


def _whole_kernel(layer: LayerKind, kv_len: int, model_type: str) -> int:
    del kv_len
    if model_type in _NO_KERNEL:
        return 0
    return sum(tensor.heads * tensor.dim for tensor in layer.tensors() if tensor.role == "conv") * _ELEMENT


def _state_format(layer: LayerKind, kv_len: int, model_type: str) -> int:
    kept = _ELEMENT if model_type in _STATE_IN_MODEL_FORMAT else _FP32
    return sum(
        tensor.heads * tensor.dim * sum(weight * rows.at(kv_len) for weight, rows in tensor.rows) * kept
        - pieces.total(tensor.pieces(cache_format(FORMAT)), kv_len)
        for tensor in layer.tensors()
        if tensor.role == "state"
    )


def _compressor(layer: LayerKind, kv_len: int, model_type: str) -> int:
    """Tokens without an entry yet: value and gate in bf16; the carried half of the last run: value bf16, gate fp32."""
    del model_type
    if not isinstance(layer, CompressedAttention):
        return 0
    dims = [dim for dim in (layer.dim, layer.index_dim) if dim]
    width = 2 if layer.overlap else 1
    kept = sum(2 * width * dim * (kv_len % layer.ratio) * _ELEMENT for dim in dims)
    if layer.overlap and kv_len >= layer.ratio:
        kept += sum(layer.ratio * dim * (_ELEMENT + _FP32) for dim in dims)
    counted = [tensor for tensor in layer.tensors() if tensor.role == "compressor"]
    return kept - sum(pieces.total(tensor.pieces(cache_format(FORMAT)), kv_len) for tensor in counted)


def _window(layer: LayerKind) -> int | None:
    if isinstance(layer, SlidingWindow | CompressedAttention):
        return layer.window
    return layer.chunk if isinstance(layer, ChunkedAttention) else None


RULES: tuple[Rule, ...] = (
    Rule(
        "window keeps W-1",
        Text(
            "between steps a window of W holds W - 1 tokens: the W-th is the token that comes next",
            "两步之间，长度为 W 的窗口只存 W - 1 个 token：第 W 个就是即将到来的那个",
        ),
        _one_less,
    ),
    Rule(
        "K = V kept twice",
        Text(
            "DeepSeek-V4's layers with a window alone store the vector that is both Key and Value as two tensors; its "
            "compressed layers store it once",
            "DeepSeek-V4 中只有窗口的层把同一向量作为 Key 与 Value 存了两份；带压缩的层只存一份",
        ),
        _kept_twice,
    ),
    Rule(
        "window length",
        Text(
            "each layer with a window also keeps the window's length, one 8-byte integer",
            "带窗口的层还各存一个 8 字节整数：窗口长度",
        ),
        _window_length,
    ),
    Rule(
        "conv keeps K",
        Text(
            "a convolution with K taps keeps K inputs instead of the K - 1 that the next step needs",
            "K 抽头的卷积存了 K 个输入，而下一步只需要 K - 1 个",
        ),
        _whole_kernel,
    ),
    Rule(
        "state format",
        Text(
            "recurrent states are kept in fp32, in MiniMax's code in the model's own format",
            "循环状态以 fp32 保存；MiniMax 的代码用模型自身的格式",
        ),
        _state_format,
    ),
    Rule(
        "compressor",
        Text(
            "the compressor's own memory: values and gates of tokens without an entry yet, and of the run before them",
            "压缩器自己的存储：尚未成条目的 token 的值与门控，以及前一段的",
        ),
        _compressor,
    ),
)


def predicted(layer: LayerKind, kv_len: int, model_type: str) -> dict[str, int]:
    """What the rules say that transformers keeps beyond the formula in one layer, by rule; rules of 0 left out."""
    found: dict[str, int] = {}
    for part in _parts(layer):
        for rule in RULES:
            num_bytes = rule.predict(part, kv_len, model_type)
            if num_bytes:
                found[rule.name] = found.get(rule.name, 0) + num_bytes
    return found


def _parts(layer: LayerKind) -> Iterable[LayerKind]:
    return layer.parts if isinstance(layer, Combined) else (layer,)

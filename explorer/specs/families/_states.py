"""Recurrent states: the format that they are kept in, and which layers have one."""

from explorer.specs.fields import Fields
from explorer.specs.states import RecurrentState, delta_net
from explorer.text import Text

LINEAR, FULL = "linear_attention", "full_attention"
_NAMED = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}
_FP32 = Text(
    "recurrent states are kept in fp32, as transformers and the published kernels do; convolution inputs in the "
    "model's own format",
    "循环状态按 fp32 保存，与 transformers 及公开的 kernel 一致；卷积输入按模型自身的格式",
)
_OWN = Text(
    "recurrent states are kept in the model's own format, like the convolution inputs",
    "循环状态与卷积输入一样按模型自身的格式保存",
)


def state_dtype(fields: Fields) -> str | None:
    """The format of a state: what the file names, else "fp32"; None for the model's own, which some engines choose."""
    for field in ("mamba_ssm_dtype", "mamba_ssm_cache_dtype"):
        named = _NAMED.get(str(fields.get(field)))
        if named:
            fields.assume(f"recurrent states are kept in {named}: {field}", f"循环状态按 {named} 保存：{field}")
            return named
    return None if fields.switch("state-in-model-dtype", _FP32, _OWN) else "fp32"


def every_nth_full(num_layers: int, interval: int) -> list[str]:
    """Layer `interval`, `2 * interval`, ... (counted from 1) attends to everything, the others keep a state."""
    return [FULL if (i + 1) % interval == 0 else LINEAR for i in range(num_layers)]


def gated_delta_net(fields: Fields) -> RecurrentState:
    """Gated DeltaNet as Qwen states it: the defaults are those of Qwen3-Next and Qwen3.5 alike."""
    return delta_net(
        "Gated DeltaNet",
        (
            fields.count("linear_num_key_heads", "state_heads", 16),
            fields.count("linear_key_head_dim", "state_dim", 128),
        ),
        (
            fields.count("linear_num_value_heads", "state_heads", 32),
            fields.count("linear_value_head_dim", "state_dim", 128),
        ),
        fields.count("linear_conv_kernel_dim", "kernel", 4),
        dtype=state_dtype(fields),
    )

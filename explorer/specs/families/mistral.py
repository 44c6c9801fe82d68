"""Mistral and Mixtral: one window for all layers, or none."""

from explorer.errors import InputError
from explorer.specs.families._windows import attention
from explorer.specs.fields import Fields
from explorer.specs.model import ModelSpec
from explorer.specs.readers import reader


@reader("mistral")
def read_mistral(fields: Fields) -> ModelSpec:
    """Mistral 7B v0.1 has a window of 4,096, later ones write null; a file that says nothing is not guessed at."""
    if "sliding_window" not in fields and fields.flag("use_sliding_window", True):
        raise InputError(
            "the config has no sliding_window, for which Mistral's own default is a window of 4,096: "
            "write null for full attention",
            "配置中没有 sliding_window，而 Mistral 的默认值是 4,096 的窗口：若为全注意力，请写 null",
        )
    return _read(fields)


@reader("mixtral")
def read_mixtral(fields: Fields) -> ModelSpec:
    """No window unless the file names one."""
    return _read(fields)


def _read(fields: Fields) -> ModelSpec:
    num_layers, num_heads = fields.layers(), fields.heads()
    head_dim = fields.head_dim(num_heads)
    window = fields.optional("sliding_window", "window") if fields.flag("use_sliding_window", True) else None
    return fields.spec([attention(fields.kv_heads(num_heads, required=True), head_dim, window)] * num_layers)

"""A source cannot give the weights now: the next one is tried, and if none is left the reader is told all reasons."""

from explorer.errors import ResourceError
from explorer.text import Text

WAYS_OUT = Text(
    "The model's weights are not on this machine and could not be fetched ({reasons}). Connect to a network and try "
    "again; or run `python -m explorer fetch` on a connected machine and copy its cache folder here; or give a local "
    "folder with config.json, safetensors and tokenizer.",
    "本机没有模型权重，也无法获取（{reasons}）。三种办法：联网后重试；在联网的机器上运行 "
    "`python -m explorer fetch`，再把它的缓存目录复制过来；或者给出包含 config.json、safetensors 与 tokenizer "
    "的本地文件夹。",
)


class SourceError(Exception):
    """Why a source gave nothing: a few words that fit into brackets within a longer line."""

    def __init__(self, reason: Text):
        self.reason = reason
        super().__init__(reason.en)


def ways_out(reasons: list[Text]) -> ResourceError:
    """The error that says why every source failed, and the three ways on."""
    return ResourceError(
        WAYS_OUT.en.format(reasons="; ".join(reason.en for reason in reasons)),
        WAYS_OUT.zh.format(reasons="；".join(reason.zh for reason in reasons)),
    )

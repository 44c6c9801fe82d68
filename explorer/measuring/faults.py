"""What went wrong in a run, in words that a reader can use."""

import logging

from explorer.errors import ExplorerError, ResourceError
from explorer.text import Text

# How torch words it, on the CPU and on CUDA (its OutOfMemoryError is a RuntimeError).
OUT_OF_MEMORY = ("not enough memory", "can't allocate memory", "out of memory")

log = logging.getLogger(__name__)


class RunError(ExplorerError):
    """A fault in the program, not in what the reader asked for."""


def understood(error: BaseException, lab: str) -> ExplorerError:
    """The error as a reader can use it; anything unforeseen is logged in full and described in one line.

    Args:
        error: what was raised.
        lab: the lab that ran, for the log.
    """
    if isinstance(error, ExplorerError):
        return error
    words = str(error).lower() if isinstance(error, RuntimeError) else ""
    if isinstance(error, MemoryError) or any(sign in words for sign in OUT_OF_MEMORY):
        return ResourceError(
            Text("not enough memory for these settings; choose smaller ones", "内存不足以支持这些参数；请把参数调小")
        )
    log.error("lab %s failed", lab, exc_info=error)
    name = type(error).__name__
    return RunError(Text(f"the run failed ({name}); the log has the details", f"运行失败（{name}）；详情见日志"))

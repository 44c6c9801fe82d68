"""The one place that knows Hugging Face's ZeroGPU: there a function must ask for the GPU, elsewhere it just runs.

On ZeroGPU the decorated function (or generator) runs in a forked worker, its arguments and results are pickled, and
only inside it is there a real device. Import this module before torch.
"""

import os
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

ZERO_GPU = os.environ.get("SPACES_ZERO_GPU", "").lower() == "true"

if ZERO_GPU:
    import spaces


def gpu(duration: int | Callable[..., int] = 60) -> Callable[[F], F]:
    """Decorator: the function may use the GPU.

    Args:
        duration: seconds to ask for, or a function of the same arguments that says so. Visitors' daily quota is checked
            against what is asked, so ask for little.

    Returns:
        A decorator: `spaces.GPU(duration=...)` on ZeroGPU, else one that returns the function unchanged.
    """
    if ZERO_GPU:
        return spaces.GPU(duration=duration)
    return lambda fn: fn

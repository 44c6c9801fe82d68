"""How a kernel's tests run it: Triton for real on a GPU, Triton's interpreter elsewhere, and the CPU path.

`run_triton(fn, *args)` gives (result, args as the call left them). With `fn(...)` itself a test runs the CPU path.
"""

import pytest
import torch

from kernels._triton import HAS_TRITON
from tests.kernels.interpreter import Interpreter


@pytest.fixture(scope="session")
def run_triton():
    """Calls a launcher so that its Triton kernel runs, wherever that is possible."""
    if torch.cuda.is_available():
        yield _on_gpu
    elif HAS_TRITON:
        interpreter = Interpreter()
        yield lambda fn, *args, **kwargs: interpreter(fn, *args, **kwargs)[:2]
        interpreter.close()
    else:
        pytest.skip("Triton is not installed here (it ships for Linux)")


def _on_gpu(fn, *args, **kwargs):
    args = tuple(_to_gpu(arg) for arg in args)
    return fn(*args, **{name: _to_gpu(value) for name, value in kwargs.items()}), args


def _to_gpu(value):
    if isinstance(value, torch.Tensor):
        return value.cuda()
    return [_to_gpu(item) for item in value] if isinstance(value, list) else value

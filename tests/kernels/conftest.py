"""How a kernel's tests run it: Triton for real on a GPU, Triton's interpreter elsewhere, and the CPU path.

`run_triton(fn, *args)` gives (result, args as the call left them), on the CPU. With `fn(...)` itself a test runs the
CPU path. The JUnit report says which of them it was, as the property `triton`.
"""

import pytest
import torch

from kernels._triton import HAS_TRITON, INTERPRET
from tests.kernels.interpreter import Interpreter
from tests.kernels.on_device import OnDevice


@pytest.fixture(scope="session")
def run_triton(record_testsuite_property):
    """Calls a launcher so that its Triton kernel runs, wherever that is possible."""
    if not HAS_TRITON:
        pytest.skip("Triton is not installed here (it ships for Linux)")
    if torch.cuda.is_available() and not INTERPRET:
        record_testsuite_property("triton", f"cuda: {torch.cuda.get_device_name()}")
        yield OnDevice("cuda")
    else:
        record_testsuite_property("triton", "interpreter")
        interpreter = Interpreter()
        yield lambda fn, *args, **kwargs: interpreter(fn, *args, **kwargs)[:2]
        interpreter.close()

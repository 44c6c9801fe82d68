"""The shim for ZeroGPU, with a stand-in for `spaces`: the real one needs a Space."""

import subprocess
import sys

import pytest

from explorer.measuring import gpu

STAND_IN = """
import os, sys, types
spaces = types.ModuleType("spaces")
def GPU(duration):
    assert "torch" not in sys.modules
    def decorate(fn):
        fn.asked = duration
        return fn
    return decorate
spaces.GPU = GPU
sys.modules["spaces"] = spaces
os.environ["SPACES_ZERO_GPU"] = sys.argv[1]
from explorer.measuring import gpu
@gpu.gpu(duration=lambda n: n + 5)
def count(n):
    yield from range(n)
print(gpu.ZERO_GPU, list(count(3)), count.asked(3) if hasattr(count, "asked") else None)
"""


@pytest.mark.parametrize(("flag", "right"), [("true", "True [0, 1, 2] 8"), ("", "False [0, 1, 2] None")])
def test_only_zero_gpu_is_decorated(flag, right):
    done = subprocess.run([sys.executable, "-c", STAND_IN, flag], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == right, done.stderr


def test_elsewhere_it_is_the_function_itself():
    assert not gpu.ZERO_GPU
    assert gpu.gpu(duration=5)(len) is len

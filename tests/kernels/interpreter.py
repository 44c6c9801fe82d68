"""Runs kernels in Triton's interpreter, in a process of its own.

The interpreter is chosen by TRITON_INTERPRET=1 before Triton is first imported, for the whole process. Tests of
engine and labs share the test process with the kernels' and must not find it there. So calls go to a child: function
and arguments by pickle over its standard input, the answer back over its standard output.
"""

import contextlib
import importlib
import os
import pickle
import subprocess
import sys
import traceback
from pathlib import Path

ROOT = Path(__file__).parents[2]


class Interpreter:
    """A child process with the interpreter on. Calling it calls a function there."""

    def __init__(self):
        environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
        self.child = subprocess.Popen(
            [sys.executable, __file__], cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def __call__(self, fn, *args, **kwargs):
        """`fn(*args, **kwargs)`, and the arguments as the call left them.

        Args:
            fn: a function at the top of a module.
            args: tensors are copied there and back.
            kwargs: likewise.

        Returns:
            (what it returned, args, kwargs).
        """
        pickle.dump((fn.__module__, fn.__qualname__, args, kwargs), self.child.stdin)
        self.child.stdin.flush()
        fault, answer = pickle.load(self.child.stdout)
        if fault is not None:
            raise fault from RuntimeError(answer)
        return answer

    def close(self):
        self.child.stdin.close()
        self.child.wait(20)


def read_bounds_of_loops():
    """Triton before 3.7 reads a loop's bound as int(array of one number), which NumPy 2.4 and newer refuse."""
    from triton.runtime import interpreter

    patch = interpreter._patch_lang_tensor

    def patched(tensor, *scope):
        patch(tensor, *scope)
        tensor.__index__ = lambda self: int(self.handle.data.squeeze())

    interpreter._patch_lang_tensor = patched


def serve(requests, answers):
    while True:
        try:
            module, name, args, kwargs = pickle.load(requests)
        except EOFError:
            return
        try:
            with contextlib.redirect_stdout(sys.stderr):
                result = getattr(importlib.import_module(module), name)(*args, **kwargs)
            answer = None, (result, args, kwargs)
        except Exception as fault:
            answer = fault, traceback.format_exc()
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    read_bounds_of_loops()
    serve(sys.stdin.buffer, sys.stdout.buffer)

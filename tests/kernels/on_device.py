"""Runs a launcher on another device: each tensor among its arguments is moved there, and what comes out comes back.

A tensor is moved with all of its storage, so that strides, gaps and the NaN around it stay as the test made them.
"""

import torch


class OnDevice:
    """Calling it calls a function with everything on `device`.

    Args:
        device: where the function runs.
    """

    def __init__(self, device):
        self.device = torch.device(device)

    def __call__(self, fn, *args, **kwargs):
        """`fn(*args, **kwargs)` there.

        Args:
            fn: what is run.
            args: tensors, also in lists, tuples and dicts, are copied; the caller's own stay as they are.
            kwargs: likewise.

        Returns:
            (what it returned, args as the call left them), all tensors on the CPU.
        """
        args, kwargs = self.move(args), self.move(kwargs)
        return back(fn(*args, **kwargs)), back(args)

    def move(self, value):
        """A copy of `value` on the device, whatever holds the tensors."""
        return rebuilt(value, self._copy)

    def _copy(self, tensor):
        whole = torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(tensor.untyped_storage())
        there = whole.to(self.device, copy=True)
        return there.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())


def back(value):
    """`value` with every tensor on the CPU."""
    return rebuilt(value, torch.Tensor.cpu)


def rebuilt(value, change):
    """`value` with `change` applied to each tensor in it."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, dict):
        return {key: rebuilt(item, change) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(rebuilt(item, change) for item in value))
    if isinstance(value, list | tuple):
        return type(value)(rebuilt(item, change) for item in value)
    return value

"""One measure of closeness for all kernels: relative RMS, with one limit per element type."""

import torch

LIMITS = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1e-2}


def assert_close(actual, expected, dtype, what="", at_least=1e-30):
    """`actual` equals the float32 reference of the same rounded inputs, up to `dtype`'s rounding.

    Args:
        actual: what the kernel gave.
        expected: what the reference gave.
        dtype: the inputs' element type: sets the limit.
        what: which path, for the message.
        at_least: the size that errors are divided by; for a few numbers that may all lie near 0.
    """
    assert actual.shape == expected.shape, f"{what}: shape {tuple(actual.shape)}, expected {tuple(expected.shape)}"
    if not expected.numel():
        return
    actual, expected = actual.float().cpu(), expected.float().cpu()
    same_infinity = (actual == expected) & expected.isinf()
    difference = torch.where(same_infinity, 0.0, actual - expected)
    size = torch.where(expected.isinf(), 0.0, expected).square().mean().sqrt().clamp_min(at_least)
    error = (difference.square().mean().sqrt() / size).item()
    if not error <= LIMITS[dtype]:
        worst = tuple(int(i) for i in torch.unravel_index(difference.abs().nan_to_num(1e30).argmax(), expected.shape))
        raise AssertionError(
            f"{what}: relative RMS {error:.2e}, limit {LIMITS[dtype]:.0e} for {dtype}; worst at {worst}: "
            f"{actual[worst].item():.6g}, expected {expected[worst].item():.6g}"
        )

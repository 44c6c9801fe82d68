"""The matrix product of the kernels: operands as they are, float32 sums, float32 operands without tf32.

Triton's interpreter keeps bf16 as 16-bit integers and its `dot` multiplies those (Triton 3.9): there the operands are
widened first, which changes no value.
"""

from kernels._triton import HAS_TRITON, INTERPRET, jit, tl

WIDEN = tl.constexpr(INTERPRET) if HAS_TRITON else INTERPRET


@jit
def dot(a, b, acc):
    """`acc + a @ b`, with `acc` in float32."""
    if WIDEN:
        a = a.to(tl.float32)
        b = b.to(tl.float32)
    return tl.dot(a, b, acc, input_precision="ieee")

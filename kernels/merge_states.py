"""Join the results of attention over separate parts of one context, exactly.

Attention over a part gives a normalised output and the logarithm of its softmax denominator (LSE). Parts are weighed
by their denominators: lse = log sum_i exp(lse_i), out = sum_i exp(lse_i - lse) out_i. A part that saw nothing has
lse = -inf and weighs nothing. The order of parts does not matter, so a long context can be split over a whole GPU.

One program joins all parts of one head of one token. The number of parts grows with the context, so it is no constant
of the kernel: each of LANES lanes folds every LANES-th part into a state of its own; at the end the lanes are joined.
Source: Dao et al. 2023, "Flash-Decoding"; Ye et al. 2025 (FlashInfer), arXiv:2501.01005, section 2.2.
"""

import torch
from torch import Tensor

from kernels._triton import AotCase, can_launch, jit, launch, next_power_of_2, tl


def merge_states_reference(outs: Tensor, lses: Tensor) -> tuple[Tensor, Tensor]:
    """What `merge_states` computes, in float32, one part after the other."""
    out, lse = outs[0].float(), lses[0].float()
    for part_out, part_lse in zip(outs[1:].float(), lses[1:].float(), strict=True):
        both = torch.logaddexp(lse, part_lse)
        finite = both.masked_fill(both == float("-inf"), 0.0)
        out = out * (lse - finite).exp()[..., None] + part_out * (part_lse - finite).exp()[..., None]
        lse = both
    return out, lse


LANES = 16  # parts that one program reads at a time


@jit(do_not_specialize=("parts", "rows"))
def _merge_states_kernel(
    outs_ptr, lses_ptr, out_ptr, lse_ptr, parts, rows,
    LANES: tl.constexpr, HEAD_DIM: tl.constexpr, DIM_PAD: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, LANES)
    d = tl.arange(0, DIM_PAD)
    m = tl.full([LANES], float("-inf"), tl.float32)
    z = tl.zeros([LANES], tl.float32)
    acc = tl.zeros([LANES, DIM_PAD], tl.float32)
    for first in range(0, parts, LANES):
        part = first + lane
        place = part.to(tl.int64) * rows + row
        lse = tl.load(lses_ptr + place, mask=part < parts, other=float("-inf"))
        live = (part < parts)[:, None] & (d < HEAD_DIM)[None, :]
        x = tl.load(outs_ptr + place[:, None] * HEAD_DIM + d[None, :], mask=live, other=0.0)
        m_new = tl.maximum(m, lse)
        m_safe = tl.where(m_new == float("-inf"), 0.0, m_new)  # nothing seen yet
        shrink = tl.exp(m - m_safe)
        w = tl.exp(lse - m_safe)
        z = z * shrink + w
        acc = acc * shrink[:, None] + x * w[:, None]
        m = m_new
    top = tl.max(m, 0)
    top = tl.where(top == float("-inf"), 0.0, top)
    w = tl.exp(m - top)
    z_all = tl.sum(z * w, 0)
    out = tl.sum(acc * w[:, None], 0) / tl.where(z_all == 0.0, 1.0, z_all)
    tl.store(out_ptr + row * HEAD_DIM + d, out.to(out_ptr.dtype.element_ty), mask=d < HEAD_DIM)
    tl.store(lse_ptr + row, tl.where(z_all == 0.0, float("-inf"), top + tl.log(z_all)))


def merge_states(outs: Tensor, lses: Tensor, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    """The attention over all parts together.

    Args:
        outs: each part's normalised output, [parts, tokens, num_heads, head_dim] float32, contiguous; at least 1 part.
        lses: the natural logarithm of each part's denominator, [parts, tokens, num_heads] float32, contiguous; -inf
            for a part that saw nothing (its output must be finite).
        dtype: of the output.

    Returns:
        Output [tokens, num_heads, head_dim] in `dtype` and LSE [tokens, num_heads] float32. Where no part saw
        anything they are 0 and -inf.

    Raises:
        ValueError: shapes, types or layouts that do not fit.
    """
    if outs.dim() != 4 or outs.shape[0] < 1 or outs.shape[:3] != lses.shape:
        raise ValueError(
            f"outs {tuple(outs.shape)} and lses {tuple(lses.shape)}: expected [parts, tokens, num_heads, head_dim] "
            "and [parts, tokens, num_heads]"
        )
    if outs.dtype != torch.float32 or lses.dtype != torch.float32:
        raise ValueError(f"outs {outs.dtype} and lses {lses.dtype}: expected float32, a rounded part cannot be exact")
    if not (outs.is_contiguous() and lses.is_contiguous()):
        raise ValueError("outs and lses must be contiguous")
    parts, tokens, num_heads, head_dim = outs.shape
    if not can_launch(outs):
        lse = torch.logsumexp(lses, 0)
        weights = (lses - lse.masked_fill(lse == float("-inf"), 0.0)).exp_()
        return torch.einsum("pth,pthd->thd", weights, outs).to(dtype), lse
    out = torch.empty(tokens, num_heads, head_dim, dtype=dtype, device=outs.device)
    lse = torch.empty(tokens, num_heads, dtype=torch.float32, device=outs.device)
    if tokens:
        rows = tokens * num_heads
        launch(_merge_states_kernel, (rows,), outs, lses, out, lse, parts, rows, num_warps=4, **_constants(head_dim))
    return out, lse


def _constants(head_dim: int) -> dict[str, int]:
    return {"LANES": LANES, "HEAD_DIM": head_dim, "DIM_PAD": next_power_of_2(head_dim)}


def _case(head_dim: int, kind: str) -> AotCase:
    types = {"outs_ptr": "*fp32", "lses_ptr": "*fp32", "out_ptr": f"*{kind}", "lse_ptr": "*fp32"}
    types |= {"parts": "i32", "rows": "i32"}
    return AotCase(_merge_states_kernel, f"any parts, head of {head_dim}, {kind}", types, _constants(head_dim))


AOT_CASES = (_case(128, "bf16"), _case(64, "bf16"), _case(80, "fp16"), _case(256, "bf16"), _case(512, "bf16"))

"""Parts of a context joined by their denominators are the whole, whatever they saw."""

from itertools import pairwise

import pytest
import torch

from kernels.merge_states import merge_states, merge_states_reference
from tests.kernels.closeness import assert_close


def parts_of(kv_len, cuts, tokens=3, heads=5, head_dim=24):
    """Attention over each part of random Keys, and over all of them, in float64."""
    torch.manual_seed(0)
    scores = torch.randn(tokens, heads, kv_len, dtype=torch.float64) * 9
    values = torch.randn(heads, kv_len, head_dim, dtype=torch.float64)

    def attend(first, last):
        part = scores[..., first:last]
        out = torch.einsum("thk,hkd->thd", part.softmax(-1), values[:, first:last])
        return out.float(), part.logsumexp(-1).float()

    parts = [attend(a, b) for a, b in pairwise(cuts)]
    return torch.stack([out for out, _ in parts]), torch.stack([lse for _, lse in parts]), attend(0, kv_len)


MORE_THAN_LANES = [0] * 3 + list(range(45)) + [44, 50]  # several rounds; some lanes get a part without Keys first


@pytest.mark.parametrize(
    "cuts", [[0, 50], [0, 1, 50], [0, 20, 20, 50], [0, 3, 9, 9, 9, 31, 50], [0, 0, 50], MORE_THAN_LANES]
)
def test_parts_make_the_whole(run_triton, cuts):
    """A part without Keys has lse -inf and an output of 0."""
    outs, lses, expected = parts_of(50, cuts)
    by_triton, _ = run_triton(merge_states, outs, lses)
    for what, found in (
        ("reference", merge_states_reference(outs, lses)),
        ("CPU path", merge_states(outs, lses)),
        ("Triton", by_triton),
    ):
        for x, y, name in zip(found, expected, ("output", "LSE"), strict=True):
            assert_close(x, y, torch.float32, f"{what}, {name}")


def test_nothing_seen_is_nothing(run_triton):
    outs, lses = torch.zeros(2, 1, 3, 8), torch.full((2, 1, 3), float("-inf"))
    for out, lse in (merge_states(outs, lses), run_triton(merge_states, outs, lses)[0]):
        assert out.eq(0).all() and lse.eq(float("-inf")).all()


def test_output_dtype(run_triton):
    outs, lses, _ = parts_of(50, [0, 20, 50])
    for out, lse in (merge_states(outs, lses, torch.float16), run_triton(merge_states, outs, lses, torch.float16)[0]):
        assert out.dtype == torch.float16 and lse.dtype == torch.float32


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda o, n: (o[:, 0], n), "expected"),
        (lambda o, n: (o, n[:1]), "expected"),
        (lambda o, n: (o.half(), n), "float32"),
        (lambda o, n: (o.transpose(2, 3).contiguous().transpose(2, 3), n), "contiguous"),
    ],
)
def test_what_does_not_fit_is_refused(change, words):
    outs, lses, _ = parts_of(50, [0, 20, 50])
    with pytest.raises(ValueError, match=words):
        merge_states(*change(outs, lses))

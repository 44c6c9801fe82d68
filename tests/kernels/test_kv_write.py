"""New Keys and Values land in their slots and nowhere else."""

import pytest
import torch

from kernels.kv_write import kv_write, kv_write_reference

DTYPES = [torch.float32, torch.float16, torch.bfloat16]


def example(dtype, tokens=7, heads=3, head_dim=64, block_size=16, num_blocks=4):
    """Pools full of NaN, and tokens cut from a wider tensor, as the decoder's projections give them."""
    torch.manual_seed(0)
    wide = torch.randn(tokens, 2 * heads + 3, head_dim).to(dtype)
    k, v = wide[:, 3 : 3 + heads], wide[:, 3 + heads :]
    pools = [torch.full((num_blocks, heads, block_size, head_dim), float("nan"), dtype=dtype) for _ in range(2)]
    slots = torch.randperm(num_blocks * block_size)[:tokens]
    return k, v, *pools, slots


def both(run_triton, args):
    """The pools after the reference, after the CPU path and after Triton."""
    expected, on_cpu = [[x.clone() for x in args] for _ in range(2)]
    kv_write_reference(*expected)
    kv_write(*on_cpu)
    _, by_triton = run_triton(kv_write, *args)
    return expected[2:4], on_cpu[2:4], [x.cpu() for x in by_triton[2:4]]


def same(a, b):
    return all(
        torch.equal(x.nan_to_num(7e4), y.nan_to_num(7e4)) and torch.equal(x.isnan(), y.isnan())
        for x, y in zip(a, b, strict=True)
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("heads", "head_dim", "block_size"), [(3, 64, 16), (1, 80, 24), (8, 96, 8), (2, 256, 256), (5, 128, 17)]
)
def test_every_shape(run_triton, dtype, heads, head_dim, block_size):
    expected, on_cpu, by_triton = both(run_triton, example(dtype, 7, heads, head_dim, block_size))
    assert expected[0].isnan().any() and not expected[0].isnan().all()
    assert same(on_cpu, expected), "CPU path"
    assert same(by_triton, expected), "Triton"


@pytest.mark.parametrize("kind", [torch.int32, torch.int64])
def test_slots_of_minus_one_are_left_out(run_triton, kind):
    k, v, keys, values, slots = example(torch.float32)
    slots = slots.to(kind)
    slots[[0, 3, 6]] = -1
    expected, on_cpu, by_triton = both(run_triton, (k, v, keys, values, slots))
    assert int((~expected[0].isnan()).any(-1).any(1).sum()) == 4
    assert same(on_cpu, expected), "CPU path"
    assert same(by_triton, expected), "Triton"


def test_keys_and_values_may_lie_apart_in_different_ways(run_triton):
    k, v, *rest = example(torch.float32)
    expected, on_cpu, by_triton = both(run_triton, (k.contiguous(), v, *rest))
    assert same(on_cpu, expected), "CPU path"
    assert same(by_triton, expected), "Triton"


def test_a_narrower_pool_rounds(run_triton):
    """Into float16: on its way to bfloat16 the interpreter cuts off where a GPU and torch round."""
    k, v, keys, values, slots = example(torch.float32)
    args = k, v, keys.half(), values.half(), slots
    expected, on_cpu, by_triton = both(run_triton, args)
    assert same(on_cpu, expected), "CPU path"
    assert same(by_triton, expected), "Triton"


def test_no_token_is_no_work(run_triton):
    expected, on_cpu, by_triton = both(run_triton, example(torch.float32, tokens=0))
    assert same(on_cpu, expected) and same(by_triton, expected)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda a: (a[0][:, :2], *a[1:]), "expected the same"),
        (lambda a: (*a[:2], a[2].transpose(1, 2), a[3].transpose(1, 2), a[4]), "do not fit"),
        (lambda a: (*a[:2], a[2].transpose(0, 2).contiguous().transpose(0, 2), a[3], a[4]), "contiguous"),
        (lambda a: (a[0].transpose(1, 2).contiguous().transpose(1, 2), *a[1:]), "one piece"),
        (lambda a: (*a[:4], a[4][:3]), "slot_mapping"),
        (lambda a: (*a[:4], a[4].float()), "slot_mapping"),
        (lambda a: (*a[:4], torch.stack((a[4], a[4]), 1)[:, 0]), "contiguous"),
    ],
)
def test_what_does_not_fit_is_refused(change, words):
    with pytest.raises(ValueError, match=words):
        kv_write(*change(example(torch.float32)))

"""What a GPU is given and what comes back from it, tested with devices that every machine has."""

from typing import NamedTuple

import pytest
import torch

from kernels.block_copy import block_copy
from kernels.kv_write import kv_write
from tests.kernels.on_device import OnDevice, back


class Pair(NamedTuple):
    a: torch.Tensor
    b: torch.Tensor | None


def devices_in(value):
    if isinstance(value, torch.Tensor):
        return [value.device.type]
    if isinstance(value, dict):
        return [kind for item in value.values() for kind in devices_in(item)]
    return [kind for item in value for kind in devices_in(item)] if isinstance(value, list | tuple) else []


def test_every_tensor_is_moved_wherever_it_is():
    x = torch.ones(2)
    seen = []

    def fn(*args, **kwargs):
        seen.extend([args, kwargs])

    OnDevice("meta").move(x)
    on_meta = OnDevice("meta")
    moved = on_meta.move({"a": [x, (x, 3)], "b": Pair(x, None), "c": {"d": x}, "e": "word"})
    assert devices_in(moved) == ["meta"] * 4
    assert type(moved["b"]) is Pair and moved["b"].b is None and moved["a"][1][1] == 3 and moved["e"] == "word"
    OnDevice("cpu")(fn, x, [x], sinks=x)
    assert seen[0][0] is not x and seen[1]["sinks"] is not x and devices_in(seen) == ["cpu"] * 3


def test_the_callers_tensors_stay_and_the_changed_ones_come_back():
    pools = [torch.zeros(4, 1, 2, 2), torch.zeros(4, 1, 2, 2)]
    pools[0][1] = 5.0
    result, (changed, pairs) = OnDevice("cpu")(block_copy, pools, [(1, 3)])
    assert result is None and pairs == [(1, 3)]
    assert changed[0][3].eq(5).all() and pools[0][3].eq(0).all()
    keys, values, k = torch.zeros(2, 1, 2, 3), torch.zeros(2, 1, 2, 3), torch.ones(1, 1, 3)
    _, args = OnDevice("cpu")(kv_write, k, k, keys, values, torch.tensor([3]))
    assert args[2][1, 0, 1].eq(1).all() and keys.eq(0).all()


def test_strides_gaps_and_surroundings_are_kept():
    """A view into a wider tensor of NaN: `.to` alone would hand over a tight copy without either."""
    wide = torch.full((6, 5, 4), float("nan"))
    view = wide[1:5, 1:3]
    view.copy_(torch.arange(32.0).view(4, 2, 4))
    moved = OnDevice("cpu").move(view)
    assert moved.stride() == view.stride() and moved.storage_offset() == view.storage_offset()
    assert torch.equal(moved, view)
    around = moved.as_strided(wide.shape, wide.stride(), 0)
    assert around.isnan().sum() == wide.isnan().sum() and around.data_ptr() != wide.data_ptr()
    for other in (torch.zeros(3, 4).t(), torch.zeros(0, 3), torch.ones(2)[:1].expand(3, 1)):
        assert OnDevice("cpu").move(other).stride() == other.stride()


def test_named_tuples_come_back_as_they_were():
    found = back((Pair(torch.ones(1), None), [1, torch.zeros(2)], None))
    assert type(found[0]) is Pair and found[0].b is None and found[1][0] == 1


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
def test_a_gpu_is_really_used():
    seen = []
    result, args = OnDevice("cuda")(lambda x: seen.append(x.device.type) or x + 1, torch.ones(2))
    assert seen == ["cuda"] and result.device.type == args[0].device.type == "cpu" and result.eq(2).all()

"""One rank's memory, by hand for the worked example."""

import pytest

from explorer.errors import InputError
from explorer.estimators.capacity import rank_use
from explorer.specs.catalog import device_named, model_named

GIB = 2**30
QWEN, H100 = model_named("qwen3-32b"), device_named("h100-sxm-80gb").memory_bytes


def test_one_gpu_by_hand():
    """85,520,809,984 - 65,524,246,528 = 19,996,563,456 B left: two caches of 8,589,934,592 B, not eight."""
    use = rank_use(QWEN, 32_768, 8, H100)
    assert (use.room_bytes, use.kv_bytes_each) == (19_996_563_456, 8 * GIB)
    assert use.requests_that_fit == 2
    assert use.free_bytes == 19_996_563_456 - 64 * GIB < 0
    assert rank_use(QWEN, 32_768, 8, H100, reserve_bytes=4 * GIB).requests_that_fit == 1


def test_more_ranks_help_the_weights_and_the_heads_until_each_has_one():
    uses = {tp: rank_use(QWEN, 32_768, 8, H100, tp=tp) for tp in (1, 2, 4, 8, 16)}
    assert [use.kv_bytes for use in uses.values()] == [64 * GIB, 32 * GIB, 16 * GIB, 8 * GIB, 8 * GIB]
    assert uses[2].requests_that_fit == (H100 - 32_762_123_264) // (4 * GIB) == 12
    assert uses[2].free_bytes > 0 > uses[1].free_bytes


def test_half_the_bytes_of_the_cache_are_not_half_the_memory():
    wide, narrow = (rank_use(QWEN, 32_768, 8, H100, dtype=dtype) for dtype in ("bf16", "fp8"))
    assert narrow.kv_bytes * 2 == wide.kv_bytes
    assert (narrow.weight_bytes + narrow.kv_bytes) / (wide.weight_bytes + wide.kv_bytes) > 0.74


def test_weights_that_do_not_fit_leave_no_room():
    use = rank_use(QWEN, 1, 1, device_named("l4-24gb").memory_bytes)
    assert use.room_bytes < 0 and use.requests_that_fit == 0


@pytest.mark.parametrize(
    "values", [{"tokens": 0}, {"requests": 0}, {"memory_bytes": -1}, {"reserve_bytes": float("nan")}, {"tp": 3}]
)
def test_values_that_cannot_be_are_refused(values):
    given = {"tokens": 1, "requests": 1, "memory_bytes": H100} | values
    with pytest.raises(InputError):
        rank_use(QWEN, **given)

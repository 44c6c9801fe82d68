"""Random work, by the CPU path and by Triton, against the plain references."""

import pytest

from tests.kernels.fuzz import attempt, here


@pytest.mark.parametrize("first", range(0, 60, 10))
def test_cpu_path(first):
    for seed in range(first, first + 10):
        attempt(seed, here)


@pytest.mark.parametrize(("first", "end"), [(1000, 1010), (1023, 1030)])
def test_triton(run_triton, first, end):
    """Numbers whose work the interpreter does in less than two seconds."""

    def there(fn, *args, changed=(), **kwargs):
        result, left = run_triton(fn, *args, **kwargs)
        return [left[i] for i in changed] if changed else result

    for seed in range(first, end):
        attempt(seed, there)

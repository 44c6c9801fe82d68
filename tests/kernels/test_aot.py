"""Every kernel compiles for every target without spilling registers. No GPU is needed."""

import dataclasses

import pytest

from kernels import aot
from kernels._triton import HAS_TRITON, INTERPRET

pytestmark = pytest.mark.skipif(not HAS_TRITON, reason="Triton is not installed here (it ships for Linux)")


@pytest.fixture(scope="module")
def compiled():
    return list(aot.report(quick=True))


# The tiles were chosen with today's compiler. Older ones keep more in registers at once and put a few bytes of some
# cases in memory; more than they did must be looked into there too.
OLDER_SPILLS = {"3.4": 512, "3.5": 16, "3.6": 16, "3.7": 16}


def test_no_kernel_spills_or_fails(compiled):
    import triton

    allowed = OLDER_SPILLS.get(".".join(triton.__version__.split(".")[:2]), 0)
    bad = [
        f"{c.kernel} ({c.label}) {c.target}: {c.error or f'{c.spill_bytes} bytes spilled, {c.shared_bytes} shared'}"
        for c in compiled
        if c.error or c.spill_bytes > allowed or c.shared_bytes > c.shared_limit_bytes
    ]
    assert not bad, "\n".join(bad)


def test_each_kernel_is_compiled_for_each_target(compiled):
    kernels = {c.kernel for c in compiled}
    assert {"kv_write_kernel", "block_copy_kernel", "merge_states_kernel", "paged_attention_kernel"} <= kernels
    for kernel in kernels:
        assert {c.target for c in compiled if c.kernel == kernel} == {"sm_80", "sm_90", "sm_120"}
    assert len({(c.kernel, c.label) for c in compiled}) == len(aot.cases()), "every case is compiled somewhere"


def test_every_kernel_of_the_package_lists_cases():
    """A file with a Triton kernel that lists no cases would go unchecked."""
    listed = {case.kernel.__name__ for case in aot.cases()}
    for path in aot.sources():
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("def _") and "_kernel(" in line:
                name = line.removeprefix("def ").partition("(")[0]
                assert name in listed, f"{path.name}: {name} is in no AOT_CASES"


def test_numbers_are_those_of_the_machine_code(compiled):
    for each in compiled:
        assert 10 <= each.registers <= 255, each
    (attention,) = [c for c in compiled if c.kernel == "paged_attention_kernel"][:1]
    assert attention.shared_bytes > 4096, "tiles of Keys and Values pass through shared memory"


@pytest.mark.skipif(INTERPRET, reason="TRITON_INTERPRET=1 is set for this whole process: nothing compiles in it")
def test_float32_is_multiplied_as_float32():
    """Not rounded to tf32's 10 bits, which the interpreter would not show."""
    case = next(c for c in aot.cases() if c.label.startswith("8 heads, 48 + 16") and "fp32" in c.label)
    assert "tf32" not in aot._compile(case, 90).asm["ptx"]
    for path in aot.sources():
        assert path.name == "_dot.py" or "tl.dot(" not in path.read_text(encoding="utf-8")


@pytest.mark.skipif(INTERPRET, reason="TRITON_INTERPRET=1 is set for this whole process: nothing compiles in it")
def test_a_pool_at_an_odd_address_is_not_copied_16_bytes_at_a_time():
    aligned, odd = (
        aot._compile(next(c for c in aot.cases() if c.label == f"{label}, bf16"), 90).asm["ptx"]
        for label in ("any shape", "pools at odd addresses")
    )
    assert "st.global.v4" in aligned and "st.global.v" not in odd


@pytest.mark.skipif(INTERPRET, reason="TRITON_INTERPRET=1 is set for this whole process: nothing compiles in it")
def test_spills_errors_and_too_much_memory_are_found():
    """Tiles that no registers can hold, an argument without a type, and a byte of shared memory too many."""
    case = next(c for c in aot.cases() if c.kernel.__name__ == "_paged_attention_kernel")
    wide = dataclasses.replace(case, constants=case.constants | {"ROWS": 128, "TILE_K": 256}, num_warps=2)
    untyped = dataclasses.replace(case, types={k: v for k, v in case.types.items() if k != "scale"})
    spilled, failed = aot.compile_case(wide, 80), aot.compile_case(untyped, 80)
    assert spilled.spill_bytes > 0 and not spilled.ok
    assert "scale" in failed.error and not failed.ok
    fits = aot.Compiled("k", "l", "sm_120", 32, 0, aot.SHARED_LIMIT_BYTES[120] + 1, aot.SHARED_LIMIT_BYTES[120])
    assert not fits.ok

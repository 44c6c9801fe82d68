"""`bench --compile`: every Triton kernel compiled for GPUs that are not here, with what its machine code needs."""

from dataclasses import asdict

from explorer.cli.output import progress, result, result_json, table
from explorer.errors import ResourceError
from explorer.text import Text

HEADINGS = ("kernel", "shape", "target", "registers", "spill bytes", "shared bytes", "of", "clean")


def run(as_json: bool, quick: bool = False) -> int:
    """Compile and print; 1 if a kernel fails, spills registers or wants more shared memory than the target has.

    Args:
        as_json: one JSON object instead of the table.
        quick: each shape for one target, except each kernel's first.

    Raises:
        ResourceError: Triton is not installed.
    """
    from kernels import aot
    from kernels._triton import HAS_TRITON

    if not HAS_TRITON:
        raise ResourceError(
            Text(
                "Triton is not installed here (it ships for Linux), so no kernel can be compiled",
                "这里没有安装 Triton（它只支持 Linux），因此无法编译 kernel",
            )
        )
    total = len(aot.jobs(quick=quick))
    progress(f"compiling {total} kernels ahead of time; no GPU is needed")
    found = []
    for done, compiled in enumerate(aot.report(quick=quick), 1):
        found.append(compiled)
        if done % 20 == 0 or compiled.error:
            progress(f"[{done}/{total}] {compiled.kernel} {compiled.target} {compiled.error}")
    found.sort(key=lambda each: (each.kernel, each.label, int(each.target.removeprefix("sm_"))))
    unclean = sum(not each.ok for each in found)
    if as_json:
        result_json({"rows": [asdict(each) | {"ok": each.ok} for each in found], "failures": unclean})
    else:
        rows = [
            [
                each.kernel, each.label, each.target, each.registers, each.spill_bytes, each.shared_bytes,
                each.shared_limit_bytes, each.ok,
            ]
            for each in found
        ]  # fmt: skip
        result(table(HEADINGS, rows))
        result(f"{len(found)} compiled, {unclean} not clean")
    return 1 if unclean else 0

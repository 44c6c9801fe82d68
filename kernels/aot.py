"""Every kernel of this package compiled ahead of time for GPUs that are not here: registers, spills, shared memory.

Triton needs no GPU to compile, and its wheel brings ptxas. A kernel's file lists its real shapes as `AOT_CASES`; this
module finds the lists, compiles each case for each target and reads the machine code's own account of what it needs.
`python -m kernels.aot PART PARTS` prints the results of every PARTS-th job as JSON lines; `report` runs several such
processes, so that an interpreter that is on in the calling process (TRITON_INTERPRET) does not matter.
"""

import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import kernels
from kernels._triton import HAS_TRITON, AotCase

# Largest shared memory of one thread block, bytes. CUDA C++ Programming Guide, compute capabilities, technical
# specifications: 163, 227 and 99 KiB. They stand for A100, H100/H200 and RTX 50.
SHARED_LIMIT_BYTES = {80: 163 << 10, 90: 227 << 10, 120: 99 << 10}
TARGETS = tuple(SHARED_LIMIT_BYTES)


@dataclass(frozen=True)
class Compiled:
    """What came out of one compilation.

    Attributes:
        kernel: the kernel's name.
        label: the case's shape in words.
        target: "sm_90".
        registers: of each thread.
        spill_bytes: local memory of each thread, where registers that did not fit are kept; 0 is right.
        shared_bytes: shared memory of each program.
        shared_limit_bytes: what one program may have on the target.
        error: why it did not compile, in one line; "" if it did.
    """

    kernel: str
    label: str
    target: str
    registers: int = 0
    spill_bytes: int = 0
    shared_bytes: int = 0
    shared_limit_bytes: int = 0
    error: str = ""

    @property
    def ok(self) -> bool:
        """Whether it compiled, keeps everything in registers and fits into shared memory."""
        return not self.error and self.spill_bytes == 0 and self.shared_bytes <= self.shared_limit_bytes


def cases() -> list[AotCase]:
    """All cases that the files of this package list, in the order of the files' names."""
    found: list[AotCase] = []
    for path in sources():
        found += getattr(importlib.import_module(f"kernels.{path.stem}"), "AOT_CASES", ())
    return found


def sources() -> list[Path]:
    """The files of this package that may hold kernels."""
    return sorted(path for path in Path(kernels.__path__[0]).glob("*.py") if path.stem not in ("__init__", "aot"))


def jobs(targets: Sequence[int] = TARGETS, quick: bool = False) -> list[tuple[AotCase, int]]:
    """What is to be compiled.

    Args:
        targets: compute capabilities, 90 for sm_90.
        quick: each kernel's first case for all targets, its other cases for one target each, in turn.
    """
    wanted: list[tuple[AotCase, int]] = []
    seen: set[str] = set()
    for index, case in enumerate(cases()):
        first = _name(case) not in seen
        seen.add(_name(case))
        wanted += [(case, t) for t in (targets if first or not quick else [targets[index % len(targets)]])]
    return wanted


def compile_case(case: AotCase, target: int) -> Compiled:
    """Compile one case for one compute capability and read what the machine code needs."""
    name, sm = _name(case), f"sm_{target}"
    try:
        binary = _compile(case, target)
    except Exception as error:
        lines = [line for line in str(error).splitlines() if line.strip()]
        return Compiled(name, case.label, sm, error=f"{type(error).__name__}: {lines[0] if lines else ''}"[:300])
    registers, spill = _resources(binary.asm["cubin"])
    shared = int(binary.metadata.shared)
    return Compiled(name, case.label, sm, registers, spill, shared, SHARED_LIMIT_BYTES[target])


def report(targets: Sequence[int] = TARGETS, quick: bool = False, processes: int = 2) -> Iterator[Compiled]:
    """Compile in `processes` processes of their own; results as they come.

    Raises:
        RuntimeError: Triton is not installed, or a process died.
    """
    if not HAS_TRITON:
        raise RuntimeError("Triton is not installed here (it ships for Linux): nothing can be compiled")
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    root = Path(kernels.__path__[0]).parent
    words = [",".join(map(str, targets)), "quick" if quick else "all"]
    with tempfile.TemporaryFile("w+") as complaints:
        workers = [
            subprocess.Popen(
                [sys.executable, "-m", "kernels.aot", str(part), str(processes), *words],
                cwd=root, env=environment, stdout=subprocess.PIPE, stderr=complaints, text=True,
            )
            for part in range(processes)
        ]  # fmt: skip
        try:
            for worker in workers:
                assert worker.stdout is not None
                for line in worker.stdout:
                    if line.startswith("{"):
                        yield Compiled(**json.loads(line))
                if worker.wait():
                    complaints.seek(0)
                    raise RuntimeError(f"compiling failed: {complaints.read().strip()[-500:]}")
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()


def _compile(case: AotCase, target: int) -> Any:
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    names = case.kernel.arg_names
    missing = [name for name in names if name not in case.types and name not in case.constants]
    if missing:
        raise ValueError(f"no type or value for {', '.join(missing)}")
    signature = {name: "constexpr" if name in case.constants else case.types[name] for name in names}
    aligned = {name for name, kind in case.types.items() if kind.startswith("*")} | set(case.aligned)
    attrs = {(i,): [["tt.divisibility", 16]] for i, n in enumerate(names) if n in aligned and n not in case.constants}
    constants = {(names.index(name),): value for name, value in case.constants.items()}
    source = ASTSource(fn=case.kernel, signature=signature, constexprs=constants, attrs=attrs)
    options = {"num_warps": case.num_warps, "num_stages": case.num_stages, "enable_fp_fusion": True}
    return triton.compile(source, target=GPUTarget("cuda", target, 32), options=options)


def _resources(cubin: bytes) -> tuple[int, int]:
    """Registers and bytes of local memory of a thread, as cuobjdump reads them from the machine code."""
    from triton import knobs

    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [knobs.nvidia.cuobjdump.path, "--dump-resource-usage", file.name]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = re.search(r"REG:(\d+) STACK:(\d+) SHARED:\d+ LOCAL:(\d+)", text)
    if found is None:
        raise RuntimeError(f"cuobjdump says nothing about resources: {text[:200]!r}")
    registers, stack, local = map(int, found.groups())
    return registers, stack + local


def _name(case: AotCase) -> str:
    return str(getattr(case.kernel, "__name__", case.kernel)).strip("_")


def _main(part: str, parts: str, targets: str, extent: str) -> None:
    wanted = jobs([int(t) for t in targets.split(",")], extent == "quick")
    for case, target in wanted[int(part) :: int(parts)]:
        sys.stdout.write(json.dumps(asdict(compile_case(case, target))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _main(*sys.argv[1:])

"""Say what this machine has, and what will run here and how. Works without a network."""

import argparse
import platform
from typing import Any

from explorer.cli.output import facts, result, result_json
from explorer.errors import ExplorerError
from explorer.labs.base import LABS
from explorer.measuring import gpu
from explorer.measuring.provenance import commit, load_average, package_version, usable_cpus
from explorer.measuring.timers import interpreter_on

NEEDED = ("torch", "transformers", "safetensors", "tokenizers", "gradio", "plotly", "numpy")
OPTIONAL = ("triton", "huggingface_hub", "gguf", "spaces")


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--json", action="store_true", help="one JSON object")


def run(chosen: argparse.Namespace) -> int:
    """Print the findings; 1 if something stands in the way."""
    found = examine()
    if chosen.json:
        result_json(found)
    else:
        result(text_of(found))
    return 1 if found["problems"] else 0


def examine() -> dict[str, Any]:
    """Everything that `doctor` says, as JSON values."""
    versions = {name: package_version(name) for name in NEEDED + OPTIONAL}
    problems = [f"{name} is not installed: pip install -r requirements.txt" for name in NEEDED if not versions[name]]
    if package_version("kernels"):
        problems.append(
            "the package `kernels` from PyPI is installed; transformers then takes our folder kernels/ for it and "
            "fails: pip uninstall kernels"
        )
    device = _device() if versions["torch"] else {"device_kind": "none"}
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "commit": commit(),
        "versions": versions,
        "device": device,
        "load_average_1m": load_average(),
        "zero_gpu_space": gpu.ZERO_GPU,
        "triton": _triton(versions["triton"], device["device_kind"]),
        "weights": _weights(),
        "labs": LABS.names() if versions["torch"] else [],
        "will_run": _will_run(device["device_kind"]),
        "problems": problems,
    }


def text_of(found: dict[str, Any]) -> str:
    """The findings for a terminal."""
    weights = found["weights"]
    lines = [
        f"{found['system']}, Python {found['python']}, commit {found['commit'] or 'unknown'}",
        "device",
        facts(found["device"]),
        "versions",
        facts({name: version or "not installed" for name, version in found["versions"].items()}),
        f"triton: {found['triton']['how']}",
        f"weights: {weights['model']}: " + (weights["detail"] if weights["present"] else weights["what_to_do"]),
        f"labs: {', '.join(found['labs']) or 'none'}",
        f"will run: {found['will_run']}",
        *(f"PROBLEM: {problem}" for problem in found["problems"]),
    ]
    return "\n".join(lines)


def _device() -> dict[str, Any]:
    from explorer.measuring import memory
    from explorer.measuring.device import pick_device
    from explorer.measuring.provenance import device_facts

    device = pick_device()
    return {
        **device_facts(device),
        "available_gib": round(memory.available_bytes(device) / 2**30, 2),
        "usable_cpus": usable_cpus(),
    }


def _triton(version: str | None, device_kind: str) -> dict[str, Any]:
    if version is None:
        return {"can_run": False, "how": "not installed; the kernels' CPU paths run"}
    if interpreter_on():
        return {
            "can_run": True,
            "how": "in the interpreter (TRITON_INTERPRET=1): numbers are checked, nothing is timed",
        }
    if device_kind == "cuda":
        return {"can_run": True, "how": "compiled for the GPU"}
    return {"can_run": False, "how": "installed, but there is no GPU; the kernels' CPU paths run"}


def _weights() -> dict[str, Any]:
    from explorer.weights import DEFAULT_MODEL, resolve

    try:
        files = resolve(offline=True)
    except ExplorerError:
        return {
            "model": DEFAULT_MODEL,
            "present": False,
            "what_to_do": "not here yet; fetched on first use, or now by `python -m explorer fetch`",
        }
    return {
        "model": files.name,
        "present": True,
        "weight_hash": files.weight_hash,
        "source": files.source,
        "detail": f"{files.weight_hash} ({files.detail})",
    }


def _will_run(device_kind: str) -> str:
    ways = {
        "cuda": "everything on the GPU, timed by its own clock",
        "cpu": "everything on the CPU; what needs a GPU is shown as recorded elsewhere or left out",
    }
    return ways.get(device_kind, "only what needs no torch: estimates")

"""The arrows of the design, read from the source: who may import whom, and how long a file may get.

app  ->  pages  ->  explorer/labs  ->  explorer/{engine, methods, estimators, measuring}  ->  explorer/specs
                                                        \\->  kernels
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("explorer", "kernels", "pages")
FILES = sorted([p for folder in FOLDERS for p in (ROOT / folder).rglob("*.py")] + list(ROOT.glob("*.py")))
LONGEST_FILE = 320

# Explorer's own ground floor: standard library only, and anyone may import it.
GROUND = {"explorer.text", "explorer.errors", "explorer.params", "explorer.registry"}
STANDARD_LIBRARY_ONLY = ("explorer.specs", "explorer.estimators", *GROUND)
PAGE_LIBRARIES = {"gradio", "plotly", "spaces"}

# A module under the key must not import, anywhere in it, a module under one of the values.
FORBIDDEN: dict[str, set[str]] = {
    "kernels": {"explorer", "pages", "app"} | PAGE_LIBRARIES,
    "explorer": {"pages", "app"} | PAGE_LIBRARIES,
    "explorer.specs": {"explorer.estimators", "explorer.engine", "explorer.methods", "explorer.measuring"},
    "explorer.probing": {"kernels"}
    | {f"explorer.{layer}" for layer in ("estimators", "engine", "methods", "measuring", "weights")},
    "explorer.estimators": {"explorer.engine", "explorer.methods", "explorer.measuring", "explorer.weights"},
    "explorer.weights": {"explorer.engine", "explorer.methods", "explorer.measuring", "explorer.estimators"},
    "explorer.measuring": {"explorer.engine", "explorer.methods", "explorer.probing"},
    "explorer.methods": {"explorer.measuring"},
    "explorer.engine": {"explorer.measuring", "explorer.probing"},
    "pages": {"app", "kernels", "torch", "triton", "transformers"},
}
# Only the command line knows everything below the pages; labs are known to it alone.
ABOVE_LABS = ("explorer.cli", "explorer.__main__", "explorer.benchmarks")
EXEMPT = {("explorer.measuring.gpu", "spaces")}


class Import(NamedTuple):
    """One imported module."""

    name: str
    line: int
    at_load: bool  # executed when the file is loaded: not in a function, not for type checkers alone


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_in(tree: ast.AST, known: frozenset[str] = frozenset()) -> list[Import]:
    return list(_walk(tree, True, known))


def _walk(node: ast.AST, at_load: bool, known: frozenset[str]) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (Import(alias.name, child.lineno, at_load) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, f"line {child.lineno}: relative import"
            for alias in child.names:
                whole = f"{child.module}.{alias.name}"
                yield Import(whole if whole in known else str(child.module), child.lineno, at_load)
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or _for_types_only(child):
            yield from _walk(child, False, known)
        else:
            yield from _walk(child, at_load, known)


def _for_types_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def under(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def faults(module: str, imported: list[Import]) -> list[str]:
    """What `module` imports although it must not."""
    return [f"line {each.line}: {module} imports {each.name}" for each in imported if not _allowed(module, each.name)]


def _allowed(module: str, name: str) -> bool:
    if (module, name.split(".")[0]) in EXEMPT:
        return True
    if any(under(module, layer) and any(under(name, f) for f in banned) for layer, banned in FORBIDDEN.items()):
        return False
    if under(module, "explorer") and under(name, "explorer.labs"):
        return any(under(module, above) for above in (*ABOVE_LABS, "explorer.labs"))
    if under(module, "explorer") and any(under(name, above) for above in ABOVE_LABS):
        return any(under(module, above) for above in ABOVE_LABS)
    if any(under(module, bare) for bare in STANDARD_LIBRARY_ONLY):
        top = name.split(".")[0]
        return top in sys.stdlib_module_names or (top == "explorer" and _ground_or_arithmetic(name))
    return True


def _ground_or_arithmetic(name: str) -> bool:
    return name == "explorer" or any(under(name, bare) for bare in STANDARD_LIBRARY_ONLY)


MODULES = {module_of(path): path for path in FILES}
IMPORTS = {
    module: imports_in(ast.parse(path.read_text(encoding="utf-8")), frozenset(MODULES))
    for module, path in MODULES.items()
}


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_down(module):
    assert not faults(module, IMPORTS[module])


@pytest.mark.parametrize("module", MODULES)
def test_no_file_is_long(module):
    lines = len(MODULES[module].read_text(encoding="utf-8").splitlines())
    assert lines <= LONGEST_FILE, f"{lines} lines: split it by idea"


def load_edges(imports: dict[str, list[Import]]) -> dict[str, set[str]]:
    """Module -> modules of ours that loading it loads directly."""
    return {
        module: {each.name for each in found if each.at_load and each.name in imports and each.name != module}
        for module, found in imports.items()
    }


def cycle_in(edges: dict[str, set[str]]) -> list[str] | None:
    """Some cycle, or None."""
    finished: set[str] = set()
    trail: list[str] = []

    def visit(module: str) -> list[str] | None:
        if module in trail:
            return [*trail[trail.index(module) :], module]
        if module in finished:
            return None
        trail.append(module)
        for target in sorted(edges[module]):
            found = visit(target)
            if found:
                return found
        trail.pop()
        finished.add(module)
        return None

    return next((found for module in sorted(edges) if (found := visit(module))), None)


def test_no_cycle_at_load():
    found = cycle_in(load_edges(IMPORTS))
    assert found is None, " -> ".join(found or [])


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("kernels.paged", "import explorer.text"),
        ("kernels.paged", "import gradio"),
        ("explorer.engine.decoder", "import plotly.graph_objects as go"),
        ("explorer.engine.decoder", "from pages import home"),
        ("explorer.engine.decoder", "def f():\n    from explorer.measuring import timers"),
        ("explorer.engine.decoder", "from explorer.labs.base import Lab"),
        ("explorer.measuring.timers", "from explorer.engine import runtime"),
        ("explorer.measuring.timers", "import explorer.labs.base"),
        ("explorer.measuring.timers", "import spaces"),
        ("explorer.specs.model", "import torch"),
        ("explorer.specs.model", "from explorer.estimators import memory"),
        ("explorer.estimators.memory", "import numpy as np"),
        ("explorer.estimators.memory", "from explorer.weights import resolve"),
        ("explorer.text", "from explorer.measuring.record import Record"),
        ("explorer.probing.proof", "from explorer.labs.base import Lab"),
        ("explorer.probing.proof", "from explorer.estimators import memory"),
        ("explorer.engine.decoder", "from explorer.probing import weigh"),
        ("explorer.specs.model", "from explorer.probing import probe"),
        ("explorer.labs.decode", "from explorer.cli import run"),
        ("pages.home", "import torch"),
        ("pages.home", "from kernels import paged"),
        ("pages.home", "import app"),
    ],
)
def test_the_rule_can_fail(module, line):
    assert faults(module, imports_in(ast.parse(line)))


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("explorer.measuring.gpu", "import spaces"),
        ("explorer.engine.decoder", "import kernels.paged"),
        ("explorer.labs.decode", "from explorer.engine import runtime"),
        ("explorer.cli.run", "from explorer.labs.base import LABS"),
        ("explorer.estimators.memory", "from explorer.specs.model import ModelSpec"),
        ("explorer.specs.model", "import json"),
        ("explorer.probing.thin", "from explorer.specs.model import ModelSpec"),
        ("explorer.probing.weigh", "import torch"),
        ("explorer.labs.estimate_proof", "from explorer.probing import proof"),
        ("pages.home", "import gradio as gr"),
    ],
)
def test_the_rule_can_pass(module, line):
    assert not faults(module, imports_in(ast.parse(line)))


def test_relative_imports_are_refused():
    with pytest.raises(AssertionError, match="relative import"):
        imports_in(ast.parse("from . import text"))


def test_cycles_are_found_and_lazy_ones_forgiven():
    eager, lazy = ast.parse("import b"), ast.parse("def f():\n    import b")
    back = ast.parse("import a")
    assert cycle_in(load_edges({"a": imports_in(eager), "b": imports_in(back)})) == ["a", "b", "a"]
    assert cycle_in(load_edges({"a": imports_in(lazy), "b": imports_in(back)})) is None
    typed = ast.parse("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import b")
    assert cycle_in(load_edges({"a": imports_in(typed), "b": imports_in(back)})) is None

"""The shape of the code: imports go downwards, files stay short, help stays instant."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "tiedtools"
FILES = sorted(PACKAGE.rglob("*.py"))

# A module imports from lower floors, or from its own folder on its own floor.
FLOORS = {
    "kernels": 0,
    "errors": 0,
    "processor": 0,
    "interrupts": 0,
    "": 1,
    "evaluation": 2,
    "hogwild": 2,
    "models": 3,
    "fit": 3,
    "benchmark": 3,
    "cli": 4,
    "__main__": 5,
}


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def floor(name):
    part = name.split(".")[1] if "." in name else "errors"  # the package itself holds the version alone
    return FLOORS.get(part, FLOORS[""])


def imports(path):
    """Modules of this package that a file imports anywhere in it."""
    modules = {module_name(p) for p in FILES}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            while name and name not in modules:
                name = name.rpartition(".")[0]
            if name.startswith("tiedtools"):
                yield name


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_imports_go_down(path):
    here = module_name(path)
    for name in imports(path):
        assert floor(name) <= floor(here), f"{here} imports {name}"
        if floor(name) == 0 and floor(here) == 0 and "kernels" in here:
            assert "kernels" in name, f"{here} imports {name}"


def test_no_import_circles():
    graph = {module_name(p): set(imports(p)) - {module_name(p), "tiedtools"} for p in FILES}
    while graph:
        leaves = {name for name, uses in graph.items() if not uses & graph.keys()}
        assert leaves, f"a circle among {sorted(graph)}"
        graph = {name: uses for name, uses in graph.items() if name not in leaves}


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_files_are_short(path):
    assert len(path.read_text().splitlines()) <= 400


COMMANDS = [
    "w2v",
    "vocab",
    "eval-sim",
    "eval-analogy",
    "nn",
    "analogy",
    "data",
    "corpus",
    "bench",
    "check",
    "convert",
    "bench lstm",
    "bench rnnlm",
    "bench w2v",
    "lstm",
    "rnnlm",
    "rerun",
    "ppl",
    "predict",
    "generate",
    "nbest",
    "docvec",
    "similar",
    "compare",
    "completion",
    "pca",
    "plot",
    "plot curves",
    "plot words",
    "plot similarity",
]


@pytest.mark.parametrize("command", [[], *(name.split() for name in COMMANDS)], ids=" ".join)
def test_help_loads_nothing_heavy(command):
    """What makes `--help` answer at once, whatever the machine."""
    code = f"""
import sys
from tiedtools.cli import cli
try:
    cli({[*command, "--help"]!r}, prog_name="tiedtools")
except SystemExit as stop:
    assert stop.code == 0
heavy = {{"numpy", "numba", "scipy", "tqdm", "xopen", "pooch", "matplotlib"}} & set(sys.modules)
assert not heavy, heavy
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "Usage" in result.stdout

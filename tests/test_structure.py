"""Test the structure of the code: the direction of imports, file lengths, and what `--help` imports."""

import ast
import functools
import importlib.util
import subprocess
import sys

import click
import pytest
from common import ROOT

from tiedtools.cli import cli

PACKAGE = ROOT / "tiedtools"
FILES = sorted(PACKAGE.rglob("*.py"))
OTHERS = sorted([*(ROOT / "tests").rglob("*.py"), *(ROOT / "examples").rglob("*.py")])

# Folders from the lowest level to the highest: a module imports only from its own folder or from lower levels.
# The files of a folder lie below its subfolders.
FOLDERS = [
    "base", "kernels", "kernels.base", "kernels.text", "kernels.rnnlm", "kernels.word2vec", "kernels.output",
    "kernels.cells", "files", "parallel", "text", "vectors", "network",
    "network.layers", "runs", "training", "evaluation", "models", "models.word2vec", "models.translation",
    "models.rnnlm", "models.lm", "api", "cli", "__main__",
]  # fmt: skip


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def level(name):
    """Return 0 for the package itself, which any module may import; from 1, the level in FOLDERS."""
    parts = name.split(".")[1:]
    return max(
        (k for k, folder in enumerate(FOLDERS, 1) if folder.split(".") == parts[: folder.count(".") + 1]), default=0
    )


def imported(node):
    """Return the names that a statement imports, qualified by their module."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [f"{node.module}.{alias.name}" for alias in node.names] if isinstance(node, ast.ImportFrom) else []


@functools.cache
def nodes_of(path):
    return list(ast.walk(ast.parse(path.read_text())))


MODULES = {module_name(path) for path in FILES}


def imports(path):
    """Yield the modules of this package that a file imports, at any depth."""
    for node in nodes_of(path):
        for name in imported(node):
            while name and name not in MODULES:
                name = name.rpartition(".")[0]
            if name.startswith("tiedtools"):
                yield name


def test_imports_go_to_lower_levels():
    within = "tiedtools.kernels", "tiedtools.base.processor"  # what kernels may import
    edges = [(module_name(path), name) for path in FILES for name in imports(path)]
    assert [
        f"{here} imports {name}"
        for here, name in edges
        if here != "tiedtools"  # the package offers the names of `api`
        and (level(name) > level(here) or here.startswith(within[0]) and not name.startswith(within))
    ] == []
    graph = {module_name(p): set(imports(p)) - {module_name(p), "tiedtools"} for p in FILES}
    while graph:
        leaves = {name for name, uses in graph.items() if not uses & graph.keys()}
        assert leaves, f"a cycle among {sorted(graph)}"
        graph = {name: uses for name, uses in graph.items() if name not in leaves}
    folders = {".".join(path.relative_to(PACKAGE).parent.parts) for path in PACKAGE.rglob("__init__.py")} - {""}
    assert folders | {"__main__"} == set(FOLDERS)
    assert {path.name for path in PACKAGE.glob("*.py")} == {"__init__.py", "__main__.py"}


def test_what_modules_may_use():
    """The library logs its messages."""
    offenders = []
    for path in FILES:
        if level(module_name(path)) < level("tiedtools.cli") and path.name != "__init__.py":
            nodes = nodes_of(path)
            called = {node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
            used = {name.partition(".")[0] for node in nodes for name in imported(node)}
            unwanted = {"click"} if module_name(path) == "tiedtools.runs.progress" else {"click", "tqdm"}
            offenders += [(module_name(path), name) for name in called & {"print", "input"} | used & unwanted]
    assert offenders == []
    # Pickles run code: only the tokenizer's processes exchange them, with their parent.
    unsafe = {"dill", "joblib", "marshal", "pickle", "shelve", "torch"}
    names = {
        path.name: set(".".join(n for node in nodes_of(path) for n in imported(node)).split(".")) for path in FILES
    }
    assert [file for file, used in names.items() if unsafe & used] == ["tokenizer.py"]
    assert not any("allow_pickle" in path.read_text() for path in FILES)
    # These imports run before `--help`; the test below checks what they import in turn.
    allowed, offenders = sys.stdlib_module_names | {"click", "tiedtools"}, []
    for path in (PACKAGE / "cli").glob("*.py"):
        top = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.Import | ast.ImportFrom)]
        names = {name.partition(".")[0] for node in top for name in imported(node)}
        offenders += [(path.name, name) for name in names - allowed]
    assert offenders == []


TABLES = {"test_layers.py"}  # files with tables of test cases may be longer


def test_files_are_short():
    lengths = {path: len(path.read_text().splitlines()) for path in [*FILES, *OTHERS]}
    assert [path for path, length in lengths.items() if length >= (600 if path.name in TABLES else 400)] == []


@pytest.mark.skipif(importlib.util.find_spec("ruff") is None, reason="needs ruff")
@pytest.mark.parametrize("command", [["check"], ["format", "--check"]], ids=" ".join)
def test_style(command):
    result = subprocess.run([sys.executable, "-m", "ruff", *command, ROOT], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout


def commands(group, *words):
    """Yield the words of every command, including groups."""
    yield list(words)
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        yield from commands(command, *words, name) if isinstance(command, click.Group) else [[*words, name]]


def test_help_imports_no_slow_package():
    """This keeps `--help` fast on every machine."""
    code = f"""
import sys
from tiedtools.cli import cli
for command in {list(commands(cli))}:
    try:
        cli([*command, "--help"], prog_name="tiedtools")
    except SystemExit as stop:
        assert stop.code == 0
    slow = {{"numpy", "numba", "scipy", "tqdm", "xopen", "matplotlib", "tiedtools.kernels"}} & set(sys.modules)
    assert not slow, (command, slow)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("Usage: ") == len(list(commands(cli)))

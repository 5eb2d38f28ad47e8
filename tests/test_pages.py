"""Test the pages: their figures, links, and options, and the site made from them."""

import importlib.util
import re
import shlex
import subprocess
import sys

import click
import pytest
from benchmarks.commands import cli as benchmark
from common import ROOT

from tiedtools.cli import COMMANDS, cli

DOCS = ROOT / "docs"
PAGES = [*(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY")), *sorted(DOCS.glob("*.md"))]
PACKAGE = ROOT / "tiedtools"

pytestmark = pytest.mark.skipif(not DOCS.is_dir(), reason="needs a checkout")


def module(name):
    """Import a script in docs/."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_the_reference_and_the_man_page_match_help():
    """Each command has a section on one page."""
    written = (page := module("reference")).pages() | {"tiedtools.1": page.man()}
    read = {path.name: path.read_text() for path in [*DOCS.glob("commands*.md"), DOCS / "tiedtools.1"]}
    assert read == written, "run python docs/reference.py"
    sections = re.findall(r"^## (tiedtools.*)$", "".join(read.values()), re.MULTILINE)
    assert sorted(sections) == sorted(context.command_path for context in module("reference").contexts())
    page = (DOCS / "tiedtools.1").read_text().replace(r"\-", "-")
    for context in list(module("reference").contexts())[1:]:
        assert f".SS {context.command_path}\n" in page
        for parameter in context.command.params:
            assert parameter.param_type_name == "argument" or parameter.opts[0] in page


def spans(page):
    """Return the code spans in a page's prose."""
    prose = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    return set(re.findall(r"`([^`\n]+)`", prose))


def test_paths_and_names_in_the_overview_exist():
    path = re.compile(r"[\w/-]+(\.py|\.sh)|(tiedtools|tests|docs|examples|bin|cli|models|layers|kernels)/[\w/.-]*")
    named = [(page.name, s) for page in PAGES if page.name[:8] != "commands" for s in spans(page) if path.fullmatch(s)]
    assert len(named) > 20
    assert [at for at in named if not any((folder / at[1]).exists() for folder in (ROOT, PACKAGE))] == []
    code = "".join(path.read_text() for path in PACKAGE.rglob("*.py"))
    overview = DOCS / "overview.md"
    drawn = re.findall(r"^ .*?(\w+\.py) +(\w[\w.]*)\(\)", overview.read_text(), re.MULTILINE)
    named = [span[:-2] for span in spans(overview) if span.endswith("()")] + [name for _, name in drawn]
    classes = [span for span in spans(overview) if re.fullmatch(r"[A-Z][a-z]\w+", span)]
    assert len(drawn) >= 6 and len(named) >= 20 and len(classes) >= 6
    for name in [part for dotted in named for part in dotted.split(".")] + classes:
        assert re.search(rf"^\s*(def|class) {name}\b", code, re.MULTILINE) or any(PACKAGE.rglob(f"{name}.py")), name
    # Each row of its table names a folder, and the modules in it.
    rows = re.findall(r"^\| `([\w/]+)/` \| (.*) \|$", (DOCS / "overview.md").read_text(), re.MULTILINE)
    named = {folder: set(re.findall(r"`(\w+)`", modules)) for folder, modules in rows}
    present = {path.relative_to(PACKAGE) for path in PACKAGE.glob("*/**/*.py") if path.name != "__init__.py"}
    assert [path for path in present if path.stem not in named.get(path.parent.as_posix(), ())] == []


def mentioned():
    """Return the command lines in prose and in indented blocks, without optional parts."""
    lines = []
    for page in PAGES:
        set_off = re.findall(r"^    (tiedtools .*)$", page.read_text(), re.MULTILINE)
        lines += [(page.name, line) for line in [*sorted(spans(page)), *set_off] if line.startswith("tiedtools ")]
    return [(page, re.sub(r" \[.*?\]|-?>.*", "", line)) for page, line in lines if "COMMAND" not in line]


def mistake(line):
    """Return what is wrong with a command line, or None."""
    _, name, *arguments = shlex.split(line)
    try:
        cli.get_command(None, name).make_context(name, arguments)
    except AttributeError:
        return "no such command"
    except click.UsageError as error:
        return error
    except click.exceptions.Exit:  # --help
        return None


def test_command_lines_parse_and_include_every_command():
    lines = {(page, line): mistake(re.sub(r"\b[A-Z]\b", "3", line)) for page, line in mentioned()}
    offenders = {at: error for at, error in lines.items() if error and not isinstance(error, click.MissingParameter)}
    assert len(lines) > 50 and offenders == {}
    assert {line: error for line in shown_commands() if (error := mistake(line))} == {}
    assert {line.split()[1] for line in shown_commands()} == set(COMMANDS)


def benchmarks():
    """Return the command lines of benchmarks on all pages."""
    lines = "".join(page.read_text() for page in PAGES)
    return re.findall(r"python examples/benchmarks ([\w -]+[^`\n]*)", lines.replace("\\\n", ""))


@pytest.mark.parametrize("line", benchmarks())
def test_benchmarks_parse(line):
    name, *arguments = shlex.split(line.partition(" >")[0])
    benchmark.commands[name].make_context(name, arguments)


def shown_commands():
    """Return the command lines in the code blocks of README and tutorial, and in the scripts."""
    pages = ROOT / "README.md", DOCS / "tutorial.md"
    code = "".join("".join(page.read_text().split("```")[1::2]) for page in pages)
    code += (ROOT / "bin/demo").read_text() + (ROOT / "examples/quickstart.sh").read_text()
    parts = [part for line in code.replace("\\\n", "").splitlines() for part in line.split(" | ")]
    return [part.partition(" >")[0] for part in parts if part.startswith("tiedtools ")]


def anchors(page):
    """Return the anchors that GitHub generates for a page's headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_resolve_and_the_home_page_lists_every_page():
    links = [(page, target) for page in PAGES for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text())]
    broken = []
    for page, target in links:
        path, _, anchor = target.partition("#")
        if "://" not in target:
            found = page.parent / path if path else page
            if not found.exists() or anchor and anchor not in anchors(found):
                broken.append((page.name, target))
    assert len(links) > 50 and broken == []
    index = (DOCS / "index.md").read_text()
    titles = {
        page.name: page.read_text().partition("\n")[0][2:] for page in DOCS.glob("*.md") if page.name != "index.md"
    }
    listed = re.findall(r"^\* \[(.*)\]\((.*\.md)\)", index, re.MULTILINE)
    assert len(listed) == len(titles) and {name: title for title, name in listed} == titles
    trees = re.findall(r"^:caption: .*\n((?:[\w-]+\n)+):::", index, re.MULTILINE)
    assert "".join(trees).split() == [name[:-3] for _, name in listed]


def test_cells_of_tables_are_short_and_figures_have_no_background():
    rows = [(page.name, row) for page in PAGES for row in re.findall(r"^ *\|(.*)\|$", page.read_text(), re.MULTILINE)]
    cells = [(page, cell) for page, row in rows for cell in re.split(r"(?<!\\)\|", row)]
    assert len(cells) > 1000 and [at for at in cells if len(at[1].split()) > 60] == []
    fitted = module("figures").fitted
    figures = {path: path.read_text() for path in (DOCS / "figures").glob("*.svg")}
    assert figures and [path for path, text in figures.items() if text != fitted(text)] == [], (
        "run python docs/figures.py"
    )
    assert fitted('style="fill: #ffffff"') == 'style="fill: none"'


def test_the_site_builds(tmp_path):
    for name in "sphinx", "myst_parser", "furo", "latex2mathml":
        pytest.importorskip(name, reason='needs pip install ".[docs]"')
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "--quiet", "--doctree-dir", tmp_path / "trees"]
    result = subprocess.run([*command, ROOT / "docs", tmp_path / "site"], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
    page = (tmp_path / "site" / "python.html").read_text()
    for name in "Word2Vec.fit", "LanguageModel.perplexity", "Vectors.most_similar", "load", "evaluate_similarity":
        assert f'id="tiedtools.{name}"' in page
    assert "&lt;!--" not in page and "eval-rst" not in page
    assert 'id="which-model-to-choose"' in (tmp_path / "site" / "index.html").read_text()
    for page in DOCS.glob("*.md"):  # each equation is MathML
        shown = (tmp_path / "site" / page.name).with_suffix(".html").read_text()
        assert shown.count("<math ") == page.read_text().count("```math\n"), page.name
        assert not re.search(r'<(script|link)[^>]* (src|href)="(https?:)?//', shown), page.name
    assert '"lesson"' in (tmp_path / "site" / "searchindex.js").read_text()

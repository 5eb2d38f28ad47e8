"""Test that results.md is made from docs/results/, that the files are complete, and what examples/papers.py writes."""

import importlib.util
import re
import shlex
import sys

import pytest
from common import ROOT

from tiedtools.cli import cli

DOCS = ROOT / "docs"
FILES = sorted((DOCS / "results").glob("*.json"))

pytestmark = pytest.mark.skipif(not FILES, reason="needs a checkout")


def module(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


results = module(DOCS / "results.py") if FILES else None
TABLES = {path.stem: results.load(path.stem) for path in FILES if path.stem not in ("index", "speed-history")}


def test_the_pages_are_made_from_the_files():
    page = (DOCS / "results.md").read_text()
    assert page == results.page(), "run python docs/results.py"
    assert page.count("\n") <= 350
    speed = module(DOCS / "speed.py")
    assert speed.PAGE.read_text() == speed.page(), "run python docs/speed.py"
    assert set(re.findall("<!-- (?!end)(.+) -->", speed.page())) == {path.stem for path in speed.FOLDER.glob("*.json")}
    index = results.load("index")
    of_papers = [name for items in index["papers"].values() for _, name, *_ in items if name]
    assert sorted([*of_papers, *(name for names in index["other"].values() for name in names)]) == sorted(TABLES)


def commands(data):
    """Yield the command lines of a table, with fields of rows in the place of {...}."""
    lines = data["command"] if isinstance(data["command"], list) else [data["command"]]
    rows = data.get("rows", [])
    yield from (line for line in lines if not rows)
    for row in rows:
        for line in [row.get("command", data["command"]), *row.get("evaluate", data.get("evaluate", []))]:
            yield from line.format(**{**data, **row, "seed": 1}).split(" | ")


def mistake(line):
    """Return what is wrong with the command line of tiedtools, or None."""
    name, *arguments = shlex.split(re.sub(r"<.+?>", "X", line))[1:]
    try:
        cli.get_command(None, name).make_context(name, arguments, **cli.context_settings)
    except Exception as error:
        return error


@pytest.mark.parametrize("name", TABLES)
def test_fields_and_findings(name):
    data = TABLES[name]
    assert (DOCS / "results" / f"{name}.json").read_text() == results.dumps(data) + "\n"
    assert {"title", "about", "command", "machine", "version", "comparable", "seen"} <= set(data)
    rows, tables = data.get("rows", []), data.get("tables", [])
    assert rows or {"seeds", "epochs"} <= set(data) and tables
    assert len({row["row"] for row in rows}) == len(rows)
    for row in rows:
        assert {"row", "epochs", "paper", "runs"} <= set(row) and set(row["paper"]) <= set(data["figures"])
        assert row["row"].endswith(row.get("column", ""))
        for run in row["runs"]:
            assert any(isinstance(run.get(figure), int | float) for figure in data["figures"])
            assert isinstance(run["seed"], int) and run.get("epochs", 0) <= (results.whole(row) or 1000)
    for table in tables:
        assert all(len(line) == len(table["columns"]) for line in table["rows"]) and "caption" in table
    if rows:
        assert [line for line in commands(data) if mistake(line)] == []
    assert not (data.get("finding") and data.get("observed"))
    many = [row for row in results.done(data) if len({run["seed"] for run in row["runs"]}) >= 3]
    if data.get("finding"):
        assert len(many) >= 2 or len(data["seeds"]) >= 3
    elif results.done(data) or data.get("tables"):
        assert data["observed"]


ROW = {"row": "small, tied", "epochs": 20, "paper": {"test": 9.5}, "column": "tied", "runs": []}
RUN = {"seed": 2, "epochs": 20, "params": 1_230_000, "test": 10.0}
DATA = {"figures": ["valid", "test"], "comparable": "", "seen": "yes", "observed": "tied is lower."}


def cells(*runs, **more):
    """Return the lines of the page's table of one row with these runs, and its state and claim."""
    data = {**DATA, "rows": [{**ROW, **more, "runs": list(runs)}]}
    return results.grid(data)[1], results.trained(data)[1], results.state(data), results.claim(data)


def test_what_the_page_says_of_rows():
    grid, lines, state, claim = cells(RUN, {**RUN, "seed": 3, "test": 12.0})
    assert grid == [["small", "11.0 (9.5), 2 seeds, 1.23M"]] and lines[0][1:] == [1_230_000, 20, None, 11.0, "9.5"]
    assert (state, claim) == ("yes", "Two seeds: tied is lower.")
    grid, lines, state, claim = cells({**RUN, "epochs": 7}, sessions=2)
    assert grid[0][1].endswith("7 of 40 epochs") and lines[0][2] == "7 of 40" and "(7 of 40 epochs)" in state
    assert claim == "One seed: tied is lower." and cells()[:3] == ([], [], "not run")


@pytest.fixture
def papers(monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    return module(ROOT / "examples" / "papers.py")


def test_a_shorter_run_does_not_replace_a_longer_one(papers, capsys):
    row = {**ROW, "runs": [RUN]}
    papers.update(row, {**RUN, "epochs": 7})
    assert row["runs"] == [RUN] and "20" in capsys.readouterr().err
    longer, other = {**RUN, "test": 9.0}, {**RUN, "seed": 1, "epochs": 7}
    papers.update(row, longer)
    papers.update(row, other)
    assert row["runs"] == [other, longer]


def test_figures_of_logs_and_parts_of_texts(papers, tmp_path):
    log = tmp_path / "log"
    epochs = [f'{{"epoch": {k}, "lr": 1, "valid_ppl": {v}, "seconds": {k}}}\n' for k, v in enumerate((9, 7.126, 8), 1)]
    log.write_text("".join(epochs))
    stopped = papers.logged(log)
    assert stopped["epochs"] == 3 and stopped["valid"] == 8 and "test" not in stopped
    (tmp_path / "log.txt.run.json").write_text('{"best_epoch": 2}')
    assert papers.logged(log)["valid"] == 7.126
    log.write_text("".join([*epochs, '{"best_epoch": 2, "test_ppl": 6.5, "params": 4, "seconds": 5}\n']))
    whole = papers.logged(log)
    curve = {1: 9, 2: 7.13, 3: 8}
    assert whole == dict(epochs=3, valid=7.126, seconds=5, best_epoch=2, test=6.5, params=4, curve=curve)
    sets = [{"set": "men", "pairs": 3, "rho": 0.5}, {"set": "rw", "rho": 0.25}]
    found = papers.leaves({"seed": 1, "results": [{"sets": sets, "mean_rho": 0.375}]})
    assert found == {"seed": 1, "men": 0.5, "rw": 0.25, "mean": 0.375}
    text = tmp_path / "text"
    text.write_text("".join(f"{k} {k}\n" for k in range(10)))
    shares = "1/3", "2/3", "3/3", "2/3:7"
    lines = [papers.part(text, share, tmp_path).read_text().splitlines() for share in shares]
    assert [*lines[0], *lines[1], *lines[2]] == text.read_text().splitlines()
    assert [len(part) for part in lines] == [3, 3, 4, 3]
    assert lines[3][0] == "3 3"  # words count with line ends

"""Write the tables of performance.md from results/speed/*.json: python docs/speed.py [TABLE COMMAND [ARGUMENTS]]

With TABLE, first run `python examples/benchmarks COMMAND ARGUMENTS --json`, and write its result to TABLE.json. The
page has a table between the lines `<!-- TABLE -->` and `<!-- end -->`.
"""

import datetime
import json
import re
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
PAGE, FOLDER = DOCS / "performance.md", DOCS / "results" / "speed"
sys.path[:0] = [str(DOCS.parent / "examples"), str(DOCS.parent)]

from benchmarks import rounds  # noqa: E402

from tiedtools.base.processor import available_cores  # noqa: E402
from tiedtools.base.version import __version__  # noqa: E402


def measure(table, arguments):
    """Run a benchmark and write its result, the command with file names for paths, the version, and the date."""
    benchmarks = str(DOCS.parent / "examples" / "benchmarks")
    run = subprocess.run([sys.executable, benchmarks, *arguments, "--json"], stdout=subprocess.PIPE, check=True)
    shown = [re.sub("=.*", "=PATH", each) for each in arguments]
    shown = [Path(each).name if Path(each).exists() else each for each in shown]
    command = " ".join(["python examples/benchmarks", *shown])
    about = dict(command=command, version=__version__, date=str(datetime.date.today()), cores=available_cores())
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"{table}.json").write_text(json.dumps(about | json.loads(run.stdout), indent=1) + "\n")


def text(result):
    """Return the lines of a table for the page: command, conditions, rows, and the rates that the machine reaches."""
    lines = [f"    {result['command']}", "", conditions(result), "", "```text", *rounds.aligned(result["rows"])]
    if result.get("gbytes"):
        rates = {key: {int(t): rate for t, rate in result[key].items()} for key in ("gflops", "gbytes")}
        kinds = {"1": "tied models", "2": "untied models"}  # RNN language models: the width of a row
        lines += ["", *rounds.peaks(rates, lambda kind: kinds.get(kind, kind))]
    return [*lines, "```"]


def conditions(result):
    cores, runs = (f"{result[key]} {key}" for key in ("cores", "runs"))
    return f"{result['processor']}, {cores}, version {result['version']}, {result['date']}; medians of {runs}:"


def page():
    """Return the text of the page with the tables of the files."""
    found = PAGE.read_text()
    for path in sorted(FOLDER.glob("*.json")):
        lines = "\n".join(text(json.loads(path.read_text())))
        found, n = re.subn(
            f"<!-- {path.stem} -->\n.*?<!-- end -->",
            lambda _, name=path.stem, lines=lines: f"<!-- {name} -->\n\n{lines}\n\n<!-- end -->",
            found, flags=re.DOTALL,
        )  # fmt: skip
        if n != 1:
            sys.exit(f"speed.py: {PAGE.name} has {n} places for {path.name}; see the docstring")
    return found


if __name__ == "__main__":
    if sys.argv[1:]:
        measure(sys.argv[1], sys.argv[2:])
    PAGE.write_text(page())

"""The speed of each release, a line of docs/results/speed-history.json: version, date, processor, and rates by row."""

import datetime
import json
from pathlib import Path

import click

from benchmarks.rounds import COLUMNS
from tiedtools.base.errors import TiedtoolsError
from tiedtools.files.output import open_output
from tiedtools.text.sources import counted

FILE = Path(__file__).resolve().parents[2] / "docs" / "results" / "speed-history.json"
RATES = [name for name in COLUMNS if name.endswith("_per_s")]


@click.command(short_help="Recorded speeds of two versions.")
@click.argument("version")
@click.argument("others", nargs=-1, metavar="OTHER|[RESULT]...")
@click.option("--add", is_flag=True, help="Record the speeds in RESULTs, files of --json, as those of VERSION.")
def history(version, others, add):
    """Compare the speeds of VERSION and OTHER in docs/results/speed-history.json, or record those of VERSION.

    Rows of other programs, if both versions have them, show how much of a difference is due to the machines.
    """
    if not add and len(others) != 1 or not others:
        raise click.UsageError("history compares two versions; give both, or results with --add")
    try:
        click.echo(record(version, others) if add else "\n".join(table(version, *others)))
    except (OSError, ValueError) as error:
        raise TiedtoolsError(f"--add: {error}; give results of --json") from error


def read():
    """Return {version: its line}."""
    return {line["version"]: line for line in json.loads(FILE.read_text())}


def record(version, paths):
    """Write the median speeds in results of --json as the line of a version; return a message.

    If several results have the same row, the first counts.
    """
    results = [json.loads(Path(path).read_text()) for path in paths]
    if not all(isinstance(result, dict) and {"processor", "rows"} <= result.keys() for result in results):
        raise ValueError("not all files are results")
    processors = {result["processor"] for result in results}
    if len(processors) != 1:
        raise TiedtoolsError(f"{version}: results of {len(processors)} processors; give those of one")
    rates = {}
    for result in results:
        for row in result["rows"]:
            unit = next(unit for unit in RATES if unit in row)
            kinds = "whole process" * result.get("whole", False), "sentences" * unit.startswith("sentences")
            precision = row["name"].startswith("tiedtools") and result.get("precision")
            name = ", ".join(filter(None, [row["name"], *kinds, precision, counted(row["threads"], "thread")]))
            rates.setdefault(name, round(row[unit]))
    date = max(result.get("date", str(datetime.date.today())) for result in results)
    line = dict(version=version, date=date, processor=processors.pop(), rates=rates)
    lines = (read() | {version: line}).values()
    text = ",\n ".join(map(json.dumps, lines))
    with open_output(str(FILE)) as file:
        file.write(f"[\n {text}\n]\n".encode())
    return f"{FILE}: {len(rates)} speeds of {version}"


def table(old, new):
    """Yield the lines of a table of the rows that both versions have, with the ratio of new to old."""
    lines = read()
    if unknown := [version for version in (old, new) if version not in lines]:
        raise TiedtoolsError(f"{unknown[0]}: not among the versions {', '.join(lines)}; record it with --add")
    before, after = lines[old]["rates"], lines[new]["rates"]
    yield f"{'words, tokens, or sentences per second':45}{old:>12}{new:>12}   ratio"
    for name in filter(after.__contains__, before):
        yield f"{name:45}{before[name]:12,}{after[name]:12,}{after[name] / before[name]:8.2f}"
    yield from (f"{version}: {lines[version]['processor']}, {lines[version]['date']}" for version in (old, new))
    if lines[old]["processor"] != lines[new]["processor"]:
        yield "measured on different machines: compare only the ratios to other programs"

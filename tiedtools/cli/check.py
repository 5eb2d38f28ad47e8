"""`tiedtools check`: check vector files for errors."""

import click

from tiedtools.cli.options import format_option, json_option, option
from tiedtools.text.sources import read_once


@click.command(short_help="Check vector files for errors.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@format_option
@option(
    "examples",
    also="n",
    type=click.IntRange(min=1),
    default=3,
    metavar="N",
    help="Maximum number of problems shown per kind.",
)
@json_option("Print one JSON object instead of lines.")
@click.pass_context
def command(ctx, files, format, examples, as_json):
    """Check vector files for errors, reported as `FILE:LINE: problem` or `FILE: row ROW: problem`.

    Problems detected: a header that contradicts the rest, duplicate words, words with whitespace of any kind, control
    characters or invalid UTF-8, nan and infinities, all-zero vectors, norms above 10,000 (diverged training), lines
    with too few or too many numbers, empty lines, tabs or multiple spaces between fields, CRLF line ends, a byte order
    mark, truncated files, and trailing data. tiedtools reads files with some of these problems; other programs may
    not. The whole FILE is read despite problems; `-` is standard input.

    Other files that tiedtools writes, such as vocabularies, run manifests, logs, and checkpoints, are recognized; the
    last line says what reads them, and whether they were checked.

    For each kind of problem, the first cases and the number of further ones are shown; the last line summarizes the
    file. The exit status is 1 if any problem was found.
    """
    import json

    from tiedtools.base.errors import printable
    from tiedtools.cli.spelling import spelled
    from tiedtools.vectors.check import Check

    read_once(*files)
    results = []
    for file in files:
        check = Check(file, format, examples)
        total = check.counts.total()
        kinds: dict[str, dict] = {
            kind: {
                "count": check.counts[kind],
                "examples": [f"{file}{position}: {spelled(text, command)}" for position, text in cases],
            }
            for kind, cases in check.problems.items()
        }
        results.append({"file": file, "format": check.format, "words": check.rows, "dim": check.E, "problems": kinds})
        if as_json:
            continue
        for kind, found in kinds.items():
            for line in found["examples"]:
                click.echo(printable(line))
            if more := found["count"] - len(found["examples"]):
                click.echo(f"{printable(file)}: {kind}: {more:,} more, {found['count']:,} in all")
        verdict = "all well" if not total else "1 problem" if total == 1 else f"{total:,} problems"
        about = f"{check.format or 'no format'}, {check.rows:,} words of {check.E or 0} numbers, {verdict}"
        if check.use:
            words = f", {check.rows:,} words" * (check.rows > 0)
            about = f"{check.format}{words}, {verdict if check.checked else 'not checked'}; {check.use}"
        click.echo(f"{printable(file)}: {printable(about)}")
    if as_json:
        click.echo(json.dumps({"files": results}))
    return 1 if any(result["problems"] for result in results) else 0

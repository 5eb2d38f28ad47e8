"""Run rows of the papers' tables and write their figures to docs/results: python examples/papers.py TABLE [ROW...]

    python examples/papers.py gulordava-table1                          # the rows, and the epochs of each run
    python examples/papers.py gulordava-table1 "400/400 tied" --folder MODELS --seed 1 --seed 2 --seed 3
    python examples/papers.py inan-table1 all --folder MODELS --options "--threads 2"

docs/results/TABLE.json has the command of each row, its epochs, and the paper's figures (see docs/results.py). Rerun
the same command to resume an interrupted run. A shorter run does not replace a longer one with the same seed.

Texts are data sets of `tiedtools data`; --text NAME=PATH replaces one, or names one that has no download:

    python examples/papers.py press-wolf-table2 all --folder MODELS --text text8=wiki17.txt
"""

import itertools
import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).resolve().parents[1] / "docs"
sys.path.insert(0, str(DOCS))

import click  # noqa: E402
import results  # noqa: E402

from tiedtools.base.errors import TiedtoolsError  # noqa: E402
from tiedtools.base.processor import available_cores, processor_name  # noqa: E402
from tiedtools.base.version import __version__  # noqa: E402
from tiedtools.files.output import open_output  # noqa: E402
from tiedtools.text.datasets import DATASETS, find  # noqa: E402
from tiedtools.text.sources import open_source  # noqa: E402

PROGRAM = [sys.executable, "-m", "tiedtools"]
TRAINING = re.compile("tiedtools (lm|lstm|rnnlm|nmt|w2v) ")
OUTPUTS = "--checkpoint {0}.checkpoint --resume --save-model {0}.npz --log-json {0}.log -output {0}.txt"


class Context(NamedTuple):
    """Where and how rows are run: the table's folder and that of all, and the options of the command line."""

    here: Path
    folder: Path
    epochs: int | None
    texts: dict[str, str]
    options: str


def part(path, share, folder):
    """Write K/N, the K-th of N equal parts of a text's lines, or K/N:WORDS, so many words; return the path."""
    k, n, words = map(int, re.fullmatch(r"(\d+)/(\d+):?(\d*)", share + ("" if ":" in share else ":0")).groups())
    with open_source(str(path)) as file:
        lines = file.readlines()
    lines = lines[len(lines) * (k - 1) // n : len(lines) if words else len(lines) * k // n]
    new, total = folder / f"{path.name}.{k}-{n}-{words}", 0
    with open(new, "wb") as file:
        for line in lines:
            if words and total >= words:
                break
            total += len(line.split()) + 1
            file.write(line)
    return new


def path_of(name, base, context):
    """Return the path of NAME in <NAME>: `model` of this row, TABLE/ROW of another, a text, or a part of one."""
    name, colon, rest = name.partition(":")
    if name == "model" or "/" in name:
        return f"{base if name == 'model' else f'{context.folder / name}{base.suffix}'}.npz{colon}{rest}"
    path = context.texts.get(name) or name in DATASETS and find(name)
    if not path:
        raise TiedtoolsError(f"{name}: no such text; give --text {name}=PATH, or set TIEDTOOLS_DATA")
    return str(part(Path(path), rest, base.parent) if rest else path)


def commands(data, row, seed, base, context):
    """Return the command lines of a row: the training, or the first evaluation, and the evaluations of its model."""
    fields = {key: value for key, value in {**data, **row, "seed": seed}.items() if isinstance(value, str | int)}
    epochs = context.epochs or row["epochs"]
    for line in [row.get("command", data["command"]), *row.get("evaluate", data.get("evaluate", []))]:
        line = line.format(**fields)
        if TRAINING.match(line):
            sessions = f" --sessions {row['sessions']}" if "sessions" in row else ""
            line += f" --seed {seed} {OUTPUTS.format(shlex.quote(str(base)))}{sessions} {context.options}"
            line += f" --epochs {epochs}" if epochs else ""
        yield re.sub("<(?!unk>)(.+?)>", lambda name: shlex.quote(path_of(name[1], base, context)), line)


def executed(line):
    """Run a command line, or several joined by pipes; return (status, standard output)."""
    print(f"$ {line}", file=sys.stderr)
    output = ""
    for each in line.split(" | "):
        found = subprocess.run([*PROGRAM, *shlex.split(each)[1:]], input=output, stdout=subprocess.PIPE, text=True)
        output = found.stdout
        if found.returncode:
            return found.returncode, output
    return 0, output


def logged(log):
    """Return the figures in a training log: those of the epoch whose model was kept, and the validation curve."""
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    epochs = [line for line in lines if "epoch" in line]
    last = lines[-1] if "params" in lines[-1] else {}
    record = Path(f"{log.with_suffix('')}.txt.run.json")  # also of a stopped run
    best = (last or record.exists() and json.loads(record.read_text()) or {}).get("best_epoch")
    kept = next((line for line in epochs if line["epoch"] == best), epochs[-1])
    figures = {key.removesuffix("_ppl"): value for key, value in {**kept, **last}.items() if key not in ("epoch", "lr")}
    curve = {line["epoch"]: round(line["valid_ppl"], 2) for line in epochs if line.get("valid_ppl")}
    return {"epochs": len(epochs), **figures, "curve": curve}


def leaves(answer):
    """Return the numbers in a command's JSON object by name; of similarity sets, rho by the name of the set."""
    found = {}
    for key, value in answer.items():
        if key == "sets":
            found |= {each["set"]: each["rho"] for each in value}
        elif isinstance(value, dict | list):
            first = value if isinstance(value, dict) else next(iter(value), {})
            found |= leaves(first) if isinstance(first, dict) else {}
        elif isinstance(value, int | float):
            found["mean" if key == "mean_rho" else key] = value
    return found


def measure(data, row, seed, context):
    """Run the commands of a row; return (status, figures of the run)."""
    name = re.sub(r"[^\w+.]+", "-", row["row"])
    base = context.here / f"{name}.{seed}"
    base.parent.mkdir(parents=True, exist_ok=True)
    log, found, status = Path(f"{base}.log"), {}, 0
    for line in commands(data, row, seed, base, context):
        status, output = executed(line)
        if TRAINING.match(line):
            found |= logged(log) if log.exists() else {}
        elif output.startswith("{"):
            found |= leaves(json.loads(output.splitlines()[0]))
        else:
            print(output, end="")
        if status:
            break
    found = {key: round(x, 4) if isinstance(x, float) else x for key, x in found.items()}
    kept = {key: found[key] for key in ["epochs", "params", "seconds", *data["figures"], "curve"] if key in found}
    return status, kept and {"seed": seed, **kept, **conditions(context)}


def conditions(context):
    """Return the machine, the version with its commit, and a note of further options and replaced data sets."""
    git = ["git", "-C", DOCS, "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True).stdout.strip() if shutil.which("git") else ""
    machine = f"{processor_name()}, {available_cores()} cores"
    texts = [f"{name}: {Path(path).name}" for name, path in context.texts.items() if name in DATASETS]
    note = ", ".join(filter(None, [re.sub(r"--threads \d+", "", context.options).strip(), *texts]))
    return {"machine": machine, "version": f"{__version__} {commit}".strip(), **({"note": note} if note else {})}


def done(row, seed):
    """Return whether a row has a whole run of a seed."""
    have = [run.get("epochs") for run in row["runs"] if run["seed"] == seed]
    return bool(have) and results.whole(row) in (None, have[0])


def update(row, run):
    """Put a run among those of its row, in the order of the seeds; keep a longer run of the same seed."""
    old = next((each for each in row["runs"] if each["seed"] == run["seed"]), None)
    if old and (old.get("epochs") or 0) > (run.get("epochs") or 0):
        print(f"{row['row']}: the {old['epochs']} epochs of before remain, not these {run['epochs']}", file=sys.stderr)
        return
    row["runs"] = sorted([each for each in row["runs"] if each is not old] + [run], key=lambda each: each["seed"])


@click.command()
@click.argument("table")
@click.argument("row", nargs=-1)
@click.option("--epochs", type=click.IntRange(1), help="Train for fewer epochs.")
@click.option("--seed", "seeds", type=int, multiple=True, default=[1], help="Seed; repeatable.")
@click.option("--folder", type=click.Path(path_type=Path), help="Folder of models and checkpoints.")
@click.option(
    "--results", "written", type=click.Path(path_type=Path), default=results.FOLDER, help="Folder of the figures."
)
@click.option("--text", multiple=True, metavar="NAME=PATH", help="Path of a text; repeatable.")
@click.option("--options", default="", help="Further options of the training commands.")
def main(table, row, epochs, seeds, folder, written, text, options):
    """Run rows of a paper's table, or `all` that have no whole run, and write their figures to docs/results.

    Without ROW, list the rows: name, epochs of a whole training, and epochs of each run.
    """
    path = written / f"{table}.json"
    source = written if path.exists() else results.FOLDER
    if not (source / path.name).exists():
        names = (each.stem for each in source.glob("*.json") if "rows" in results.load(each.stem, source))
        raise click.UsageError(f"{table}: not among {' '.join(sorted(names))}")
    data = results.load(table, source)
    rows = {each["row"]: each for each in data.get("rows", [])} if isinstance(data, dict) else {}
    if not rows:
        raise click.UsageError(f"{table} has no rows to run; docs/results/{table}.json has its command")
    if not row:
        for name, each in rows.items():
            runs = ", ".join(f"seed {run['seed']}: {run.get('epochs') or 'run'}" for run in each["runs"]) or "not run"
            print(name, results.whole(each) or "", runs, sep="\t")
        return
    todo = list(rows) if row == ("all",) else row
    if unknown := [name for name in todo if name not in rows]:
        raise click.UsageError(f"{unknown[0]}: not a row of {table}; `papers.py {table}` lists them")
    if folder is None:
        raise click.UsageError("give --folder, for models and checkpoints")
    if wrong := [pair for pair in text if "=" not in pair]:
        raise click.UsageError(f"--text {wrong[0]}: give NAME=PATH")
    if row == ("all",):
        todo = [name for name in todo if not all(done(rows[name], seed) for seed in seeds)]
        if not todo:
            click.echo(f"{table}: all rows have whole runs; name a ROW to run it again", err=True)
    context = Context(folder / table, folder, epochs, dict(pair.split("=", 1) for pair in text), options)
    signal.signal(signal.SIGINT, lambda *_: None)  # the training stops, and its epochs are recorded
    for name, seed in itertools.product(todo, seeds):
        if row == ("all",) and done(rows[name], seed):
            continue
        status, run = measure(data, rows[name], seed, context)
        if run:
            data = results.load(table, written if path.exists() else results.FOLDER)  # with rows of other processes
            rows = {each["row"]: each for each in data["rows"]}
            update(rows[name], run)
            path.parent.mkdir(parents=True, exist_ok=True)
            with open_output(str(path)) as file:
                file.write(f"{results.dumps(data)}\n".encode())
            if written.resolve() == results.FOLDER:
                results.write()
        if status:
            sys.exit(status)


if __name__ == "__main__":
    try:
        main()
    except TiedtoolsError as error:
        sys.exit(f"papers.py: {error}")

"""Read results of other commands: logs of training runs, tables of several runs, speeds, and attention weights."""

import json
import math
from typing import Any

import numpy as np

from tiedtools.base.errors import TiedtoolsError
from tiedtools.files.modelfile import LARGEST
from tiedtools.text.sources import json_lines, numbered_lines, shown

AXES = "epoch", "seconds"
NUMBERS = *AXES, "train_ppl", "valid_ppl", "valid_bleu", "valid_loss", "loss"


def read_log(path: Any) -> list[dict[str, Any]]:
    """Read the epochs of a log, a list of dicts of metrics (docs/formats.md).

    Raises TiedtoolsError with file and line for a line that is not a JSON object, and if there are no epochs.
    """
    epochs, remedy = [], "give a file written by `log_json`"
    for number, figures in json_lines(path, remedy):
        if "epoch" in figures:
            for name in NUMBERS:
                value = figures.get(name)
                if not is_number(value) and (value is not None or name in AXES):
                    raise TiedtoolsError(f"{path}:{number}: {name} is missing or not a valid number; {remedy}")
            epochs.append(figures)
    if not epochs:
        raise TiedtoolsError(f"{path}: holds no epochs; {remedy}")
    return epochs


def read_points(path: Any, x: str, y: str, by: str | None = None) -> list[tuple[float, float, str]]:
    """Read a tab-separated table with column names in the first line; return (x, y, group) for each row.

    `x` and `y` name columns of numbers, `by` names the column of the group. None: all rows are in one group, "".
    Raises TiedtoolsError if a column is missing, and with file and line for a malformed row.
    """
    lines = (line.split("\t") for _, line in numbered_lines(path))
    header = next(lines, [])
    columns = [x, y] if by is None else [x, y, by]
    for name in columns:
        if name not in header:
            raise TiedtoolsError(f"{path}: has no column {name!r}; its columns: {', '.join(header) or 'none'}")
    points = []
    for number, cells in enumerate(lines, 2):
        if len(cells) != len(header):
            raise TiedtoolsError(f"{path}:{number}: expected {len(header)} columns, found {len(cells)}; correct it")
        row = dict(zip(header, cells))
        try:
            point = float(row[x]), float(row[y])
        except ValueError:
            point = (math.nan,)
        if not all(map(is_number, point)):
            raise TiedtoolsError(f"{path}:{number}: {x} and {y} must be numbers; correct them")
        points.append((*point, "" if by is None else row[by]))
    if not points:
        raise TiedtoolsError(f"{path}: has no rows to plot; add some below the column names")
    return points


def read_speeds(path: Any) -> tuple[str, list[tuple[str, int, float, float, float]]]:
    """Read the rows of a benchmark's JSON: (unit, list of (name, threads, median, slowest, fastest)).

    Raises TiedtoolsError if the file was not written by examples/benchmarks with --json.
    """
    text = "\n".join(line for _, line in numbered_lines(path))
    try:
        rows = json.loads(text)["rows"]
        unit = "words_per_s" if "words_per_s" in rows[0] else "tokens_per_s"
        names = "name", "threads", unit, "slowest", "fastest"
        speeds = [tuple(row[name] for name in names) for row in rows if unit in row]
        if not speeds or not all(isinstance(name, str) and all(map(is_number, figures)) for name, *figures in speeds):
            raise ValueError
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        raise TiedtoolsError(f"{path}: not a benchmark's result; give the output of a benchmark with --json") from None
    return unit.replace("_per_s", " per second"), speeds


def read_attention(path: Any, line: int) -> tuple[list[str], list[str], np.ndarray]:
    """Read (source, target, weights float [T, S]) of the first translation of a line, numbered from 1.

    source, target  lists of S and T str

    Raises TiedtoolsError if the file was not written by `tiedtools translate --align`, or lacks the line.
    """
    remedy = "give a file written by `tiedtools translate --align`"
    for number, entry in json_lines(path, remedy):
        try:
            if entry["line"] == line:
                source, target, weights = entry["source"], entry["target"], np.array(entry["weights"], float)
                if weights.shape != (len(target), len(source)) or not np.isfinite(weights).all():
                    raise ValueError
                return [str(word) for word in source], [str(word) for word in target], weights
        except (ValueError, KeyError, TypeError):
            raise TiedtoolsError(f"{shown(path)}:{number}: not attention weights; {remedy}") from None
    raise TiedtoolsError(f"{shown(path)}: holds no weights of line {line}; give another `line`")


def is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) <= LARGEST

"""What runs leave behind: the logs of --log-json, and tables of figures from several runs."""

import json
import math

from tiedtools.errors import TiedtoolsError
from tiedtools.files.modelfile import LARGEST
from tiedtools.text.sources import numbered_lines

AXES = "epoch", "seconds"
NUMBERS = *AXES, "train_ppl", "valid_ppl", "loss"


def read_log(path):
    """The epochs of a log, dicts of figures (docs/formats.md).

    Raises TiedtoolsError naming the file and the line that is no such object, and where there are no epochs.
    """
    epochs = []
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        try:
            figures = json.loads(line)
            if not isinstance(figures, dict):
                raise ValueError
        except (ValueError, RecursionError):
            raise TiedtoolsError(f"{path}:{number}: is no JSON object; give a file that `log_json` wrote") from None
        if "epoch" in figures:
            for name in NUMBERS:
                if not is_number(value := figures.get(name)) and (
                    name in figures and value is not None or name in AXES
                ):
                    raise TiedtoolsError(f"{path}:{number}: {name} is no number; give a file that `log_json` wrote")
            epochs.append(figures)
    if not epochs:
        raise TiedtoolsError(f"{path}: holds no epochs; give a file that `log_json` wrote")
    return epochs


def read_points(path, x, y, by=None):
    """Points of a tab-separated table whose first line names its columns: (x, y, group) for each further line.

    x, y  names of columns of numbers        by  that of the group's name; None: one group, ""

    Raises TiedtoolsError for a column that is not there, and naming the file and the line that is no such row.
    """
    lines = (line.split("\t") for _, line in numbered_lines(path))
    header = next(lines, [])
    columns = [x, y] if by is None else [x, y, by]
    for name in columns:
        if name not in header:
            raise TiedtoolsError(f"{path}: has no column {name!r}; it has {', '.join(header) or 'none'}")
    points = []
    for number, cells in enumerate(lines, 2):
        if len(cells) != len(header):
            raise TiedtoolsError(f"{path}:{number}: expected {len(header)} columns, found {len(cells)}; correct it")
        found = dict(zip(header, cells))
        try:
            point = float(found[x]), float(found[y])
        except ValueError:
            point = (math.nan,)
        if not all(map(is_number, point)):
            raise TiedtoolsError(f"{path}:{number}: {x} and {y} must be numbers")
        points.append((*point, "" if by is None else found[by]))
    if not points:
        raise TiedtoolsError(f"{path}: has no lines to draw; give a table of figures")
    return points


def is_number(value):
    return type(value) in (int, float) and abs(value) <= LARGEST

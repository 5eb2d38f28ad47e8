"""The logs that training runs leave behind: --log-json."""

import json

from tiedtools.errors import TiedtoolsError
from tiedtools.modelfile import LARGEST
from tiedtools.text import numbered_lines

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
            raise TiedtoolsError(f"{path}:{number}: is no JSON object; give a file that --log-json wrote") from None
        if "epoch" in figures:
            for name in NUMBERS:
                if not is_number(value := figures.get(name)) and (
                    name in figures and value is not None or name in AXES
                ):
                    raise TiedtoolsError(f"{path}:{number}: {name} is no number; give a file that --log-json wrote")
            epochs.append(figures)
    if not epochs:
        raise TiedtoolsError(f"{path}: holds no epochs; give a file that --log-json wrote")
    return epochs


def is_number(value):
    return type(value) in (int, float) and abs(value) <= LARGEST

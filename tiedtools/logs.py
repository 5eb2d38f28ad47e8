"""The logs that training runs leave behind: --log-json."""

import json

from tiedtools.errors import TiedtoolsError
from tiedtools.text import numbered_lines


def read_log(path):
    """The epochs of a log, dicts of figures (docs/formats.md).

    Raises TiedtoolsError naming the file and the line that is no JSON object, and where there are no epochs.
    """
    epochs = []
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        try:
            figures = json.loads(line)
            epochs += [figures] if "epoch" in dict(figures) else []
        except (TypeError, ValueError):
            raise TiedtoolsError(f"{path}:{number}: is no JSON object; give a file that --log-json wrote") from None
    if not epochs:
        raise TiedtoolsError(f"{path}: holds no epochs; give a file that --log-json wrote")
    return epochs

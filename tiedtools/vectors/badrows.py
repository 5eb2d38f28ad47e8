"""What readers of vectors do about lines and rows that cannot be read: raise an error, or skip and count them."""

import numpy as np

from tiedtools.base.errors import TiedtoolsError, quoted
from tiedtools.base.messages import log
from tiedtools.text.sources import counted, shown

BLOCK = 1 << 20


class Bad:
    """Raises the errors of a file of vectors, or collects them while bad rows are skipped.

    skip  whether to skip bad rows; None: not, and do not mention the possibility
    """

    def __init__(self, skip=None):
        self.skip, self.rows = skip, 0
        self.first: TiedtoolsError | None = None
        self.others: list[TiedtoolsError] = []

    def row(self, error):
        """Report a row that cannot be read."""
        if not self.skip:
            raise TiedtoolsError(f"{error}{', or skip it with `skip_bad`' * (self.skip is False)}") from None
        self.first = self.first or error
        self.rows += 1

    def whole(self, error):
        """Report an error that leaves the other rows readable, such as a wrong number of rows."""
        if not self.skip:
            raise error from None
        self.others.append(error)

    def tell(self, path, kept):
        """Log what was skipped in a file of which `kept` rows are left. Raises an error if none is."""
        if not kept and (error := self.first or next(iter(self.others), None)):
            raise error
        if self.rows:
            first = str(self.first).rpartition("; ")[0]  # without the remedy
            log.warning(f"{shown(path)}: skipped {counted(self.rows, 'bad row')}; the first: {first}")
        for error in self.others:
            log.warning(str(error))


STRICT = Bad()


def sound(words, matrix, position, bad=STRICT):
    """Return words and matrix without the rows with a value that is not finite, or without a word (None).

    Rows of the former kind are reported; `position` and the row number begin the message.
    """
    finite = np.ones(len(words), bool)
    step = max(1, BLOCK // max(1, matrix.shape[1]))
    for start in range(0, len(words), step):
        finite[start : start + step] = np.isfinite(matrix[start : start + step]).all(axis=1)
    if finite.all() and None not in words:
        return words, matrix
    for row in np.flatnonzero(~finite).tolist():
        if words[row] is not None:
            problem = "has a value that is nan or infinite; if training diverged, lower the learning rate"
            bad.row(TiedtoolsError(f"{position} {row + 1}: {quoted(words[row])} {problem}"))
    kept = [row for row, word in enumerate(words) if finite[row] and word is not None]
    return [words[row] for row in kept], matrix[kept]

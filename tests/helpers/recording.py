"""Records of PyTorch's losses, by which kernels are tested where PyTorch is not installed."""

import json

import numpy as np


def record(path, figures):
    """Write `figures` as JSON, a line for each key.

    figures  pairs of a key and the (losses, gradient norms) of each step
    """
    rounded = lambda values: np.round(values, 9).tolist()
    entries = {key: {"loss": rounded(losses), "norm": rounded(norms)} for key, (losses, norms) in figures}
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(entry)}" for key, entry in entries.items())
    path.write_text(f"{{\n{lines}\n}}\n")

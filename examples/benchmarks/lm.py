"""Benchmark of language models: tasks, variants, and floating-point operations of a training step."""

import dataclasses
import itertools
import re
from typing import Any

import numpy as np

from benchmarks import subwords, zipf
from tiedtools.base.errors import Contradiction
from tiedtools.models.lm.config import LstmConfig

WORKERS, STEPS = ("workers:LmTraining", "torchlm:Training"), "windows"
# Models of other cells and regularizers: name -> fields of Task.
CELLS = {
    "awd": dict(
        layer_widths="1150,1150,400", layers=3, hidden=400, size=400, tying="tied", dropout_kind="locked",
        drop_weights=0.5, ar=2.0, tar=1.0,
    ),  # Merity et al.
    "gru": dict(cell="gru", hidden=650, size=650, tying="tied"),
    "rhn": dict(
        cell="rhn", depth=10, hidden=830, size=830, tying="tied", layers=1, dropout_kind="gal"
    ),  # Zilly et al., PTB
}  # fmt: skip
WINDOWS = 50  # length of the text in windows; it repeats


@dataclasses.dataclass(frozen=True)
class Task:
    """Settings of a benchmark run, passed to a worker as JSON.

    path       file of int32 IDs [rows, batch]; each row is a step whose targets are the next row
    hidden, size, tying, layers, layer_widths, batch, steps, cell, depth, dropout_kind, drop_weights, ar, tar
               as in LstmConfig
    dropout    probability at all sites of this kind of dropout, except word types
    lr, clip   learning rate and gradient clipping of SGD, for the mean loss over the tokens of a window
    precision  precision of matrix products
    subwords   as in LstmConfig; the output layer reuses all parameters that compose word vectors
    compile    whether PyTorch compiles a step of a cell that it has no layer for
    """

    path: str
    vocabulary: int
    hidden: int
    size: int
    tying: str = "untied"
    layers: int = 2
    layer_widths: str | None = None
    batch: int = 20
    steps: int = 35
    dropout: float = 0.3
    lr: float = 1.0
    clip: float = 0.25
    threads: int = 1
    precision: str = "float32"
    subwords: str | None = None
    cell: str = "lstm"
    depth: int | None = None
    dropout_kind: str = "standard"
    drop_weights: float = 0.0
    ar: float = 0.0
    tar: float = 0.0
    compile: bool = False

    @property
    def config(self):
        """The LstmConfig, without dropout."""
        names = "hidden", "size", "tying", "layers", "layer_widths", "subwords", "cell", "depth"
        config: Any = LstmConfig(**{name: getattr(self, name) for name in names})
        return config

    def tokens(self, windows):
        """Return the number of tokens in `windows` windows."""
        return windows * self.steps * self.batch

    def write(self):
        """Write the text: independent words with Zipfian frequencies and a fixed random seed."""
        n = (WINDOWS * self.steps + 1) * self.batch
        ids = zipf.draw(np.random.default_rng(1), n, zipf.shares(self.vocabulary))
        ids.astype(np.int32).tofile(self.path)

    def flops(self):
        """Return {part of a step: floating-point operations per token}, forward and backward.

        Only matrix products count: each weight takes one multiply-add in the forward pass and two in the backward pass,
        for the gradients of the input and of the weight. Embedding rows are only copied.
        """
        c = self.config
        m, n = c.width, c.hidden
        gates, cell = {"lstm": 4, "gru": 3, "rhn": 2}[c.cell], c.cell.upper()
        pairs = itertools.pairwise([m, *c.units])
        weights = sum(gates * after * (before + (c.depth or 1) * after) for before, after in pairs)
        linear = c.tying == "linear"
        parts = {f"{cell} forward": 2 * weights, f"{cell} backward": 4 * weights, "L": 6 * n * m * linear}
        parts |= {"softmax": 6 * self.vocabulary * (m if linear else n)}
        return parts | (subwords.flops(self) if self.subwords else {})


def shape(variant):
    """Parse "HIDDEN/EMB", "HIDDEN/EMB-tied", or "HIDDEN/EMB-linear" into a dict of hidden, size, and tying.

    The name of a kind of subwords stands for its small model, a name in CELLS for that model. Raises TiedtoolsError for
    any other string, and if tied sizes differ.
    """
    if variant in CELLS:
        return CELLS[variant]
    if variant in subwords.KINDS:
        return dict(subwords.KINDS[variant].sizes, subwords=variant)
    match = re.fullmatch(r"([1-9]\d{0,4})/([1-9]\d{0,4})(?:-(tied|linear))?", variant)
    if not match:
        raise Contradiction(
            f"--variants: {variant!r} is not HIDDEN/EMB, HIDDEN/EMB-tied, or HIDDEN/EMB-linear, or"
            f" {', '.join([*subwords.KINDS, *CELLS])}"
        )
    sizes: dict = dict(hidden=int(match[1]), size=int(match[2]), tying=match[3] or "untied")
    LstmConfig(**sizes)
    return sizes


def heading(result):
    """Describe the settings that all contenders share."""
    r = result
    return f"vocabulary {r['vocabulary']:,}, batch {r['batch']}, {r['steps']} steps; HIDDEN/EMB: {r['layers']} layers"

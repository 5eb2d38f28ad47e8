"""Configuration of an LSTM language model. Imports nothing heavy."""

import dataclasses
from typing import ClassVar

from tiedtools.network.cells import CELLS
from tiedtools.network.config import Dropout, Loss, Tying


@dataclasses.dataclass(frozen=True)
class LstmConfig(Loss, Dropout, Tying):
    """Zaremba et al. 2014 with what the papers on tied embeddings add. None: the value of another field.

    emb, hidden, layers  widths m and n and the number of layers of cells; hidden None: as emb
    cell            of network.cells.CELLS
    init            parameters start uniform in +-init; init_lstm: those of the LSTM, of L, and of P, None: as init
    init_bias       biases start "uniform" like the rest, or "zero"; "lstm": those of the LSTM and of L uniform, that of
                    the softmax zero. forget_bias is added to those of forget gates
    steps, batch    T and B of truncated backpropagation through time
    seed, threads
    precision       of the products in training; with "bfloat16" their sums, all parameters, all scoring and the softmax
                    of `sampled` stay float32
    dtype           of everything else

    Raises TiedtoolsError for combinations that make no sense.
    """

    emb: int = 200
    hidden: int | None = None
    layers: int = 2
    cell: str = "lstm"
    init: float = 0.1
    init_lstm: float | None = None
    init_bias: str = "uniform"
    forget_bias: float = 0.0
    steps: int = 35
    batch: int = 20
    seed: int = 1
    threads: int = 1
    precision: str = "float32"
    dtype: str = "float32"

    choices: ClassVar[dict] = {
        "cell": CELLS,
        "init_bias": ("uniform", "zero", "lstm"),
        "precision": ("float32", "bfloat16"),
        "dtype": ("float32", "float64"),
    }

    def __post_init__(self):
        for name, default in ("hidden", self.emb), ("init_lstm", self.init):
            if getattr(self, name) is None:
                object.__setattr__(self, name, default)
        super().__post_init__()

    def mistakes(self):
        """See Checked."""
        rates = self.rates
        yield (
            f"`tying='tied'` needs embeddings and hidden layers of one width, not {self.emb} and {self.hidden}:"
            " make `emb` and `hidden` equal, or use `tying='linear'`",
            self.tying == "tied" and self.emb != self.hidden,
        )
        up = {rates["out"], rates["layer"]} if self.layers > 1 else {rates["out"]}
        yield (
            "variational dropout has one mask for the way up and the way on:"
            " `drop_state` must be 0, or equal to `drop_layer` and `drop_out`",
            self.dropout == "variational" and rates["state"] and up != {rates["state"]},
        )
        yield "bfloat16 is for products of float32", self.precision == "bfloat16" and self.dtype != "float32"
        yield (
            "`emb` and `hidden` are at least 1, `layers` from 1 to 100",
            min(self.emb, self.hidden or 0) < 1 or not (1 <= self.layers <= 100),
        )

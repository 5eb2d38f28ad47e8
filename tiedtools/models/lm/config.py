"""Configuration of a recurrent language model. Imports nothing heavy."""

import dataclasses
from typing import Any, ClassVar

from tiedtools.base.errors import brief
from tiedtools.base.settings import LmReading, Range, checked, one_of, with_reading
from tiedtools.models.lm.presets import PRESETS
from tiedtools.network.cells import CELLS
from tiedtools.network.config import (
    PROBABILITY,
    RATES,
    SITES,
    Composition,
    Computation,
    Dropout,
    Loss,
    Optimization,
    Tying,
    check_sessions,
    numbers,
    overridden,
)
from tiedtools.training.schedules import Training

OF_RHN = {"depth": 5, "transform_bias": -2.0}  # defaults of settings that only the cell "rhn" has


@dataclasses.dataclass(frozen=True)
class LstmConfig(Computation, Optimization, Loss, Dropout, Composition, Tying):
    """Configuration of a recurrent language model: Zaremba et al. 2014 and the extensions of tied-embedding papers.

    size, hidden    embedding dimension m and hidden size n; hidden None: same as size. `width` is that of composed
                    word vectors; if it differs from n, L between them is implied, unless the output is plain
    layers          number of layers of cells; None: 2, or as many as `layer_widths` has
    layer_widths    numbers of units of the layers, separated by commas; the last one is `hidden`. None: `hidden` in
                    each layer
    cell            cell type, one of network.cells.CELLS
    depth           micro-steps in a step of the cell "rhn"; None: 5
    transform_bias  initial bias of its transform gates; None: -2
    init            parameters start uniform in +-init
    init_lstm       the same for the parameters of the cells, L, and P; None: same as init
    init_bias       "uniform": biases start like other parameters; "zero"; or "lstm": those of the cells and L uniform,
                    that of the softmax zero
    init_by_width   parameters of a recurrent layer with n units, and weights with n inputs that compose word vectors
                    from subword embeddings, start uniform in +-1 / sqrt(n) instead, as in PyTorch
    forget_bias     added to the biases of the forget gates of "lstm" and the update gates of "gru"
    steps, batch    truncated-BPTT length T in tokens, and batch size B
    random_steps    windows have random lengths around `steps`; see training.windows.RandomWindows

    Raises TiedtoolsError for invalid combinations.
    """

    size: int = 200
    hidden: int | None = None
    layers: int | None = None
    layer_widths: str | None = None
    cell: str = "lstm"
    depth: int | None = None
    transform_bias: float | None = None
    init: float = 0.1
    init_lstm: float | None = None
    init_bias: str = "uniform"
    init_by_width: bool = False
    forget_bias: float = 0.0
    steps: int = 35
    batch: int = 20
    random_steps: bool = False

    choices: ClassVar[dict] = {"cell": CELLS, "init_bias": ("uniform", "zero", "lstm")}
    ranges: ClassVar[dict] = {
        "size": Range(1, 10**5),
        "hidden": Range(1, 10**5),
        "layers": Range(1, 100),
        "depth": Range(1, 10),
        "transform_bias": Range(-100, 100),
        "init": Range(0),
        "init_lstm": Range(0),
        "forget_bias": Range(-100, 100),
        "steps": Range(1, 10**5),
        "batch": Range(1, 10**5),
    }

    def __post_init__(self):
        widths = numbers(self.layer_widths) or []
        defaults = {"layers": len(widths) or 2, "hidden": widths[-1] if widths else self.size, "init_lstm": self.init}
        for name, default in (defaults | OF_RHN if self.cell == "rhn" else defaults).items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, default)
        if self.subwords:
            self.settle()
        super().__post_init__()

    def settle(self):
        """Set what the kind of subwords implies where it is not given."""
        sizes = {"morphs": (self.size, self.size), "syllables": (50, self.size)}
        chars = 15, sum(numbers(self.filters) or [self.size])
        for name, default in zip(("subword_dim", "highway_dim"), sizes.get(str(self.subwords), chars)):
            if getattr(self, name) is None:
                object.__setattr__(self, name, default)
        if self.tying == "untied" and self.reuse != "plain" and self.width != self.hidden:
            object.__setattr__(self, "tying", "linear")

    @property
    def width(self):
        """Dimension of the word vectors."""
        return self.highway_dim if self.subwords else self.size

    @property
    def units(self):
        """Numbers of units of the layers."""
        return numbers(self.layer_widths) or [self.hidden] * (self.layers or 0)

    @property
    def one_table(self):
        """Whether the input and output embeddings are the same."""
        if self.subwords:
            return self.reuse != "plain" and set(self.reused) == set(self.reusable)
        return self.tying != "untied"

    def mistakes(self):
        """Yield contradictions between settings; see Checked."""
        rates = self.rates
        yield (
            f"`layer_widths={brief(self.layer_widths)}` must be numbers of units, 1 to 100,000, separated by commas",
            self.layer_widths is not None and not numbers(self.layer_widths),
        )
        yield (
            f"`layer_widths={self.layer_widths}` gives the number of layers and the units of each: omit `layers` and"
            " `hidden`, or change `layer_widths`",
            (len(self.units), self.units[-1]) != (self.layers, self.hidden),
        )
        yield (
            f"`random_steps` varies the length of windows by 5: set `steps`, now {self.steps}, to more than 5",
            self.random_steps and self.steps <= 5,
        )
        for name in OF_RHN:
            given = getattr(self, name) is not None
            yield f"`{name}` describes recurrent highway networks: set `cell=rhn`", given and self.cell != "rhn"
        yield (
            "`forget_bias` is for forget and update gates; `cell=rhn` has neither: set it to 0",
            self.forget_bias and self.cell == "rhn",
        )
        yield "`cell=rhn` has no `drop_weights`: set it to 0", self.drop_weights and self.cell == "rhn"
        yield (
            "`unit_embeddings` and averages of parameters exclude each other: choose another `optimizer`",
            self.unit_embeddings and self.averages,
        )
        yield (
            f"`tying='tied'` needs embeddings and hidden layers of equal size, not {self.size} and {self.hidden};"
            " make `size` and `hidden` equal, or use `tying='linear'`",
            self.tying == "tied" and self.size != self.hidden and not self.subwords,
        )
        yield (
            "`tying='tied'` ties vectors of words; for `subwords`, set `reuse`",
            self.tying == "tied" and self.subwords,
        )
        yield "`reuse='plain'` has no output embeddings for L", self.tying == "linear" and self.reuse == "plain"
        yield (
            "`unit_embeddings` normalizes a vector per word; choose it or `subwords`",
            self.unit_embeddings and self.subwords,
        )
        up = {rates["out"], rates["layer"]} if len(self.units) > 1 else {rates["out"]}
        yield (
            "variational dropout uses one mask for a layer's output and its recurrent state;"
            " set `drop_state` to 0, or equal to `drop_layer` and `drop_out`",
            self.dropout_kind == "variational" and rates["state"] and up != {rates["state"]},
        )


DROPOUT = 0.3  # probability at all sites where neither a preset nor a setting says otherwise


def settle(preset: str | None = None, dropout: float | None = None, **given: Any) -> dict[str, Any]:
    """Return all settings that differ from the defaults of LstmConfig and Training: given ones override the preset.

    preset   name in PRESETS
    dropout  probability at all sites of this kind of dropout; drop_emb and the like override it
    """
    if preset is not None:
        one_of("preset", preset, list(PRESETS))
    dropout = checked("dropout", dropout, float | None, PROBABILITY)
    values = PRESETS[preset][1] if preset else {}
    settings = overridden(values, given, RATES)
    if given.get("subwords") and "tying" not in given and values.get("tying") == "tied":
        settings["tying"] = "untied"  # `reuse` ties composed embeddings
    kind = checked("dropout_kind", settings.get("dropout_kind", "standard"), str)
    sites = SITES.get(kind, ())
    rates = dict.fromkeys(sites, dropout)
    if dropout is None and kind == values.get("dropout_kind", kind):
        rates = {site: values.get(f"drop_{site}", 0.0 if preset else DROPOUT) for site in sites}
    elif dropout is None:
        rates = dict.fromkeys(sites, values.get("drop_out", DROPOUT))
    for site in SITES["gal"]:
        settings[f"drop_{site}"] = given.get(f"drop_{site}", rates.get(site, 0.0))
    return settings


def configure(**given: Any) -> list[Any]:
    """Return [LstmConfig, Training, dict of settings for reading texts]; see `settle`."""
    made = with_reading(settle(**given), (LstmConfig, Training), LmReading, ("dropout", "preset"))
    check_sessions(*made[:2])
    return made

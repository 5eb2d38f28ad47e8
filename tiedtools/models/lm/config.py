"""Configuration of a recurrent language model. Imports nothing heavy."""

import dataclasses
from collections.abc import Iterator
from typing import Any

from tiedtools.base.errors import Contradiction, brief
from tiedtools.base.settings import SPLIT, LmReading, Mistake, Range, setting, with_reading
from tiedtools.models.lm.presets import PRESETS
from tiedtools.network import config as parts
from tiedtools.training.schedules import Training

# Settings that determine names and shapes of parameters, and the subwords of words.
SHAPE = [field.name for field in dataclasses.fields(parts.Composition)]
SHAPE += "cell size hidden layers layer_widths depth tying linear_bias projection output_bias".split()
OF_RHN = {"depth": 5, "transform_bias": -2.0}  # defaults of the settings of the cell "rhn"


@dataclasses.dataclass(frozen=True)
class LstmConfig(parts.Computation, parts.Optimization, parts.Loss, parts.Dropout, parts.Composition, parts.Tying):
    """Configuration of a recurrent language model: Zaremba et al. 2014 and the extensions of tied-embedding papers.

    size and hidden are the embedding dimension m and the hidden size n. `width` is the dimension of composed word
    vectors; if it differs from n, L between them is implied, unless the output is plain. With `layer_widths`, the width
    of the last layer is `hidden`.

    Raises TiedtoolsError for invalid combinations.
    """

    size: int = setting(200, Range(1, 10**5))("Embedding dimension.")
    hidden: int | None = setting(None, Range(1, 10**5))("Hidden units per layer.  [default: same as `size`]")
    layers: int | None = setting(None, Range(1, 100))(
        "Number of recurrent layers.  [default: 2, or as many as `layer_widths` has]"
    )
    layer_widths: str | None = setting(None, metavar="LIST")(
        "Hidden units of each layer, such as 1150,1150,400; instead of `hidden` and `layers`."
    )
    cell: str = setting("lstm", choices=parts.CELLS)("Recurrent cell: LSTM, GRU, or recurrent highway network.")
    depth: int | None = setting(None, Range(1, 10))(
        "Recurrence depth: micro-steps in each time step (rhn).  [default: 5]"
    )
    transform_bias: float | None = setting(None, Range(-100, 100))(
        "Initial bias of the transform gates (rhn).  [default: -2]"
    )
    init: float = setting(0.1, Range(0))("Initialize parameters uniformly between minus and plus this value.")
    init_lstm: float | None = setting(None, Range(0))(
        "Like `init`, for the recurrent layers, L, and P (see `projection`) only.  [default: same as `init`]"
    )
    init_bias: str = setting("uniform", choices=("uniform", "zero", "lstm"))(
        "Initialization of biases; transform gates have their own. lstm: uniform in recurrent layers, L, and P (as in"
        " PyTorch), zero elsewhere."
    )
    init_by_width: bool = setting(False)(
        "Initialize a recurrent layer of n units uniformly between -1/sqrt(n) and 1/sqrt(n), as PyTorch does; with"
        " `subwords`, the same for weights of highways, projections, and convolutions with n inputs."
    )
    forget_bias: float = setting(0.0, Range(-100, 100))(
        "Constant added to the initial forget-gate biases (GRU: update gate)."
    )
    steps: int = setting(35, Range(1, 10**5))("Truncated-BPTT length in tokens.")
    batch: int = setting(20, Range(1, 10**5))("Batch size (parallel streams).")
    random_steps: bool = setting(False, off=True)(
        "Draw lengths around `steps` (in 5% of cases half of it), and with `loss_scale=mean` scale the learning rate to"
        " match (Merity et al.)."
    )

    def __post_init__(self) -> None:
        widths = parts.numbers(self.layer_widths) or []
        chars = 15, sum(parts.numbers(self.filters) or [self.size])
        sizes = {"morphs": (self.size, self.size), "syllables": (50, self.size), "chars": chars}
        defaults = {"layers": len(widths) or 2, "hidden": widths[-1] if widths else self.size, "init_lstm": self.init}
        defaults |= OF_RHN if self.cell == "rhn" else {}
        defaults |= zip(("subword_dim", "highway_dim"), sizes.get(str(self.subwords), ()))
        for name, default in defaults.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, default)
        if self.subwords and self.tying == "untied" and self.reuse != "plain" and self.width != self.hidden:
            object.__setattr__(self, "tying", "linear")
        super().__post_init__()

    @property
    def width(self) -> Any:
        """Dimension of the word vectors."""
        return self.highway_dim if self.subwords else self.size

    @property
    def units(self) -> list[Any]:
        """Numbers of units of the layers."""
        return parts.numbers(self.layer_widths) or [self.hidden] * (self.layers or 0)

    @property
    def one_table(self) -> bool:
        """Whether the input and output embeddings are the same."""
        if self.subwords:
            return self.reuse != "plain" and set(self.reused) == set(self.reusable)
        return self.tying != "untied"

    def mistakes(self) -> Iterator[Mistake]:
        rates = self.rates
        problem = "must be numbers of units, 1 to 100,000, separated by commas"
        wrong = self.layer_widths is not None and not parts.numbers(self.layer_widths)
        yield f"`layer_widths={brief(self.layer_widths)}` {problem}", wrong
        problem = f"`layer_widths={self.layer_widths}` gives the number of layers and the units of each"
        wrong = (len(self.units), self.units[-1]) != (self.layers, self.hidden)
        yield f"{problem}: omit `layers` and `hidden`, or change `layer_widths`", wrong
        problem = f"`random_steps` varies the length of windows by 5: set `steps`, now {self.steps}, to more than 5"
        yield problem, self.random_steps and self.steps <= 5
        for name in OF_RHN:
            is_set = getattr(self, name) is not None
            yield f"`{name}` describes recurrent highway networks: set `cell=rhn`", is_set and self.cell != "rhn"
        problem = "`forget_bias` is for forget and update gates; `cell=rhn` has neither: set it to 0"
        yield problem, self.forget_bias and self.cell == "rhn"
        yield "`cell=rhn` has no `drop_weights`: set it to 0", self.drop_weights and self.cell == "rhn"
        problem = "`unit_embeddings` and averages of parameters exclude each other: choose another `optimizer`"
        yield problem, self.unit_embeddings and self.averages
        tied, unequal = self.tying == "tied", self.size != self.hidden and not self.subwords
        problem = f"needs embeddings and hidden layers of equal size, not {self.size} and {self.hidden}"
        yield f"`tying='tied'` {problem}; make `size` and `hidden` equal, or use `tying='linear'`", tied and unequal
        yield "`tying='tied'` ties vectors of words; for `subwords`, set `reuse`", tied and self.subwords
        yield "`reuse='plain'` has no output embeddings for L", self.tying == "linear" and self.reuse == "plain"
        problem = "`unit_embeddings` normalizes a vector per word; choose it or `subwords`"
        yield problem, self.unit_embeddings and self.subwords
        up = {rates["out"], rates["layer"]} if len(self.units) > 1 else {rates["out"]}
        problem = "variational dropout uses one mask for a layer's output and its recurrent state"
        wrong = self.dropout_kind == "variational" and rates["state"] and up != {rates["state"]}
        yield f"{problem}; set `drop_state` to 0, or equal to `drop_layer` and `drop_out`", wrong


def configure(defaults: dict[str, Any] | None = None, /, **options: Any) -> list[Any]:
    """Return [LstmConfig, Training, dict of settings for reading texts], complete and checked; see `chosen`."""
    # A preset replaces the training of a model to continue from.
    kept = {*SHAPE, *SPLIT} if options.get("preset") else {*(defaults or {})}
    defaults = {name: value for name, value in (defaults or {}).items() if name in kept}
    # The rate of a model to continue from, trained with adam or adadelta, fits no other optimizer.
    rates = parts.RATES
    if defaults.get("optimizer") in rates:
        rates = dict.fromkeys(parts.OPTIMIZERS, Training.lr) | rates
    settings = parts.chosen(options, defaults, PRESETS, rates, parts.SITES)
    if settings.get("subwords") and "tying" not in options and settings.get("tying") == "tied":
        settings["tying"] = "untied"  # that of a preset: `reuse` ties composed embeddings
    config, training, _, reading = with_reading(settings, LstmConfig, Training, parts.Shorthands, LmReading)
    parts.check_averages(config, training)
    untied = options.get("tying") == "untied" and not {*SHAPE} <= {*options}  # a saved model has all settings
    if config.subwords and untied and config.reuse not in ("plain", "none"):
        remedy = "omit it" if defaults else "use `reuse=none` or `reuse=plain`"
        raise Contradiction(f"`tying=untied` does not apply to `subwords`; {remedy}")
    return [config, training, reading]

"""Parts of configurations of networks, each a record of fields that checks itself. Imports nothing heavy.

A model's configuration inherits from the parts it has, and adds fields of its own: all fields are on one level, under
the names that files and command lines have for them.
"""

import dataclasses
from typing import ClassVar

from tiedtools.errors import Checked

# Places that each kind of dropout has; see Dropout.
SITES = {
    "standard": ("emb", "layer", "out"),
    "variational": ("layer", "state", "out"),
    "gal": ("word", "emb", "layer", "state", "out"),
}


@dataclasses.dataclass(frozen=True)
class Tying(Checked):
    """What the output embeddings have to do with the input embeddings.

    tying           "untied"; "tied" (Press & Wolf 2017, Inan et al. 2017): emb_out is emb_in, m = n; or "linear"
                    (tied+L, Gulordava et al. 2018): L [n, m] between the top layer and emb_in, any m and n
    linear_bias     L has a bias; linear_dropout: dropout "before" L, "after" it, or at "both" sites
    projection      lambda of Press & Wolf's projection regularisation: scores from h P + p, P [n, n], and
                    lambda / 2 |P|^2 is added to a window's sum of nats before any mean, as in their code, which has
                    .154; their paper has .15 |P|; 0: no P
    unit_embeddings rows of emb_in have norm 1, at the start and after each step (Inan et al., section 6.2)
    """

    tying: str = "untied"
    linear_bias: bool = False
    linear_dropout: str = "before"
    projection: float = 0.0
    unit_embeddings: bool = False

    choices: ClassVar[dict] = {"tying": ("untied", "tied", "linear"), "linear_dropout": ("before", "after", "both")}

    def mistakes(self):
        """See Checked."""
        linear = self.tying == "linear"
        yield "`linear_bias` is the bias of L: add `tying='linear'`", self.linear_bias and not linear
        yield (
            "`linear_dropout` is dropout beside L: add `tying='linear'`",
            self.linear_dropout != "before" and not linear,
        )
        yield "`projection` and `tying='linear'` map the same layer: choose one", self.projection and linear


@dataclasses.dataclass(frozen=True)
class Dropout(Checked):
    """Where and how units are dropped.

    dropout         "standard": masks of their own for each token (Zaremba); "variational": for each layer one mask over
                    time, by which its output goes up as well as on to the next time step (Inan); "gal": one over time
                    for each layer and gate, another for the state, and whole word types (Gal & Ghahramani 2016)
    drop_word, drop_emb, drop_layer, drop_state, drop_out
                    probabilities of dropping: a word type; the embedding; what goes from layer to layer; what goes from
                    time step to time step; the top layer's output. Each kind has the sites in SITES. "variational"
                    has but one mask for the ways up and on, so drop_state is that of the others, or 0: no drop there
    mask_sharing    masks that last are for each "example", or one for all of the "batch"
    mc_samples      draws of masks over which testing averages probabilities (Gal's Monte Carlo dropout); 0: no masks
    """

    dropout: str = "standard"
    drop_word: float = 0.0
    drop_emb: float = 0.0
    drop_layer: float = 0.0
    drop_state: float = 0.0
    drop_out: float = 0.0
    mask_sharing: str = "example"
    mc_samples: int = 0

    choices: ClassVar[dict] = {"dropout": tuple(SITES), "mask_sharing": ("example", "batch")}

    def mistakes(self):
        """See Checked."""
        rates = self.rates
        yield "dropout probabilities are from 0 up to, not including, 1", not all(0 <= p < 1 for p in rates.values())
        for site, rate in rates.items():
            kinds = [kind for kind in SITES if site in SITES[kind]]
            yield (
                f"`drop_{site}` does not apply to {self.dropout} dropout: set `dropout={' or '.join(kinds)}`",
                rate and self.dropout not in kinds,
            )
        yield (
            "`mc_samples` averages over masks that last, so it needs `dropout=variational or gal` and a rate",
            self.mc_samples and (self.dropout == "standard" or not any(rates.values())),
        )

    @property
    def rates(self):
        """dict: site -> probability of dropping."""
        return {site: getattr(self, f"drop_{site}") for site in SITES["gal"]}


@dataclasses.dataclass(frozen=True)
class Loss(Checked):
    """What is minimized.

    output_bias     scores have a bias for each word; without it and tied: Inan's RE
    augment         gamma of Inan's augmented loss: + gamma tau KL(softmax(E e_t / tau) || softmax(z / tau)); 0: none
    augment_share   beta of their (6.1): the loss is beta tau^2 V KL(...) + (1 - beta) cross entropy instead
    tau, detach     the temperature of both; no gradient through the target of KL
    sampled         words drawn for sampled softmax in training (log-uniform, corrected); 0: full softmax
    loss_scale      the objective is the "mean" over all tokens of a window, or the "sum" over time of the mean over
                    the batch: `steps` times as much, with a learning rate and a clip to match
    weight_decay    after each step theta <- theta - weight_decay theta, not scaled by the learning rate
    """

    output_bias: bool = True
    augment: float = 0.0
    augment_share: float = 0.0
    tau: float = 20.0
    detach: bool = False
    sampled: int = 0
    loss_scale: str = "mean"
    weight_decay: float = 0.0

    choices: ClassVar[dict] = {"loss_scale": ("mean", "sum")}

    def mistakes(self):
        """See Checked."""
        augmented = self.augment or self.augment_share
        yield "`sampled` draws some scores and `augment` needs all of them: choose one", self.sampled and augmented
        yield "`augment` and `augment_share` weigh one loss: choose one", self.augment and self.augment_share
        yield "`augment_share` is a proportion, from 0 to 1", not 0 <= self.augment_share <= 1
        yield "`tau` must be more than 0", self.tau <= 0

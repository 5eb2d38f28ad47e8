"""How `tiedtools lstm` trains."""

import click

from tiedtools.cli.lmtrainer import LmTrainer
from tiedtools.cli.options import as_options, from_options, given, refuse_twice, sharing
from tiedtools.cli.trainer import BITS, SHARING
from tiedtools.cores import available_cores
from tiedtools.messages import log
from tiedtools.models.lstm.config import PLACES, LstmConfig
from tiedtools.models.lstm.model import LstmLM
from tiedtools.models.lstm.presets import PRESETS
from tiedtools.training.fit import Training
from tiedtools.training.windows import Windows


class LstmTrainer(LmTrainer):
    Model, Feed = LstmLM, Windows
    ways = "lower --size, --hidden, --batch, --steps or --max-vocab, or raise -min-count, or use --tie or --tie-linear"

    def __init__(self, ctx):
        super().__init__(ctx)
        settings = settle(ctx, self.options)
        self.config = c = from_options(LstmConfig, settings)
        self.schedule = from_options(Training, settings)
        self.reading["max_vocab"] = settings["max_vocab"]
        self.width, self.samples = c.emb, c.mc_samples
        self.tell_idle(idle(c, self.schedule))
        refuse_twice(self.options["write"], c.sharing != "untied")
        if self.options["write"] == "sum" and c.sharing == "untied" and c.emb != c.hidden:
            raise click.UsageError(
                f"--write sum: input and output vectors have {c.emb} and {c.hidden} dimensions, which cannot be added"
            )

    def named(self, model):
        c = self.config
        return f"LSTM{BITS[c.precision]}, {SHARING[c.sharing]}, {c.layers} x {c.hidden}, embeddings of {c.emb}"


def idle(config, schedule):
    """dict: option that these settings make idle -> why."""
    why = {} if config.augment or config.augment_share else dict.fromkeys(("tau", "detach"), "without --augment")
    why |= {"mask_sharing": "on masks that are fresh for each token"} if config.dropout == "standard" else {}
    why |= {"decay_after": "with --schedule plateau"} if schedule.schedule == "plateau" else {}
    return why | ({"restart": "with one session"} if schedule.sessions == 1 else {})


def settle(ctx, options):
    """The fields of LstmConfig and Training by name: what was given, before the preset, before the defaults."""
    set_here = given(ctx)
    source, preset = PRESETS[options["preset"]] if options["preset"] else (None, {})
    settings = dict(
        {**options, **{name: value for name, value in preset.items() if name not in set_here}},
        sharing=sharing(options["tie"], options["tie_linear"]),
        output_bias=not options["no_output_bias"],
        threads=options["threads"] or available_cores(),
    )
    kind = settings["dropout"]
    rates = dict.fromkeys(PLACES[kind], preset["drop_out"] if preset and "rate" not in set_here else options["rate"])
    if preset and "rate" not in set_here and preset["dropout"] == kind:
        rates = {place: preset[f"drop_{place}"] for place in PLACES[kind]}
    for place in PLACES["gal"]:
        if f"drop_{place}" not in set_here:
            settings[f"drop_{place}"] = rates.get(place, 0.0)
    if preset:
        kept = {name: value for name, value in preset.items() if settings[name] == value}
        changed = {name: settings[name] for name in preset if name not in kept}
        log.info(
            f"preset {options['preset']}: {as_options(kept)}" + (f"; changed: {as_options(changed)}" if changed else "")
        )
    return settings

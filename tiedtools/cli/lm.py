"""`tiedtools lm`: train a language model with any recurrent cell."""

import click

from tiedtools.cli.lmoptions import MODEL
from tiedtools.cli.lmtraining import TRAINING
from tiedtools.cli.lstm import train_model
from tiedtools.cli.options import LM_TEXT, Finite, SectionedCommand, option, sections, texts_argument
from tiedtools.network.cells import CELLS

CELL = [
    option(
        "cell",
        type=click.Choice(list(CELLS)),
        default="lstm",
        help="Recurrent cell: LSTM, GRU, or recurrent highway network.",
    ),
    option(
        "depth",
        type=click.IntRange(1, 10),
        help="Recurrence depth: micro-steps in each time step (rhn).  [default: 5]",
    ),
    option(
        "transform-bias",
        type=Finite(-100, 100),
        help="Initial bias of the transform gates (rhn).  [default: -2]",
    ),
]


@click.command("lm", cls=SectionedCommand, short_help="Train a language model: LSTM, GRU, or RHN.")
@texts_argument
@sections({**LM_TEXT, **MODEL, "Model": [*CELL, *MODEL["Model"]], **TRAINING})
@click.pass_context
def command(ctx, **options):
    """Train a recurrent language model on TEXT, with separate, tied, or tied+L embeddings, or composed from subwords.

    `tiedtools lstm` is `tiedtools lm --cell lstm`: see there for texts, outputs, and resuming. Models of all cells are
    saved, loaded, and scored alike.
    """
    train_model(ctx, **options)

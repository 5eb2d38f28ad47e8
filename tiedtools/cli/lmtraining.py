"""Options of the commands that train a network: the sections Loss, Optimization, Training, and Output."""

import click

from tiedtools.cli.options import (
    RUN_FILES,
    Finite,
    binary_option,
    debug_option,
    flag,
    option,
    output_option,
    precision_option,
    seed_option,
    threads_option,
    write_option,
)
from tiedtools.network.config import OPTIMIZERS


def optimization(optimizer="sgd", lr=20.0, note="adadelta: 1, for adam: .001", clip=0.25):
    """Return the options of the section Optimization; arguments: defaults, and those of --lr for other optimizers."""
    return [
        option(
            "optimizer",
            type=click.Choice(OPTIMIZERS),
            default=optimizer,
            help="asgd: SGD that scores and saves the average of the parameters after each step; nt-asgd: from when"
            " validation no longer improves (see --nonmono). Both imply --schedule constant.",
        ),
        option(
            "nonmono",
            type=click.IntRange(1, 10**6),
            default=5,
            metavar="N",
            help="With --optimizer nt-asgd, begin to average after an epoch whose validation loss exceeds the lowest of"
            " those more than N epochs earlier.",
        ),
        option(
            "average-after",
            type=click.IntRange(0, 10**6),
            default=0,
            metavar="N",
            help="With --optimizer nt-asgd, begin to average after N epochs at the latest; 0: when --nonmono says.",
        ),
        option(
            "lr",
            type=Finite(0, min_open=True),
            default=lr,
            help=f"Initial learning rate.  [default for {note}]",
        ),
        option("clip", type=Finite(0), default=clip, help="Clip the global gradient norm to this value; 0 disables."),
        option(
            "l2",
            type=Finite(0),
            default=0.0,
            metavar="L",
            help="Weight decay in the loss: add L/2 |parameters|^2 to the objective, before clipping (Zilly et al.).",
        ),
        option(
            "lr-weight-decay",
            type=Finite(0),
            default=0.0,
            help="Weight decay times --lr: fraction of the learning rate by which weights shrink per step, after"
            " clipping (as in PyTorch's SGD and AdamW; Merity et al.: 1.2e-6).",
        ),
        option(
            "weight-decay",
            type=Finite(0, 1),
            default=0.0,
            help="Fraction by which weights shrink per step, independent of --lr (Gal & Ghahramani).",
        ),
    ]


def idle_training(config, schedule):
    """Return a dict: name of an option of `optimization` and `epochs` without effect -> reason."""
    used = {"plateau": ["decay", "min_gain"], "decay": ["decay", "decay_after"]}.get(schedule.schedule, [])
    unused = [name for name in ("decay", "min_gain", "decay_after") if name not in used]
    why = dict.fromkeys(unused, f"with --schedule {schedule.schedule}")
    why |= {"restart": "with one session"} if schedule.sessions == 1 else {}
    if config.optimizer != "nt-asgd":
        why |= dict.fromkeys(("nonmono", "average_after"), "without --optimizer nt-asgd")
    return why


def epochs(epochs=40, decay=4.0):
    """Return the options of epochs and learning-rate schedule; arguments: defaults."""
    return [
        option(
            "epochs",
            type=click.IntRange(1, 10**6),
            default=epochs,
            help="Number of epochs; with --sessions, per session.",
        ),
        option(
            "sessions",
            type=click.IntRange(1, 1000),
            default=1,
            help="Number of training sessions; each restarts the schedule from an earlier model (Inan et al.).",
        ),
        option(
            "restart",
            type=click.Choice(["best", "last"]),
            default="best",
            help="Model that each later session starts from: best validation loss so far, or last epoch.",
        ),
        option(
            "keep",
            type=click.Choice(["best", "last"]),
            default="best",
            help="Model to test and save: best validation loss, or last epoch (Zaremba et al.).",
        ),
        option(
            "schedule",
            type=click.Choice(["plateau", "decay", "constant"]),
            default="plateau",
            help="Reduce the learning rate after each epoch without improvement, after every epoch, or never.",
        ),
        option("decay", type=Finite(1), default=decay, help="Divide the learning rate by this at each reduction."),
        option(
            "min-gain",
            type=Finite(0),
            default=0.0,
            help="With --schedule plateau, reduce the learning rate unless validation perplexity falls by at least this"
            " (Kim et al.: 1); 0: unless it is the lowest so far.",
        ),
        option(
            "decay-after",
            type=click.IntRange(1),
            default=1,
            help="With --schedule decay, number of epochs at the initial learning rate.",
        ),
    ]


training_precision = precision_option(
    "Precision of matrix products in training.  [default: bfloat16 on AMD CPUs since Zen 4 and Intel Xeon since"
    " Sapphire Rapids, float32 on others; when resuming, that of the checkpoint]",
    None,
)
OUTPUT = [output_option, write_option(), binary_option, *RUN_FILES, debug_option]

TRAINING = {
    "Loss": [
        option(
            "augment",
            type=Finite(0),
            default=0.0,
            metavar="GAMMA",
            help="Weight of the augmented loss of Inan et al. (their values: .5 to 1.5); 0 disables.",
        ),
        option(
            "augment-share",
            type=Finite(0, 1),
            default=0.0,
            metavar="BETA",
            help="Alternative to --augment: minimize BETA tau^2 V KL + (1 - BETA) cross entropy (Inan et al., equation"
            " 6.1); 0 disables.",
        ),
        option(
            "tau", type=Finite(0, min_open=True), default=20.0, help="Softmax temperature tau of the augmented loss."
        ),
        flag("detach", "Stop gradients through the soft target of the augmented loss."),
        flag("unit-embeddings", "Constrain input embeddings to unit norm (Inan et al., section 6.2)."),
        option(
            "projection",
            type=Finite(0),
            default=0.0,
            metavar="LAMBDA",
            help="Add Press & Wolf's projection P before the softmax, and LAMBDA/2 |P|^2 to the summed loss of each"
            " batch; 0 disables. Their code has LAMBDA .154, their paper the penalty .15 |P|.",
        ),
        option(
            "sampled",
            type=click.IntRange(0),
            default=0,
            metavar="N",
            help="Train with sampled softmax over the target and N sampled words; 0: full softmax.",
        ),
        option(
            "loss-scale",
            type=click.Choice(["mean", "sum"]),
            default="mean",
            help="Mean over tokens, or sum over time of the mean over streams. sum is --steps times as large: choose"
            " --lr and --clip to match.",
        ),
        option(
            "ar",
            type=Finite(0),
            default=0.0,
            help="Weight of activation regularization: mean square of the top layer's output, after dropout (Merity et"
            " al.: 2).",
        ),
        option(
            "tar",
            type=Finite(0),
            default=0.0,
            help="Weight of temporal activation regularization: mean square of the output's change from step to step,"
            " before dropout (Merity et al.: 1).",
        ),
    ],
    "Optimization": optimization(),
    "Training": [
        *epochs(),
        option("batch", type=click.IntRange(1, 10**5), default=20, help="Batch size (parallel streams)."),
        option("steps", type=click.IntRange(1, 10**5), default=35, help="Truncated-BPTT length in tokens."),
        option(
            "random-steps/--no-random-steps",
            default=False,
            show_default=False,
            help="Draw lengths around --steps (in 5% of cases half of it), and with --loss-scale mean scale the"
            " learning rate to match (Merity et al.).",
        ),
        option(
            "eval-batch", type=click.IntRange(1, 10**5), default=10, help="Batch size (parallel streams) in validation."
        ),
        seed_option,
        threads_option,
        training_precision,
    ],
    "Output": OUTPUT,
}

"""Options that several commands share."""

import math

import click


def option(name, *args, **kwargs):
    """A click option that answers to word2vec's `-name` and to `--name`."""
    kwargs.setdefault("show_default", True)
    return click.option(f"-{name}", f"--{name}", *args, **kwargs)


class Finite(click.FloatRange):
    """A float in a range; click's own lets nan and inf through."""

    def convert(self, value, param, ctx):
        value = super().convert(value, param, ctx)
        if not math.isfinite(value):
            self.fail(f"{value} is no finite number.", param, ctx)
        return value


def errors_option(command):
    return click.option(
        "--errors",
        type=click.Choice(["strict", "replace", "ignore"]),
        default="strict",
        show_default=True,
        help="Bytes that are no UTF-8: refuse the file, put U+FFFD, or drop them.",
    )(command)


def text_options(command):
    """Where the text comes from, and which of its words count."""
    for decorate in reversed(
        [
            click.argument("texts", nargs=-1, metavar="[TEXT]..."),
            option("train", multiple=True, metavar="TEXT", help="Another text; as a bare TEXT."),
            option("min-count", type=click.IntRange(0), default=5, help="Drop words seen less often."),
            click.option("--max-vocab", type=click.IntRange(2), help="Keep N words, `</s>` included.", metavar="N"),
            errors_option,
        ]
    ):
        command = decorate(command)
    return command

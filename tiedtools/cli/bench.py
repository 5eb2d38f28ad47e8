"""`tiedtools bench`"""

import click

from tiedtools.cli import bench_lstm, bench_rnnlm, bench_w2v


class Benches(click.Group):
    """A group of which the command w2v is meant where none is named."""

    def parse_args(self, ctx, args):
        completing = ctx.resilient_parsing and not args  # the name of the command
        if not completing and args[:1] not in ([name] for name in (*self.commands, *ctx.help_option_names)):
            args = ["w2v", *args]
        return super().parse_args(ctx, args)


@click.group(
    "bench",
    cls=Benches,
    commands=[bench_lstm.command, bench_rnnlm.command, bench_w2v.command],
    short_help="Speed of training, beside what the machine could do, and beside others.",
)
def command():
    """Measure how fast training is, how near to what the machine could do, and how fast others are.

    `tiedtools bench [OPTIONS] [TEXT]` is `tiedtools bench w2v`; a TEXT named as one of the commands is ./TEXT.
    """

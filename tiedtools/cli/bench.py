"""`tiedtools bench`: benchmark training speed."""

import click

from tiedtools.cli import bench_lm, bench_lstm, bench_mpi, bench_nmt, bench_rnnlm, bench_translate, bench_w2v

MODULES = bench_lm, bench_lstm, bench_mpi, bench_nmt, bench_rnnlm, bench_translate, bench_w2v


class Benches(click.Group):
    """A command group that defaults to `w2v`."""

    def parse_args(self, ctx, args):
        completing = ctx.resilient_parsing and not args  # the name of the command
        if not completing and args[:1] not in ([name] for name in (*self.commands, *ctx.help_option_names)):
            args = ["w2v", *args]
        return super().parse_args(ctx, args)


@click.group(
    "bench",
    cls=Benches,
    commands=[module.command for module in MODULES],
    short_help="Benchmark training speed against hardware limits and other programs.",
)
def command():
    """Benchmark training speed against hardware limits and other programs.

    `tiedtools bench [OPTIONS] [TEXT]` is short for `tiedtools bench w2v`. Write ./TEXT if the file has the name of a
    command.
    """

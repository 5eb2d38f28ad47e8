"""`tiedtools completion`: print a shell completion script."""

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    get_completion_class,
)

VARIABLE = "_TIEDTOOLS_COMPLETE"  # environment variable set by click's completion scripts


class Files(ShellComplete):
    """Completion that offers file names if click has no suggestion."""

    def get_completions(self, args, incomplete):
        found = super().get_completions(args, incomplete)
        return found if found or incomplete.startswith("-") else [CompletionItem(incomplete, type="file")]


for shell in BashComplete, ZshComplete, FishComplete:
    add_completion_class(type(shell.__name__, (Files, shell), {}))


@click.command("completion", short_help="Print a shell completion script.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx, shell):
    """Print a script that lets SHELL complete commands, options, option values, and file names.

    \b
    bash (4.4 or later), in ~/.bashrc:        eval "$(tiedtools completion bash)"
    zsh, in ~/.zshrc after compinit:          eval "$(tiedtools completion zsh)"
    fish, once:  tiedtools completion fish >~/.config/fish/completions/tiedtools.fish
    """
    group = ctx.find_root().command
    click.echo(get_completion_class(shell)(group, {}, "tiedtools", VARIABLE).source())

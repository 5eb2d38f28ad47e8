"""`tiedtools completion`: the script that has a shell complete commands, options and file names."""

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

VARIABLE = "_TIEDTOOLS_COMPLETE"  # what the scripts call the program with, as click names it


class Files(ShellComplete):
    """Where click has nothing to offer, a file may be meant: most values and nearly all arguments are names of such."""

    def get_completions(self, args, incomplete):
        found = super().get_completions(args, incomplete)
        return found if found or incomplete.startswith("-") else [CompletionItem(incomplete, type="file")]


for shell in BashComplete, ZshComplete, FishComplete:
    add_completion_class(type(shell.__name__, (Files, shell), {}))


@click.command("completion", short_help="Print the script by which a shell completes commands, options and files.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx, shell):
    """Print the script by which SHELL completes commands, options, their values and file names.

    \b
    bash (4.4 or later), in ~/.bashrc:        eval "$(tiedtools completion bash)"
    zsh, in ~/.zshrc behind compinit:         eval "$(tiedtools completion zsh)"
    fish, once:  tiedtools completion fish >~/.config/fish/completions/tiedtools.fish
    """
    group = ctx.find_root().command
    click.echo(get_completion_class(shell)(group, {}, "tiedtools", VARIABLE).source())

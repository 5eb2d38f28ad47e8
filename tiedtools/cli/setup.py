"""Set up an installation: `completion` and `warmup`."""

import shlex
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import click
from click import shell_completion

from tiedtools.base.errors import TiedtoolsError
from tiedtools.base.messages import log
from tiedtools.base.processor import python
from tiedtools.cli.command import Answer, command
from tiedtools.files.families import FAMILIES

VARIABLE = "_TIEDTOOLS_COMPLETE"  # environment variable set by click's completion scripts
RUNS = {command: runs for family in FAMILIES.values() for command, runs in family.warm_up.items()}


class FileCompletion(shell_completion.ShellComplete):
    """Completion that offers file names if click has no suggestion."""

    def get_completions(self, args: Any, incomplete: str) -> list[shell_completion.CompletionItem]:
        completions = super().get_completions(args, incomplete)
        files = [shell_completion.CompletionItem(incomplete, type="file")]
        return completions if completions or incomplete.startswith("-") else files


for name in "Bash", "Zsh", "Fish":
    complete = getattr(shell_completion, f"{name}Complete")
    shell_completion.add_completion_class(type(f"{name}Complete", (FileCompletion, complete), {}))


@command("completion", "Print a shell completion script.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> Answer:
    """Print a script that lets SHELL complete commands, options, option values, and file names.

    \b
    bash (4.4 or later), in ~/.bashrc:  eval "$(tiedtools completion bash)"
    zsh, in ~/.zshrc after compinit:    eval "$(tiedtools completion zsh)"
    fish, once:  cd ~/.config/fish/completions
                 tiedtools completion fish >tiedtools.fish
    """
    group = click.get_current_context().find_root().command
    complete: Any = shell_completion.get_completion_class(shell)
    try:
        return Answer(complete(group, {}, "tiedtools", VARIABLE).source() + "\n")
    except RuntimeError as error:  # click 8.1: a bash that is too old
        raise TiedtoolsError(f"{error}; install a newer one") from None


@command("warmup", "Compile the kernels of commands into the cache.")
@click.argument("commands", nargs=-1, metavar="[COMMAND]...")
def warmup(commands: tuple[str, ...]) -> None:
    """Compile the kernels of each COMMAND into the cache, so that no later run waits, such as in a container image.

    A COMMAND is w2v, lm, lstm, rnnlm, or nmt, with its options (for lm, with its --cell) in quotation marks if they
    need other kernels:

    \b
        tiedtools warmup w2v "w2v --tie-linear" "lstm --subwords chars"

    Without COMMAND, all five are compiled with their default options, w2v also with -cbow 0, and lm with each of its
    cells. The cache is $XDG_CACHE_HOME/tiedtools/kernels (default: ~/.cache/tiedtools/kernels), or tiedtools in
    NUMBA_CACHE_DIR.
    """

    def run(*arguments: str) -> None:
        line, command_line = "", [*python("from tiedtools.__main__ import main; main()"), *arguments]
        with subprocess.Popen(command_line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
            for line in process.stderr or ():
                if line.startswith("compiling"):
                    log.info(f"{arguments[0]}: {line.rstrip()}")
        if process.returncode:
            raise TiedtoolsError(line.rstrip().removeprefix("tiedtools").lstrip(": "))

    try:
        parsed = {line: shlex.split(line) for line in commands or RUNS}
    except ValueError as error:
        raise click.UsageError(f"{error}; correct the COMMAND") from None
    for line, words in parsed.items():
        if not words or words[0] not in RUNS:
            raise click.UsageError(f"{line!r} is not one of the commands {', '.join(RUNS)}; choose from these")
    with tempfile.TemporaryDirectory() as folder:
        files = {name: str(Path(folder, name.lower())) for name in ("TEXT", "VECTORS", "MODEL")}
        Path(files["TEXT"]).write_text("w1 w2 w3 w1 w3 w2 w4 w1\n" * 100)
        for line, (name, *options) in parsed.items():
            began = time.monotonic()
            for first, *more in map(str.split, RUNS[name]):
                run(first, *[files.get(word, word) for word in more], *(options if first == name else []))
            log.info(f"{line}: ready after {time.monotonic() - began:.0f} s")

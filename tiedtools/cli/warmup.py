"""`tiedtools warmup`: compile kernels before they are needed."""

import click

from tiedtools.files.families import FAMILIES

RUNS = {command: runs for family in FAMILIES.values() for command, runs in family.warm_up.items()}


@click.command("warmup", short_help="Compile the kernels of commands into the cache.")
@click.argument("commands", nargs=-1, metavar="[COMMAND]...")
def command(commands):
    """Compile the kernels of each COMMAND into the cache, so that no later run waits, such as in a container image.

    A COMMAND is w2v, lm, lstm, rnnlm, or nmt, with its options in quotation marks if they need other kernels:

    \b
        tiedtools warmup w2v "w2v --tie-linear" "lstm --subwords chars"

    Without COMMAND, all five are compiled with their default options. The cache is $XDG_CACHE_HOME/tiedtools/kernels
    (default: ~/.cache/tiedtools/kernels), or tiedtools in NUMBA_CACHE_DIR.
    """
    import shlex
    import subprocess
    import sys
    import tempfile
    import time
    from pathlib import Path

    from tiedtools.base.errors import TiedtoolsError
    from tiedtools.base.messages import log

    def run(*arguments):
        said, own = "", [sys.executable, "-m", "tiedtools", *arguments]
        with subprocess.Popen(own, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
            for said in process.stderr or ():
                if said.startswith("compiling"):
                    log.info(f"{arguments[0]}: {said.rstrip()}")
        if process.returncode:
            raise TiedtoolsError(said.rstrip().removeprefix("tiedtools "))

    parsed = {line: shlex.split(line) for line in commands or RUNS}
    for line, (name, *_) in parsed.items():
        if name not in RUNS:
            raise click.UsageError(f"{line!r} is not one of the commands {', '.join(RUNS)}; choose from these")
    with tempfile.TemporaryDirectory() as folder:
        files = {name: str(Path(folder, name.lower())) for name in ("TEXT", "VECTORS", "MODEL")}
        Path(files["TEXT"]).write_text("w1 w2 w3 w1 w3 w2 w4 w1\n" * 100)
        for line, (name, *options) in parsed.items():
            began = time.monotonic()
            for first, *more in map(str.split, RUNS[name]):
                run(first, *[files.get(word, word) for word in more], *(options if first == name else []))
            log.info(f"{line}: ready after {time.monotonic() - began:.0f} s")

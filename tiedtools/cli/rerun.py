"""`tiedtools rerun`"""

import contextlib
import os

import click

from tiedtools.cli.options import option
from tiedtools.errors import TiedtoolsError

COMMANDS = "lstm", "rnnlm", "w2v"


@click.command("rerun", short_help="Repeat a training run and compare what comes out.")
@click.argument("path", metavar="MANIFEST")
@option("folder", metavar="DIR", help="Where the outputs go.  [default: VECTORS.rerun for VECTORS.run.json]")
@option("directory", metavar="DIR", help="Where to run, so that texts are found.  [default: as recorded]")
@click.pass_context
def command(ctx, path, folder, directory):
    """Repeat the training run that MANIFEST, the .run.json file beside an output, tells of, and compare the outputs.

    The same command runs again in the same directory, but what it writes goes to another folder, where nothing is
    written over. Texts that are no longer the same are refused; those from standard input must be given again.

    A run on one thread, one with --deterministic, and any of `lstm` must give the same bytes: the exit status is 1 if
    it does not.
    """
    from tiedtools.files import manifest as manifests
    from tiedtools.files.output import STDOUT, is_file
    from tiedtools.messages import log
    from tiedtools.text.sources import open_source

    with open_source(path) as file:
        recorded = manifests.loads(file.read(), path)
    name, *argv = recorded["argv"] or [""]
    if name not in COMMANDS:
        raise TiedtoolsError(f"{path}: no run of tiedtools {', '.join(COMMANDS)}; name the manifest of one")
    if origin := recorded.get("origin"):
        raise TiedtoolsError(
            f"{path}: the run went on from the model that was in {origin['path']} before it; put that model there"
            f" (SHA-256 {origin['sha256'][:12]}...) and give the command yourself"
        )
    differences = differing(recorded, manifests.environment())
    if recorded.get("stopped"):
        log.warning(
            f"{path}: the run was stopped ({recorded['stopped']}); this one goes to its end, and its outputs are others"
        )

    beside = path.removesuffix(".json").removesuffix(".run") + ".rerun"
    folder = os.path.abspath(beside if folder is None else folder)
    directory = recorded["directory"] if directory is None else directory
    given = {option: recorded["options"].get(option) for option in manifests.OUTPUTS}
    moved = {
        option: where
        for option, where in given.items()
        if where not in (None, *STDOUT) and is_file(os.path.join(directory, where))
    }
    names = [os.path.basename(where) for where in moved.values()]
    own = {option: file if names.count(file) == 1 else f"{option}-{file}" for option, file in zip(moved, names)}
    targets = {option: os.path.join(folder, file) for option, file in own.items()}
    for target in targets.values():
        if os.path.lexists(target):
            raise TiedtoolsError(f"{target}: exists: remove it, or name another --folder")
    options = [part for option, target in targets.items() for part in (f"--{option}", target)]
    options += ["--threads", str(recorded["threads"])]
    end = argv.index("--") if "--" in argv else len(argv)
    argv = [*argv[:end], *options, *argv[end:]]

    repeated = ctx.obj = {"inputs": recorded["inputs"]}
    ctx.meta["argv"] = [name, *argv]
    with in_directory(directory), made(folder):
        training = ctx.parent.command.get_command(ctx.parent, name)
        with training.make_context(name, argv, parent=ctx) as inner:
            training.invoke(inner)
    if "manifest" not in repeated:
        return
    # Where vectors are on standard output, nothing else should be.
    to_stderr = any(where in STDOUT for where in recorded["options"].values() if isinstance(where, str))
    tell = lambda line: click.echo(line.encode("utf-8", "surrogateescape"), err=to_stderr)
    same = compare(recorded, repeated["manifest"], tell)
    if same or recorded.get("stopped"):
        return
    if recorded["threads"] > 1 and name != "lstm" and not recorded["options"].get("deterministic"):
        log.warning(f"{recorded['threads']} threads race, so that no two runs are the same; --threads 1 makes them so")
        return
    because = f": {'; '.join(differences)}" if differences else ""
    raise TiedtoolsError(f"{path}: the outputs are not those recorded{because}")


def differing(recorded, now):
    """What is other than it was, in words, told at once where it is the version."""
    from tiedtools.messages import log

    was = {"tiedtools": recorded["tiedtools"], **recorded["environment"]}
    other = [f"{name} was {was[name]}, is {now[name]}" for name in now if name in was and was[name] != now[name]]
    if was["tiedtools"] != now["tiedtools"]:
        log.warning(f"{other[0]}: the numbers may be others")
    return other


def compare(recorded, now, tell):
    """Tell whether each output has the recorded bytes, and the figures of both; returns whether all are the same."""
    from tiedtools.files.manifest import FIGURES

    before = {output["option"]: output.get("sha256") for output in recorded["outputs"]}
    outcome = []
    for output in now["outputs"]:
        if "sha256" in output and before.get(output["option"]):
            outcome.append(before[output["option"]] == output["sha256"])
            tell(f"{'same' if outcome[-1] else 'other'} bytes: {output['path']}")
    for name in FIGURES:
        if recorded.get(name) is not None and now.get(name) is not None:
            tell(f"{name.replace('_', ' ')} {now[name]:.6g}, recorded {recorded[name]:.6g}")
    return all(outcome)


@contextlib.contextmanager
def in_directory(path):
    before = os.getcwd()
    try:
        os.chdir(path)
    except OSError as error:
        raise TiedtoolsError(f"{path}: cannot run there: {error.strerror}; --directory names another place") from None
    try:
        yield
    finally:
        os.chdir(before)


@contextlib.contextmanager
def made(folder):
    """A folder for the block, gone again if it is empty then."""
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise TiedtoolsError(f"{folder}: cannot be made: {error.strerror}; name another --folder") from None
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.rmdir(folder)

"""`tiedtools rerun`: repeat a training run and compare the outputs."""

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import click

from tiedtools.base.errors import TiedtoolsError
from tiedtools.base.messages import log
from tiedtools.cli.command import command
from tiedtools.cli.options import option
from tiedtools.files import digests
from tiedtools.files import manifest as manifests
from tiedtools.files.families import FAMILIES
from tiedtools.files.output import STDOUT, is_file
from tiedtools.text.sources import open_source

COMMANDS = {command: family for family in FAMILIES.values() for command in family.warm_up}


@command("rerun", "Repeat a training run and compare the outputs.")
@click.argument("path", metavar="MANIFEST")
@option("folder", metavar="DIR", help="Output folder.  [default: VECTORS.rerun for VECTORS.run.json]")
@option("directory", metavar="DIR", help="Working directory, against which texts resolve.  [default: as recorded]")
@click.pass_context
def rerun(ctx: click.Context, path: str, folder: str | None, directory: str | None) -> None:
    """Repeat the training run recorded in MANIFEST, the .run.json file next to its output, and compare the outputs.

    The same command runs in the same directory, but writes to another folder and overwrites nothing. Input texts that
    have changed are rejected; texts from standard input must be provided again. The manifest of a time slice repeats
    all slices of its folder.

    Runs with one thread, --deterministic, or at least as many --runs as threads, and all runs of `lm`, `lstm`, and
    `nmt`, must reproduce the same bytes; otherwise the exit status is 1.
    """
    from tiedtools.api.slices import COMPASS

    recorded = read(path)
    if slices := recorded["options"].get("slices"):
        path = os.path.join(os.path.dirname(path), COMPASS + manifests.SUFFIX)
        # The inputs of the compass are all texts; a later command may have trained the slices again, with more `runs`.
        recorded |= {"inputs": read(path)["inputs"], "origin": None}
    directory = recorded["directory"] if directory is None else directory
    name, *argv = recorded["argv"] or [""]
    if not name:
        raise TiedtoolsError(f"{path}: recorded by a Python program; run that program again")
    if name not in COMMANDS:
        raise TiedtoolsError(f"{path}: not the manifest of a tiedtools {', '.join(sorted(COMMANDS))} run; give one")
    if origin := recorded.get("origin"):
        file = os.path.join(directory, origin["path"])
        exists = os.path.exists(file)
        if name == "rnnlm" or not exists or digests.of_file(file)["sha256"] != origin["sha256"]:  # rnnlm overwrote it
            remedy = f"restore that model (SHA-256 {origin['sha256'][:12]}...) and run the command directly"
            state = "has changed" if exists else "is missing"
            raise TiedtoolsError(f"{path}: the run continued from {origin['path']}, which {state}; {remedy}")
    if recorded.get("ranks", 1) > 1:
        raise TiedtoolsError(f"{path}: recorded on {recorded['ranks']} ranks; run its command with an MPI launcher")
    differences = changed_environment(recorded, manifests.environment())
    if recorded.get("resumed"):
        differences.append("the recorded run was resumed, perhaps with other options")
    if recorded.get("stopped"):
        what = f"the recorded run was interrupted ({recorded['stopped']})"
        log.warning(f"{path}: {what}; this run completes, so outputs differ")

    stem = os.path.dirname(os.path.abspath(path)) if slices else path.removesuffix(".json").removesuffix(".run")
    folder = os.path.abspath(f"{stem}.rerun" if folder is None else folder)
    paths = {option: recorded["options"].get(option) for option in manifests.OUTPUTS}
    in_folder = lambda file: file not in (None, *STDOUT) and is_file(os.path.join(directory, file))
    redirected = {option: file for option, file in paths.items() if in_folder(file)}
    names = [os.path.basename(file) for file in redirected.values()]
    files = {option: file if names.count(file) == 1 else f"{option}-{file}" for option, file in zip(redirected, names)}
    targets = {option: os.path.join(folder, file) for option, file in files.items()}
    if slices:
        targets["output"] = folder
    for target in [*targets.values(), *map(manifests.beside, targets.values())]:
        if os.path.lexists(target):
            raise TiedtoolsError(f"{target}: already exists; choose another --folder")
    options = [part for option, target in targets.items() for part in (f"--{option}", target)]
    if "output" not in targets and not recorded["options"].get("rnnlm"):  # else the default depends on the terminal
        options += ["--output", paths["output"] or os.devnull]
    options += ["--threads", str(recorded["threads"])]
    precision = (recorded["options"] | recorded["settings"]).get("precision")
    if COMMANDS[name].exact and precision:  # the default depends on the CPU, and on the checkpoint of a resumed run
        options += ["--precision", precision]
    end = argv.index("--") if "--" in argv else len(argv)
    argv = [*argv[:end], *options, *argv[end:]]

    ctx.obj = dict(inputs=recorded["inputs"], manifests=[])
    ctx.meta["argv"] = [name, *argv]
    with working(directory, folder):
        training = ctx.parent.command.get_command(ctx.parent, name)  # type: ignore[union-attr]
        with training.make_context(name, argv, parent=ctx) as inner:
            for option in manifests.OUTPUTS:
                file = inner.params.get(option.replace("-", "_"))
                if file is not None and file not in targets.values() and is_file(file):
                    what = f"--{option} {file} is in `argv`, but not in `options`"
                    raise TiedtoolsError(f"{path}: {what}; get an undamaged copy")
            training.invoke(inner)
    # Keep standard output clean if vectors are written there.
    to_stderr = any(value in STDOUT for value in recorded["options"].values() if isinstance(value, str))
    identical, lines = True, []
    for now in ctx.obj["manifests"]:
        if slices:
            file = os.path.basename(now["outputs"][0]["path"]) + manifests.SUFFIX
            recorded = read(os.path.join(os.path.dirname(path), file))
        same, report = compare(recorded, now)
        identical, lines = identical and same, lines + report
    click.echo("\n".join(lines).encode("utf-8", "surrogateescape"), err=to_stderr, nl=bool(lines))
    if identical or recorded.get("stopped"):
        return
    options = recorded["options"]
    alone = not slices and (options.get("runs") or 0) >= recorded["threads"]  # the compass of slices is one model
    exact = COMMANDS[name].exact or options.get("deterministic") or alone
    if recorded["threads"] > 1 and not exact:
        log.warning(f"runs with {recorded['threads']} threads are not reproducible; use --threads 1")
        return
    reasons = f": {'; '.join(differences)}" if differences else ""
    raise TiedtoolsError(f"{path}: the outputs differ from the recorded ones{reasons}")


def read(path: str) -> dict[str, Any]:
    with open_source(path) as file:
        return manifests.loads(file.read(), path)


def changed_environment(recorded: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Describe changes of the environment in a list; log a warning if the tiedtools version changed."""
    old = {"tiedtools": recorded["tiedtools"], **recorded["environment"]}
    changes = [f"{name} was {old[name]}, is {now[name]}" for name in now if name in old and old[name] != now[name]]
    if old["tiedtools"] != now["tiedtools"]:
        log.warning(f"{changes[0]}: results may differ")
    return changes


def compare(recorded: dict[str, Any], now: dict[str, Any]) -> tuple[bool, list[str]]:
    """Compare outputs and metrics with the recorded ones; return (whether all are equal, report lines).

    Metrics count if no output was written to a file.
    """
    before = {output["option"]: output.get("sha256") for output in recorded["outputs"]}
    matches, lines = [], []
    for output in now["outputs"]:
        if "sha256" in output and before.get(output["option"]):
            matches.append(before[output["option"]] == output["sha256"])
            lines.append(f"{'same' if matches[-1] else 'different'} bytes: {output['path']}")
    hashed = bool(matches)
    for name in manifests.FIGURES:
        if recorded.get(name) is not None and now.get(name) is not None:
            matches += [] if hashed else [now[name] == recorded[name]]
            lines.append(f"{name.replace('_', ' ')} {now[name]:.6g}, recorded {recorded[name]:.6g}")
    return all(matches), lines


@contextlib.contextmanager
def working(directory: str, folder: str) -> Iterator[None]:
    """Run the block in a directory, with a folder for its outputs, which is removed afterwards if it is empty."""
    before = os.getcwd()
    path, problem = directory, "cannot change to this directory: {}; choose another --directory"
    try:
        os.chdir(path)
        path, problem = folder, "cannot be created: {}; choose another --folder"
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        os.chdir(before)
        raise TiedtoolsError(f"{path}: {problem.format(error.strerror)}") from None
    try:
        yield
    finally:
        os.chdir(before)
        with contextlib.suppress(OSError):
            os.rmdir(folder)

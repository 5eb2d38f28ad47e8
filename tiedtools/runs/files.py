"""Final names of a training run's outputs, so that an incomplete run never overwrites a finished one.

The name depends on how the run ended:

    finished     replaces the output
    interrupted  replaces the output; the output of an earlier finished run is kept as FILE.finished
    diverged     leaves the output unchanged; the last good state is written to FILE.diverged

The manifest of a run (FILE.run.json) records whether it was stopped, and is moved with FILE, one of its outputs.
"""

import contextlib
import os
import shutil
import signal

from tiedtools.base.errors import Contradiction, Diverged, TiedtoolsError
from tiedtools.files import digests, manifest
from tiedtools.files.output import is_file


class Ending:
    """How a run ended, and where its outputs are.

    stopped  the KeyboardInterrupt or Diverged that stopped the run; None while it runs and if it finished
    kept     dict: output path -> path to which the output of an earlier finished run was moved
    early    dict: path of an output written during the run -> whether a file existed there before
    logs     paths of logs that were copied
    records  paths where an earlier run may have written its manifest
    """

    def __init__(self):
        self.stopped: KeyboardInterrupt | Diverged | None = None
        self.kept: dict[str, str] = {}
        self.early: dict[str, bool] = {}
        self.logs: set[str] = set()
        self.records: list[str] = []

    @property
    def diverged(self):
        return isinstance(self.stopped, Diverged)

    def put(self, partial, target):
        """Rename a complete file and return its final name; the `put` of output.open_output."""
        if self.diverged:
            target = os.path.relpath(beside(target, "diverged"))
        elif self.stopped:
            self.keep(target)
        os.replace(partial, target)
        return target

    def put_early(self, partial, target):
        """Like `put`, but during the run: an earlier finished run's output is kept until this run finishes."""
        self.keep(target)
        self.early.setdefault(target, os.path.exists(target) or target in self.kept)
        os.replace(partial, target)
        return target

    def keep(self, target):
        if target not in self.early and is_finished(target, self.records):
            new = os.path.relpath(beside(target, "finished"))
            move(target, new)
            self.kept[target] = new

    def keep_log(self, path):
        """Copy the log of a finished run, whose last line has "params", before this run overwrites it."""
        path = os.path.realpath(path)
        if not os.path.isfile(path):
            return
        with contextlib.suppress(OSError):
            with open(path, "rb") as file:
                finished = b'"params"' in file.read().rpartition(b"\n{")[2]
            if finished:
                new = os.path.relpath(beside(path, "finished"))
                shutil.copyfile(path, new)
                self.kept[path] = new
                self.logs.add(path)

    def settle(self, written):
        """Clean up after `put_early` and `keep_log`, once the outputs are written.

        Restores what a diverged run has replaced; removes the backups that a finished run no longer needs.

        written  paths of the outputs that the run has written; others may be incomplete
        """
        for log in self.logs:
            with contextlib.suppress(FileNotFoundError):
                if self.diverged:
                    os.replace(log, beside(log, "diverged"))
                    os.replace(self.kept.pop(log), log)
                elif not self.stopped:
                    os.unlink(self.kept.pop(log))
        written = {os.path.realpath(path) for path in written}
        for target, existed in self.early.items():
            if self.diverged:
                if target in self.kept:
                    move(self.kept.pop(target), target)
                elif not existed:
                    remove(target)
            elif not self.stopped and target in self.kept and target in written:
                remove(self.kept.pop(target))

    def told(self, stop, reached, written):
        """Return the exception that stopped the run, its message extended by what happened to the outputs.

        stop     the KeyboardInterrupt or Diverged
        reached  progress of the run, in words
        written  paths of the outputs that the run has written
        """
        what = f"wrote {', '.join('standard output' if path == '-' else path for path in written) or 'nothing'}"
        if isinstance(stop, Diverged):
            return Diverged(f"{stop}; {what if written else 'no output was changed'}")
        kept = f"; kept the finished {', '.join(self.kept.values())}" if self.kept else ""
        return KeyboardInterrupt((stop.args or (signal.SIGINT,))[0], f"interrupted {reached}; {what}{kept}")


def beside(path, word):
    """Return FILE.word, or FILE.word.run.json for the manifest of FILE."""
    stem = path.removesuffix(manifest.SUFFIX)
    return f"{stem}.{word}{path[len(stem) :]}"


def refuse_spares(outputs, others):
    """Raise TiedtoolsError if a backup name of one of `outputs` (None: not wanted) is taken.

    It is taken if it is a directory or one of `others`, paths that the run reads or writes.
    """
    taken = {os.path.realpath(path): path for path in others if path}
    for path in filter(is_file, outputs):
        for word in "finished", "diverged":
            spare = beside(os.path.realpath(path), word)
            if spare in taken:
                raise Contradiction(f"{taken[spare]}: is reserved for the backup of {path}; choose another name")
            if os.path.isdir(spare):
                raise TiedtoolsError(f"{spare}: is a directory, but reserved for the backup of {path}; rename it")


def move(path, new):
    """Rename an output and the manifest next to it, if there is one."""
    os.replace(path, new)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(new + manifest.SUFFIX)
    with contextlib.suppress(FileNotFoundError):
        os.replace(path + manifest.SUFFIX, new + manifest.SUFFIX)


def remove(path):
    for name in path, path + manifest.SUFFIX:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)


def is_finished(path, records=()):
    """Return whether `path` is a nonempty file that, according to manifests, no stopped run has written.

    The manifests are those at `records` and those in the folder of `path`, which may be named after another output.
    """
    if not os.path.exists(path) or not os.path.getsize(path):
        return False
    with contextlib.suppress(OSError):
        if manifest.is_manifest(path):
            return not stopped(path)
    folder, names = os.path.dirname(path), []
    with contextlib.suppress(OSError):
        names = [name for name in os.listdir(folder or ".") if name.endswith(manifest.SUFFIX)]
    return not any(stopped(found, of=path) for found in {*records, *(os.path.join(folder, name) for name in names)})


def stopped(path, of=None):
    """Return whether a manifest records a stopped run and, if `of` is given, the current content of that file."""
    try:
        with open(path, "rb") as file:
            recorded = manifest.loads(file.read(), path)
        return bool(recorded.get("stopped")) and (
            of is None or digests.of_file(of)["sha256"] in [output.get("sha256") for output in recorded["outputs"]]
        )
    except (OSError, TiedtoolsError):
        return False

"""Where the outputs of a training run go, by how the run ended: nothing good is replaced by something worse.

    finished     replaces the output
    interrupted  replaces the output; what a finished run had written there is kept as FILE.finished
    diverged     leaves the output alone; the last good state goes to FILE.diverged

The manifest beside an output (FILE.run.json) says whether the run that wrote it was stopped, and goes where the output
goes.
"""

import contextlib
import os
import shutil
import signal

from tiedtools.errors import Contradiction, Diverged, TiedtoolsError
from tiedtools.files import digests, manifest
from tiedtools.files.output import is_file


class Ending:
    """How a run ended, and what became of its outputs.

    stopped  the KeyboardInterrupt or Diverged that stopped the run; None while it runs and where it finished
    kept     dict: output path -> path to which the output of a finished run was moved
    early    dict: path of an output that was written while the run went on -> whether there was a file before
    logs     paths of logs of which a copy is kept
    """

    def __init__(self):
        self.stopped: KeyboardInterrupt | Diverged | None = None
        self.kept: dict[str, str] = {}
        self.early: dict[str, bool] = {}
        self.logs: set[str] = set()

    @property
    def diverged(self):
        return isinstance(self.stopped, Diverged)

    def put(self, partial, target):
        """Rename a complete file to its final name, which is returned; `put` of output.open_output."""
        if self.diverged:
            target = os.path.relpath(beside(target, "diverged"))
        elif self.stopped:
            self.keep(target)
        os.replace(partial, target)
        return target

    def put_early(self, partial, target):
        """As `put`, while the run goes on: what a finished run had written is kept until this one finishes."""
        self.keep(target)
        self.early.setdefault(target, os.path.exists(target) or target in self.kept)
        os.replace(partial, target)
        return target

    def keep(self, target):
        if target not in self.early and is_finished(target):
            new = os.path.relpath(beside(target, "finished"))
            move(target, new)
            self.kept[target] = new

    def keep_log(self, path):
        """Copy the log of a finished run, whose last line has "params", before this run begins it anew."""
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
        """Clean up after `put_early` and `keep_log`, when the outputs are written: restore what a diverged run has
        replaced, remove what a finished one no longer needs.

        written  paths of the outputs that the run has written; the others may not have been written to the end
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
        """The exception that stopped the run, KeyboardInterrupt or Diverged, with what became of the outputs in its
        message.

        reached  how far the run had come, in words; written: paths of the outputs that it has written
        """
        what = f"wrote {', '.join('standard output' if path == '-' else path for path in written) or 'nothing'}"
        if isinstance(stop, Diverged):
            return Diverged(f"{stop}; {what if written else 'no output was changed'}")
        kept = f"; kept the finished {', '.join(self.kept.values())}" if self.kept else ""
        return KeyboardInterrupt((stop.args or (signal.SIGINT,))[0], f"interrupted {reached}; {what}{kept}")


def beside(path, word):
    """FILE.word, or FILE.word.run.json for the manifest of FILE."""
    stem = path.removesuffix(manifest.SUFFIX)
    return f"{stem}.{word}{path[len(stem) :]}"


def refuse_spares(outputs, others):
    """Raise TiedtoolsError where a name that an Ending may give to one of `outputs` (None: not wanted) is taken, by a
    directory or by one of the paths `others` that are read and written.
    """
    taken = {os.path.realpath(path): path for path in others if path}
    for path in filter(is_file, outputs):
        for word in "finished", "diverged":
            spare = beside(os.path.realpath(path), word)
            if spare in taken:
                raise Contradiction(f"{taken[spare]}: is where a run that stops keeps {path}; choose another name")
            if os.path.isdir(spare):
                raise TiedtoolsError(f"{spare}: is a directory, and where a run that stops keeps {path}; rename it")


def move(path, new):
    """Rename an output, and its manifest with it."""
    os.replace(path, new)
    with contextlib.suppress(FileNotFoundError):
        os.replace(path + manifest.SUFFIX, new + manifest.SUFFIX)


def remove(path):
    for name in path, path + manifest.SUFFIX:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)


def is_finished(path):
    """Whether there is a file that, as far as manifests tell, no stopped run has written: its own, or one beside it."""
    if not os.path.exists(path) or not os.path.getsize(path):
        return False
    with contextlib.suppress(OSError):
        if manifest.is_manifest(path):
            return not stopped(path)
    return not stopped(path + manifest.SUFFIX, of=path)


def stopped(path, of=None):
    """Whether a manifest tells of a run that was stopped, and of the file `of` with the bytes that it has now."""
    try:
        with open(path, "rb") as file:
            recorded = manifest.loads(file.read(), path)
        return bool(recorded.get("stopped")) and (
            of is None or digests.of_file(of)["sha256"] in [output.get("sha256") for output in recorded["outputs"]]
        )
    except (OSError, TiedtoolsError):
        return False

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

from tiedtools import digests, manifest
from tiedtools.errors import Diverged, TiedtoolsError


class Ending:
    """How a run ended, and what became of its outputs.

    stopped  the KeyboardInterrupt or Diverged that stopped the run; None while it runs and where it finished
    kept     dict: output path -> path to which the output of a finished run was moved
    """

    def __init__(self):
        self.stopped: KeyboardInterrupt | Diverged | None = None
        self.kept: dict[str, str] = {}
        self.early: set[str] = set()
        self.logs: set[str] = set()

    @property
    def diverged(self):
        return isinstance(self.stopped, Diverged)

    def put(self, partial, target):
        """Rename a complete file to its final name, which is returned; `put` of output.open_output."""
        if self.diverged:
            target = beside(target, "diverged")
        elif self.stopped:
            self.keep(target)
        os.replace(partial, target)
        return target

    def put_early(self, partial, target):
        """As `put`, while the run goes on: what a finished run had written is kept until this one finishes."""
        self.keep(target)
        os.replace(partial, target)
        self.early.add(target)
        return target

    def keep(self, target):
        if target not in self.early and is_finished(target):
            self.kept[target] = os.path.relpath(beside(target, "finished"))
            move(target, self.kept[target])

    def keep_log(self, path):
        """Copy the log of a finished run, whose last line has "params", before this run begins it anew."""
        if not os.path.isfile(path):
            return
        with contextlib.suppress(OSError):
            with open(path, "rb") as file:
                finished = b'"params"' in file.read().rpartition(b"\n{")[2]
            if finished:
                self.kept[path] = beside(path, "finished")
                self.logs.add(path)
                shutil.copyfile(path, self.kept[path])

    def settle(self):
        """Clean up after `put_early` and `keep_log`, when the outputs are written: restore what a diverged run has
        replaced, remove what a finished one no longer needs.
        """
        for target in self.early | self.logs:
            if self.diverged:
                if target in self.logs:
                    os.replace(target, beside(target, "diverged"))
                move(self.kept.pop(target), target) if target in self.kept else remove(target)
            elif not self.stopped and target in self.kept:
                remove(self.kept.pop(target))

    def told(self, reached, written):
        """The exception that stopped the run, with what became of the outputs in its message.

        reached  how far the run had come, in words; written: paths of the outputs that it has written
        """
        what = f"wrote {', '.join('standard output' if path == '-' else path for path in written) or 'nothing'}"
        if self.diverged:
            return Diverged(f"{self.stopped}; {what if written else 'no output was changed'}")
        assert self.stopped is not None
        kept = f"; kept the finished {', '.join(self.kept.values())}" if self.kept else ""
        return KeyboardInterrupt((self.stopped.args or (signal.SIGINT,))[0], f"interrupted {reached}; {what}{kept}")


def beside(path, word):
    """FILE.word, or FILE.word.run.json for the manifest of FILE."""
    stem = path.removesuffix(manifest.SUFFIX)
    return f"{stem}.{word}{path[len(stem) :]}"


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
    if manifest.is_manifest(path):
        return not stopped(path)
    return not stopped(path + manifest.SUFFIX, of=path)


def stopped(path, of=None):
    """Whether a manifest tells of a run that was stopped, and of the file `of` with the bytes that it has now."""
    try:
        with open(path, "rb") as file:
            recorded = manifest.loads(file.read(), path)
        return bool(recorded["stopped"]) and (
            of is None or digests.of_file(of)["sha256"] in [output.get("sha256") for output in recorded["outputs"]]
        )
    except (OSError, TiedtoolsError):
        return False

"""Output files of a training run: opened before training, and named according to how the run ends.

An incomplete run never overwrites a finished one:

    finished     replaces the output
    interrupted  replaces the output; the output of an earlier finished run is kept as FILE.finished
    diverged     leaves the output unchanged; the last good state is written to FILE.diverged

The manifest of a run (FILE.run.json) records whether the run was stopped, and is moved with the output FILE.
"""

import contextlib
import os
import shutil
import signal
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tiedtools.base import interrupts
from tiedtools.base.errors import Contradiction, Diverged, TiedtoolsError, Unwritable, reason
from tiedtools.base.messages import log
from tiedtools.files import digests, manifest
from tiedtools.files.manifest import Record, beside
from tiedtools.files.output import STDOUT, is_file, open_log, open_output, open_packed, write_elsewhere
from tiedtools.vectors.rows import is_fasttext

Writer = Callable[[Any], Any]  # a function that writes to a binary file
BESIDE = {"output": "words"}  # an output of two files, which are written together or not at all
MODELS = "output", "save_model", "rnnlm"  # a manifest is written next to the first of these, and to models of fastText


def relative(path: str) -> str:
    """Return a path relative to the current folder, or as it is if that folder was removed."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.relpath(path)
    return path


class Target:
    """A file that is open from before training until it is written.

    put    function that renames the complete file and returns its final name: put(partial path, final path)
    final  path of the file once it is written; None before
    """

    final: str | None = None

    def __init__(self, path: str, put: Callable[[str, str], str | None]) -> None:
        self.path, self.put = path, put
        self.stack = contextlib.ExitStack()
        self.file = self.stack.enter_context(open_packed(path, self.rename))

    def rename(self, partial: str, target: str) -> None:
        final = self.put(partial, target)
        if final != target:
            self.final = final


class RunFiles(contextlib.AbstractContextManager[Any]):
    """The files of a run; each is completed independently of failures of the others.

    Entering the context opens all files, so that an unwritable path fails before training rather than after it. Leaving
    it writes the manifests, discards files that were not written, and reports failures: it raises one, an interrupt
    first, unless the block itself raised an exception. The others are logged.

    targets      name -> path of each output; None: no output
    record       the Record of the run, the content of its manifests
    manifest     path of a manifest in addition to those next to outputs, or None
    no_manifest  write no manifest next to outputs, unless the run is stopped
    log_path     path of the JSON log, or None

    outputs      name -> Target of each output
    manifests    name of an output -> Target of the manifest next to it; None -> Target of the additional manifest
    log          the log, a text file opened for appending, or None
    stopped      the KeyboardInterrupt or Diverged that stopped training; None before the end and if it finished
    backups      path of an output or log -> path to which the file of an earlier finished run was moved
    rescued      names of outputs written to another folder
    existed      path of an output written during training -> whether the file existed before

    Raises Contradiction if manifests are both requested and disabled.
    """

    def __init__(
        self, targets: dict[str, str | None], record: Record | None = None, manifest: str | None = None,
        no_manifest: bool = False, log_path: str | None = None,
    ) -> None:  # fmt: skip
        if manifest is not None and no_manifest:
            raise Contradiction("`manifest` and `no_manifest` exclude each other; choose one")
        if manifest in STDOUT:
            raise Contradiction("`manifest` cannot be written to standard output; give a file name")
        self.targets = {name: path for name, path in targets.items() if path is not None}
        models = [name for name in MODELS if is_file(self.targets.get(name))]
        self.manifest_paths: dict[str | None, str] = {name: beside(self.targets[name]) for name in models}
        self.manifest_paths |= {} if manifest is None else {None: manifest}
        self.record, self.no_manifest = record or Record(), no_manifest
        self.log_path: Any = log_path
        self.log: Any = None
        self.ended = False
        self.stopped: KeyboardInterrupt | Diverged | None = None
        self.results: list[str] = []  # names of the outputs written after training
        self.failures: list[BaseException] = []
        self.rescued: set[Any] = set()
        self.backups: dict[str, str] = {}
        self.existed: dict[str, bool] = {}

    def __enter__(self) -> "RunFiles":
        with contextlib.ExitStack() as stack:

            def opened(path: str) -> Target:
                target = Target(path, self.put)
                stack.push(target.stack)
                return target

            if self.log_path is not None:
                if not os.path.exists(self.log_path):
                    stack.callback(remove_empty, os.path.realpath(self.log_path))
                try:
                    self.log = stack.enter_context(open_log(self.log_path))
                except OSError as error:
                    raise Unwritable(f"{self.log_path}: cannot be written: {reason(error)}") from None
            self.outputs = {name: opened(path) for name, path in self.targets.items()}
            self.manifests = {name: opened(path) for name, path in self.manifest_paths.items()}
            self.stack = stack.pop_all()
        return self

    @property
    def done(self) -> dict[str, str]:
        """Path of each output written, by name."""
        return {name: target.final for name, target in self.outputs.items() if target.final}

    @property
    def diverged(self) -> bool:
        return isinstance(self.stopped, Diverged)

    def write(
        self, name: Any, write: Writer, targets: dict[Any, Target] | None = None, write_beside: Writer | None = None
    ) -> None:
        """Call write(file) and complete an output, or one of `targets`; if its folder fails, do so in another one.

        write_beside  writes the file BESIDE the output

        Failures are reported when the run ends. Writing to a terminal or a pipe can be interrupted immediately.
        """
        target: Target = (targets or self.outputs)[name]

        def write_both(file: Any) -> None:
            write(file)
            if write_beside:
                file.flush()
                if is_file(target.path):
                    os.fsync(file.fileno())  # reports a full disk before either file is renamed
                second = self.outputs[BESIDE[name]]
                with second.stack:
                    write_beside(second.file)
                second.final = second.final or second.path

        try:
            with interrupts.deferred(target.path not in STDOUT):
                try:
                    with target.stack:
                        write_both(target.file)
                except TiedtoolsError as error:
                    rescuable = is_file(target.path) or target.path in STDOUT
                    if not rescuable or not isinstance(error.__context__, OSError):
                        raise
                    files = {target: write} | ({self.outputs[BESIDE[name]]: write_beside} if write_beside else {})
                    printed = {"save_model": "model.npz", "save_vocab": "vocab.txt"}.get(name, "vectors")
                    named = {printed if each.path in STDOUT else each.path: writer for each, writer in files.items()}
                    for each, path in zip(files, write_elsewhere(named, error)):
                        each.final = path
                    if targets is None:
                        self.rescued.add(name)
                    self.failures.append(TiedtoolsError(f"{error}; saved in {target.final}"))
                target.final = target.final or target.path
        except (OSError, MemoryError, TiedtoolsError) as error:
            self.failures.append(error)
        except KeyboardInterrupt as stop:
            if len(interrupts.received) > interrupts.PATIENCE:
                raise  # without saving
            self.failures.append(stop)

    def early(self, name: str, write: Writer) -> None:
        """Write an output and its manifest, as of a stopped run, during training. Raises TiedtoolsError on failure.

        The output of an earlier finished run is kept until this run finishes.
        """
        path = self.outputs[name].path
        with open_output(path, self.put_early) as file:
            write(file)
        if name in self.manifest_paths:
            with open_output(self.manifest_paths[name]) as file:
                manifest.write(file, self.record.complete(KeyboardInterrupt(), {name: path}))

    def begin_log(self) -> None:
        """Empty the log; keep a copy of the log of a finished run, whose last line has "params"."""
        if self.log is None or not is_file(self.log_path):
            return
        path = os.path.realpath(self.log_path)
        with contextlib.suppress(OSError):
            if os.path.isfile(path) and b'"params"' in Path(path).read_bytes().rpartition(b"\n{")[2]:
                self.backups[path] = shutil.copyfile(path, relative(suffixed(path, "finished")))
        self.log.truncate(0)

    def finish(self, stopped: KeyboardInterrupt | Diverged | None, writers: dict[str, Writer]) -> None:
        """Write the outputs after training, and restore or remove backups.

        stopped  the KeyboardInterrupt or Diverged that stopped training, or None
        writers  name -> function of a binary file that writes the output; unused if its path is None
        """
        self.ended, self.stopped, self.results = True, stopped, list(writers)
        for name, write in writers.items():
            if name in self.outputs.keys() - BESIDE.values() and (not self.diverged or is_file(self.targets[name])):
                second = BESIDE.get(name)
                self.write(name, write, write_beside=writers[second] if second in self.outputs else None)
        if self.log and (path := os.path.realpath(self.log_path)) in self.backups:
            with contextlib.suppress(FileNotFoundError):
                if self.diverged:
                    os.replace(path, suffixed(path, "diverged"))
                    os.replace(self.backups.pop(path), path)
                elif not stopped:
                    os.unlink(self.backups.pop(path))
        written = {os.path.realpath(path) for path in self.done.values()}
        for path, existed in self.existed.items():
            if self.diverged and path in self.backups:
                move(self.backups.pop(path), path)
            elif self.diverged and not existed:
                remove(path)
            elif not stopped and path in self.backups and path in written:
                remove(self.backups.pop(path))

    def put(self, partial: str, target: str) -> str:
        """Rename a complete file according to how the run ended, and return its final name."""
        if self.diverged:
            target = relative(suffixed(target, "diverged"))
        elif self.stopped:
            self.back_up(target)
            self.mark(partial, target)
        os.replace(partial, target)
        return target

    def mark(self, partial: str, target: str) -> None:
        """Write the manifest beside a model of a stopped run; without it, one left by a killed process is finished."""
        if (path := target + manifest.SUFFIX) in map(os.path.realpath, self.manifest_paths.values()):
            with contextlib.suppress(TiedtoolsError), open_output(path) as file:
                manifest.write(file, self.record.complete(self.stopped, {"output": partial}))

    def put_early(self, partial: str, target: str) -> None:
        """Rename a file completed during training."""
        self.back_up(target)
        self.existed.setdefault(target, os.path.exists(target) or target in self.backups)
        os.replace(partial, target)

    def back_up(self, target: str) -> None:
        """Rename the output of an earlier finished run, if there is one."""
        if target not in self.existed and is_finished(target, self.manifest_paths.values()):
            self.backups[target] = relative(suffixed(target, "finished"))
            move(target, self.backups[target])

    def explain(self, stop: BaseException, reached: str, again: str = "") -> KeyboardInterrupt | Diverged:
        """Return the KeyboardInterrupt or Diverged `stop` with a message about the outputs.

        reached  progress of the run, in words
        again    advice on continuing an interrupted run, after a semicolon
        """
        done = self.done
        written = [done[name] for name in self.results if name in done]
        summary = f"wrote {', '.join('standard output' if path == '-' else path for path in written) or 'nothing'}"
        if isinstance(stop, Diverged):
            return Diverged(f"{stop}; {summary if written else 'no output was changed'}")
        backups = f"; kept the finished {', '.join(self.backups.values())}" if self.backups else ""
        message = f"interrupted {reached}; {summary}{backups}{again}"
        return KeyboardInterrupt((stop.args or (signal.SIGINT,))[0], message)

    def __exit__(self, *error: Any) -> None:
        if self.log and not self.ended and (path := os.path.realpath(self.log_path)) in self.backups:
            os.replace(self.backups.pop(path), path)  # the run failed
        try:
            self.write_manifests()
        finally:
            self.stack.__exit__(Exception, Exception(), None)  # discards the partial files of outputs not written
        stops = [failure for failure in self.failures if isinstance(failure, KeyboardInterrupt)]
        raised = None if error[0] else next(iter([*stops, *self.failures]), None)
        for failure in self.failures:
            if isinstance(failure, Exception) and failure is not raised and not isinstance(failure, BrokenPipeError):
                log.warning(f"tiedtools: {failure}")
        if raised:
            raise self.explain(raised, "after training") if isinstance(raised, KeyboardInterrupt) else raised

    def write_manifests(self) -> None:
        """Write the manifests if one of MODELS was written; remove manifests of earlier runs next to these outputs."""
        done = self.done
        written = [name for name in MODELS if name in done]
        models = [name for name in written if name in self.manifests]
        # A model of fastText (.bin) has no other place for the tokenization.
        outputs: list[Any] = models[:1] + [name for name in models[1:] if is_fasttext(done[name])]
        outputs = outputs if self.stopped or not self.no_manifest else []
        for name in set(models) - set(outputs):
            Path(beside(done[name])).unlink(missing_ok=True)  # the manifest of an earlier run or epoch
        write = lambda file: manifest.write(file, self.record.complete(self.stopped, done))
        for name in outputs + [None] * (bool(written) and None in self.manifests):
            if name in self.rescued:
                try:
                    self.manifests[name] = Target(beside(done[name]), os.replace)
                except TiedtoolsError as error:
                    self.failures.append(error)
                    continue
            self.write(name, write, self.manifests)


def remove_empty(path: str) -> None:
    with contextlib.suppress(OSError):  # already removed
        if not os.path.getsize(path):
            os.unlink(path)


def suffixed(path: str, word: str) -> str:
    """Return FILE.word, or FILE.word.run.json for the manifest of FILE."""
    stem = path.removesuffix(manifest.SUFFIX)
    return f"{stem}.{word}{path[len(stem) :]}"


def refuse_reserved(outputs: Iterable[Any], others: Iterable[Any]) -> None:
    """Raise TiedtoolsError if a backup name of one of `outputs` (None: no output) is in use.

    A name is in use if it is a directory or one of `others`, paths that the run reads or writes.
    """
    taken = {os.path.realpath(path): path for path in others if path}
    for path in filter(is_file, outputs):
        for word in "finished", "diverged":
            backup = suffixed(os.path.realpath(path), word)
            if backup in taken:
                raise Contradiction(f"{taken[backup]}: is reserved for the backup of {path}; choose another name")
            if os.path.isdir(backup):
                raise TiedtoolsError(f"{backup}: is a directory, but reserved for the backup of {path}; rename it")


def move(path: str, new: str) -> None:
    """Rename an output and the manifest next to it, if there is one."""
    os.replace(path, new)
    Path(new + manifest.SUFFIX).unlink(missing_ok=True)
    with contextlib.suppress(FileNotFoundError):
        os.replace(path + manifest.SUFFIX, new + manifest.SUFFIX)


def remove(path: str) -> None:
    for name in path, path + manifest.SUFFIX:
        Path(name).unlink(missing_ok=True)


def is_finished(path: str, records: Iterable[str] = ()) -> bool:
    """Return whether `path` is a nonempty file and, according to manifests, not the output of a stopped run.

    Manifests are read from the paths `records` and from the folder of `path`.
    """
    if not os.path.exists(path) or not os.path.getsize(path):
        return False
    names = []
    with contextlib.suppress(OSError):
        with open(path, "rb") as file:
            if file.read(len(manifest.START)) == manifest.START:
                return not stopped(path)
        names = [str(name) for name in Path(path).parent.glob(f"*{manifest.SUFFIX}")]
    return not any(stopped(name, of=path) for name in {*records, *names})


def stopped(path: str, of: str | None = None) -> bool:
    """Return whether a manifest records a stopped run and, if `of` is given, the current content of that file."""
    try:
        record = manifest.loads(Path(path).read_bytes(), path)
        outputs = [output.get("sha256") for output in record["outputs"]]
        return bool(record.get("stopped")) and (of is None or digests.of_file(of)["sha256"] in outputs)
    except (OSError, TiedtoolsError):
        return False

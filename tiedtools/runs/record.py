"""Manifests of training runs: inputs, outputs, and settings. `tiedtools rerun` repeats a run from its manifest."""

import contextlib
import dataclasses
import datetime
import os
import shlex
import time
from typing import Any

from tiedtools.base import memory
from tiedtools.base.errors import Contradiction
from tiedtools.files import digests, manifest
from tiedtools.files.output import STDOUT, is_file, open_output


@dataclasses.dataclass(frozen=True)
class Call:
    """The command line recorded for a run.

    argv    arguments after "tiedtools"; empty if called from Python
    given   settings by name, before dependent defaults were filled in
    names   name of a setting -> the option that sets it
    inputs  expected input texts, as recorded in a manifest; the first that differs raises TiedtoolsError
    """

    argv: list = dataclasses.field(default_factory=list)
    given: dict = dataclasses.field(default_factory=dict)
    names: dict = dataclasses.field(default_factory=dict)
    inputs: list | None = None


BESIDE = "output", "save_model", "rnnlm"  # the manifest is next to the first of these files that the run has written


class Record(contextlib.AbstractContextManager):
    """Context manager that records a run and, however the run ends, writes one manifest of all outputs written.

    call     the Call
    files    the trainer.Files of the run
    outputs  name -> path of each output, None if not requested
    ending   the Ending of the run

    paths    name -> path of each possible manifest; pass them to output.Outputs together with the outputs
    figures  results of the run, in the manifest's order; the caller adds to them
    counts   of the vocabulary, as vectors.counts.packed; the caller sets them
    whole    the last manifest written, a dict; None before

    Raises Contradiction if manifests are both requested and disabled.
    """

    def __init__(self, call, files, outputs, ending):
        self.call, self.outputs, self.ending = call, dict(outputs), ending
        self.figures: dict[str, Any] = {}
        self.settings: dict[str, Any] = {}
        self.counts, self.need, self.whole = None, None, None
        self.began, self.started = time.monotonic(), datetime.datetime.now(datetime.timezone.utc)
        self.beside = not files.no_manifest
        if files.manifest is not None and files.no_manifest:
            raise Contradiction("`manifest` and `no_manifest` exclude each other; choose one")
        if files.manifest in STDOUT:
            raise Contradiction("`manifest` cannot be written to standard output; give a file name")
        beside = {name: outputs[name] for name in BESIDE if is_file(outputs.get(name))}
        self.paths = {f"manifest of {name}": beside_of(path) for name, path in beside.items()}
        self.paths["manifest"] = files.manifest
        ending.records = list(filter(None, self.paths.values()))

    def __call__(self, outputs):
        """Return the context manager itself, with the Outputs that include both the outputs and `paths`."""
        self.files = outputs
        return self

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.sources = stack.enter_context(digests.recorded(self.call.inputs))
            self.stack = stack.pop_all()
        return self

    def check_memory(self, coming, advice, force):
        """Check and record the memory needed; see memory.check."""
        self.need = memory.check(coming, advice, force)

    def settle(self, *settings):
        """Record the settings, given as dicts or dataclasses, that differ from those in the Call."""
        for some in settings:
            fields = some if isinstance(some, dict) else dataclasses.asdict(some)
            self.settings |= {name: value for name, value in fields.items() if self.call.given.get(name, ...) != value}

    def __exit__(self, *error):
        self.stack.close()
        stopped, done = self.ending.stopped, self.files.done
        trained = [name for name in BESIDE if name in done]
        own = [f"manifest of {name}" for name in trained if f"manifest of {name}" in self.files]
        wanted = own[:1] if self.beside or stopped else []
        wanted += ["manifest"] if trained and "manifest" in self.files else []
        for name in own:
            if name not in wanted:
                with contextlib.suppress(FileNotFoundError):  # left by an earlier run or epoch
                    os.unlink(beside_of(done[name.removeprefix("manifest of ")]))
        for name in wanted:
            self.files.write(name, lambda file: manifest.write(file, self.complete(stopped)))

    def mark(self, output):
        """Write a manifest next to an output that holds the model of a run still in progress."""
        if path := self.paths.get(f"manifest of {output}"):
            with open_output(path) as file:
                manifest.write(file, self.complete(KeyboardInterrupt(), {output: self.outputs[output]}))

    def complete(self, stopped, done=None):
        """Return the manifest, a dict.

        stopped  the exception that stopped the run, or None
        done     name -> path of the outputs to list; None: all that were written
        """
        done = self.files.done if done is None else done
        call, environment = self.call, manifest.environment()
        cpu = environment["TIEDTOOLS_CPU"]
        self.whole = dict(
            tiedtools=environment.pop("tiedtools"),
            command=(f"TIEDTOOLS_CPU={cpu} " if cpu else "") + shlex.join(["tiedtools", *call.argv]),
            argv=call.argv,
            directory=os.getcwd(),
            started=self.started.isoformat(timespec="seconds"),
            seconds=round(time.monotonic() - self.began, 3),
            stopped=stopped and (str(stopped) if isinstance(stopped, Exception) else "interrupted"),
            **self.figures,
            memory=dict(estimated_mb=self.need and round(self.need / 1e6), peak_mb=round(memory.peak() / 1e6)),
            inputs=self.sources.found,
            outputs=[self.output(name, done[name]) for name in self.outputs if name in done],
            options={call.names.get(name, name).lstrip("-"): value for name, value in call.given.items()},
            settings=self.settings,
            environment=environment,
            counts=self.counts,
        )
        return self.whole

    def output(self, name, path):
        return dict(option=name.replace("_", "-"), path=path, **(digests.of_file(path) if is_file(path) else {}))


def beside_of(path):
    """Return the path of the manifest next to an output, or next to the target of a symbolic link."""
    return (os.path.realpath(path) if os.path.islink(path) else path) + manifest.SUFFIX

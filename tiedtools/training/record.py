"""The manifest of a training run: what was read and written, with which settings. `tiedtools rerun` repeats it."""

import contextlib
import dataclasses
import datetime
import os
import shlex
import time
from typing import Any

from tiedtools import memory
from tiedtools.errors import Contradiction
from tiedtools.files import digests, manifest
from tiedtools.files.output import STDOUT, is_file, open_output


@dataclasses.dataclass(frozen=True)
class Call:
    """The command that a run is recorded with.

    argv    its words, after "tiedtools"; empty where Python is the caller
    given   settings by name, before defaults that depend on others were filled in
    names   name of a setting -> the option that sets it
    inputs  the texts that must be read, as manifests record them: the first that differs raises TiedtoolsError
    """

    argv: list = dataclasses.field(default_factory=list)
    given: dict = dataclasses.field(default_factory=dict)
    names: dict = dataclasses.field(default_factory=dict)
    inputs: list | None = None


class Record(contextlib.AbstractContextManager):
    """A block in which a run is recorded. However it ends, each output that was written then gets its manifest.

    call     the Call
    files    the trainer.Files of the run
    outputs  name -> path of each output, None for what is not wanted
    ending   the Ending of the run

    paths    of the manifests by name; pass them to output.Outputs together with the outputs
    figures  what becomes known during the run, in the manifest's order; the caller adds to it
    whole    the manifest last written, a dict; None before

    Raises Contradiction for manifests that are both wanted and not.
    """

    def __init__(self, call, files, outputs, ending):
        self.call, self.outputs, self.ending = call, dict(outputs), ending
        self.figures: dict[str, Any] = {}
        self.settings: dict[str, Any] = {}
        self.need, self.whole = None, None
        self.began, self.started = time.monotonic(), datetime.datetime.now(datetime.timezone.utc)
        self.beside = not files.no_manifest
        if files.manifest is not None and files.no_manifest:
            raise Contradiction("`manifest` and `no_manifest`: choose one")
        if files.manifest in STDOUT:
            raise Contradiction("`manifest` needs a file of its own")
        beside = {name: path for name, path in outputs.items() if name != "save_vocab" and is_file(path)}
        beside = {name: os.path.realpath(path) if os.path.islink(path) else path for name, path in beside.items()}
        self.paths = {f"manifest of {name}": path + manifest.SUFFIX for name, path in beside.items()}
        self.paths["manifest"] = files.manifest

    def __call__(self, outputs):
        """The block, for the Outputs that have the outputs and `paths`."""
        self.files = outputs
        return self

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.sources = stack.enter_context(digests.recorded(self.call.inputs))
            self.stack = stack.pop_all()
        return self

    def check_memory(self, coming, advice, force):
        """See memory.check."""
        self.need = memory.check(coming, advice, force)

    def settle(self, *settings):
        """Keep the settings, in dicts and dataclasses, that differ from those given."""
        for some in settings:
            fields = some if isinstance(some, dict) else dataclasses.asdict(some)
            self.settings |= {name: value for name, value in fields.items() if self.call.given.get(name, ...) != value}

    def __exit__(self, *error):
        self.stack.close()
        stopped, trained = self.ending.stopped, self.files.done.keys() - {"save_vocab"}
        for name, path in self.paths.items():
            of_all = name == "manifest"
            if name not in self.files or not (trained if of_all else name.removeprefix("manifest of ") in trained):
                continue
            if of_all or self.beside or stopped:
                self.files.write(name, lambda file: manifest.write(file, self.complete(stopped)))
            else:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)  # of an earlier run, or epoch

    def mark(self, output):
        """Write the manifest of an output that holds the model of a run which still goes on."""
        if path := self.paths.get(f"manifest of {output}"):
            with open_output(path) as file:
                manifest.write(file, self.complete(KeyboardInterrupt(), {output: self.outputs[output]}))

    def complete(self, stopped, done=None):
        """The manifest. stopped: what stopped the run, or None; done: the outputs written, by default all of them."""
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
        )
        return self.whole

    def output(self, name, path):
        return dict(option=name.replace("_", "-"), path=path, **(digests.of_file(path) if is_file(path) else {}))

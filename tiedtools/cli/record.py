"""What the training commands keep of a run beside its outputs: a manifest, which `tiedtools rerun` takes."""

import contextlib
import dataclasses
import datetime
import os
import shlex
import time

import click

from tiedtools import digests, manifest, memory
from tiedtools.output import STDOUT, is_file


class Record(contextlib.AbstractContextManager):
    """A block in which a run is recorded; at its end, however it ends, each output that was written gets its manifest.

    ctx      of the command, which has the options --manifest and --no-manifest
    outputs  option -> path, None where it is not wanted
    paths    of the manifests by name, for output.Outputs, which open beside what they tell of
    figures  what becomes known of the run, for the command to add to, in the manifest's order
    """

    def __init__(self, ctx, outputs):
        self.ctx, self.outputs, self.figures, self.settings = ctx, dict(outputs), {}, {}
        self.need = None
        self.began, self.started = time.monotonic(), datetime.datetime.now(datetime.timezone.utc)
        own, none = ctx.params["manifest"], ctx.params["no_manifest"]
        if own is not None and none:
            raise click.UsageError("--manifest and --no-manifest: choose one")
        if own in STDOUT:
            raise click.UsageError("--manifest needs a file of its own")
        beside = {name: path for name, path in outputs.items() if name != "save_vocab" and is_file(path) and not none}
        self.paths = {f"manifest of {name}": path + manifest.SUFFIX for name, path in beside.items()}
        self.paths["manifest"] = own

    def __call__(self, files):
        """The block, for the Outputs that have the outputs and `paths`."""
        self.files = files
        return self

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            repeated = self.ctx.obj
            self.sources = stack.enter_context(digests.recorded(repeated and repeated["inputs"]))
            self.stack = stack.pop_all()
        return self

    def check_memory(self, coming, ways, talk):
        """See memory.check."""
        self.need = memory.check(coming, ways, talk, self.ctx.params["no_memory_check"])

    def model(self, options, model, training=None, **figures):
        """Keep what options that are settled, the model's config and a Training have other than given, and figures."""
        made = {**options, **dataclasses.asdict(model.config), **(dataclasses.asdict(training) if training else {})}
        self.settings = {name: value for name, value in made.items() if self.ctx.params.get(name, ...) != value}
        self.figures |= dict(seed=model.config.seed, threads=model.config.threads, **figures)

    def __exit__(self, kind, error, traceback):
        self.stack.close()
        for name in self.paths:
            output = name.removeprefix("manifest of ")
            if name in self.files and (output in self.files.done or name == "manifest" and self.files.done):
                self.files.write(name, lambda file: manifest.write(file, self.complete(error)))

    def complete(self, error):
        ctx, environment = self.ctx, manifest.environment()
        options = {max(option.opts, key=len).lstrip("-"): option.name for option in ctx.command.params}
        argv, cpu = ctx.meta["argv"], environment["TIEDTOOLS_CPU"]
        whole = dict(
            tiedtools=environment.pop("tiedtools"),
            command=(f"TIEDTOOLS_CPU={cpu} " if cpu else "") + shlex.join(["tiedtools", *argv]),
            argv=argv,
            directory=os.getcwd(),
            started=self.started.isoformat(timespec="seconds"),
            seconds=round(time.monotonic() - self.began, 3),
            stopped=error and (str(error) if isinstance(error, Exception) else "interrupted"),
            **self.figures,
            memory=dict(estimated_mb=self.need and round(self.need / 1e6), peak_mb=round(memory.peak() / 1e6)),
            inputs=self.sources.found,
            outputs=[self.output(name, path) for name, path in self.outputs.items() if name in self.files.done],
            options={option: ctx.params[name] for option, name in options.items() if name in ctx.params},
            settings=self.settings,
            environment=environment,
        )
        if ctx.obj:
            ctx.obj["manifest"] = whole
        return whole

    def output(self, name, path):
        return dict(option=name.replace("_", "-"), path=path, **(digests.of_file(path) if is_file(path) else {}))

"""What the training commands keep of a run beside its outputs: a manifest, which `tiedtools rerun` takes."""

import contextlib
import dataclasses
import datetime
import os
import shlex
import time

import click

from tiedtools import memory
from tiedtools.cli.options import as_given
from tiedtools.files import digests, manifest
from tiedtools.files.output import STDOUT, is_file, open_output


class Record(contextlib.AbstractContextManager):
    """A block in which a run is recorded; at its end, however it ends, each output that was written gets its manifest.

    ctx      of the command, which has the options --manifest and --no-manifest
    outputs  option -> path, None where it is not wanted
    ending   the Ending of the run
    paths    of the manifests by name, for output.Outputs, which open beside what they tell of
    figures  what becomes known of the run, for the command to add to, in the manifest's order
    """

    def __init__(self, ctx, outputs, ending):
        self.ctx, self.outputs, self.ending, self.figures, self.settings = ctx, dict(outputs), ending, {}, {}
        self.need = None
        self.began, self.started = time.monotonic(), datetime.datetime.now(datetime.timezone.utc)
        own, none = ctx.params["manifest"], ctx.params["no_manifest"]
        self.beside = not none
        if own is not None and none:
            raise click.UsageError("--manifest and --no-manifest: choose one")
        if own in STDOUT:
            raise click.UsageError("--manifest needs a file of its own")
        beside = {name: path for name, path in outputs.items() if name != "save_vocab" and is_file(path)}
        beside = {name: os.path.realpath(path) if os.path.islink(path) else path for name, path in beside.items()}
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

    def check_memory(self, coming, ways):
        """See memory.check."""
        self.need = memory.check(coming, ways, self.ctx.params["no_memory_check"])

    def model(self, options, model, training=None, **figures):
        """Keep what options that are settled, the model's config and a Training have other than given, and figures."""
        made = {**options, **dataclasses.asdict(model.config), **(dataclasses.asdict(training) if training else {})}
        self.settings = {name: value for name, value in made.items() if self.ctx.params.get(name, ...) != value}
        self.figures |= dict(seed=model.config.seed, threads=model.config.threads, **figures)

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
        ctx, environment = self.ctx, manifest.environment()
        options = {spelled.lstrip("-"): name for name, spelled in as_given(ctx).items()}
        argv, cpu = ctx.meta["argv"], environment["TIEDTOOLS_CPU"]
        whole = dict(
            tiedtools=environment.pop("tiedtools"),
            command=(f"TIEDTOOLS_CPU={cpu} " if cpu else "") + shlex.join(["tiedtools", *argv]),
            argv=argv,
            directory=os.getcwd(),
            started=self.started.isoformat(timespec="seconds"),
            seconds=round(time.monotonic() - self.began, 3),
            stopped=stopped and (str(stopped) if isinstance(stopped, Exception) else "interrupted"),
            **self.figures,
            memory=dict(estimated_mb=self.need and round(self.need / 1e6), peak_mb=round(memory.peak() / 1e6)),
            inputs=self.sources.found,
            outputs=[self.output(name, done[name]) for name in self.outputs if name in done],
            options={option: ctx.params[name] for option, name in options.items() if name in ctx.params},
            settings=self.settings,
            environment=environment,
        )
        if ctx.obj:
            ctx.obj["manifest"] = whole
        return whole

    def output(self, name, path):
        return dict(option=name.replace("_", "-"), path=path, **(digests.of_file(path) if is_file(path) else {}))

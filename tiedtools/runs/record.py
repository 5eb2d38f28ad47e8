"""Records of training runs, the content of their manifests. `tiedtools rerun` repeats a run from its manifest."""

import dataclasses
import datetime
import os
import shlex
import time
from typing import Any

from tiedtools.base import memory
from tiedtools.files import digests, manifest
from tiedtools.files.output import is_file


@dataclasses.dataclass
class Record:
    """The command line of a run and its results; the training run sets `figures` to `need`.

    argv      arguments after "tiedtools"; empty if called from Python
    options   settings by name, before dependent defaults were filled in
    names     name of a setting -> its option
    inputs    expected input texts, as recorded in a manifest; the first that differs raises TiedtoolsError

    figures   results of the run, in the manifest's order
    settings  all settings of the run by name; the manifest lists only those that differ from `options`
    sources   digests.Recorder of the input texts
    counts    word counts of the vocabulary, from vectors.counts.packed
    need      estimated memory in bytes
    last_manifest  the result of the last `complete`; None before
    """

    argv: list[str] = dataclasses.field(default_factory=list)
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    names: dict[str, str] = dataclasses.field(default_factory=dict)
    inputs: list[dict[str, Any]] | None = None
    figures: dict[str, Any] = dataclasses.field(default_factory=dict)
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    sources: Any = None
    counts: Any = None
    need: int | None = None
    last_manifest: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        self.began, self.started = time.monotonic(), datetime.datetime.now(datetime.timezone.utc)

    def complete(self, stopped: BaseException | None, outputs: dict[str, str]) -> dict[str, Any]:
        """Return the manifest.

        stopped  the exception that stopped the run, or None
        outputs  name -> path of the outputs written
        """
        environment = manifest.environment()
        cpu = environment["TIEDTOOLS_CPU"]
        self.last_manifest = dict(
            tiedtools=environment.pop("tiedtools"),
            command=(f"TIEDTOOLS_CPU={cpu} " if cpu else "") + shlex.join(["tiedtools", *self.argv]),
            argv=self.argv,
            directory=os.getcwd(),
            started=self.started.isoformat(timespec="seconds"),
            seconds=round(time.monotonic() - self.began, 3),
            stopped=stopped and (str(stopped) if isinstance(stopped, Exception) else "interrupted"),
            **self.figures,
            memory=dict(estimated_mb=self.need and round(self.need / 1e6), peak_mb=round(memory.peak() / 1e6)),
            inputs=self.sources.found,
            outputs=[
                dict(option=name.replace("_", "-"), path=path, **(digests.of_file(path) if is_file(path) else {}))
                for name, path in outputs.items()
            ],
            options={self.names.get(name, name).lstrip("-"): value for name, value in self.options.items()},
            settings={name: value for name, value in self.settings.items() if self.options.get(name, ...) != value},
            environment=environment,
            counts=self.counts,
        )
        return self.last_manifest

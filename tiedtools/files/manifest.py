"""Run manifests: JSON files beside outputs that record how to reproduce them and verify the result.

`tiedtools rerun` repeats a run from its manifest.
"""

import dataclasses
import datetime
import functools
import importlib.metadata
import json
import os
import platform
import shlex
import sys
import time
from typing import Any, BinaryIO

from tiedtools.base import memory
from tiedtools.base.errors import TiedtoolsError
from tiedtools.base.processor import available_cores, cpu_setting, processor_name
from tiedtools.base.settings import SPLIT
from tiedtools.base.version import __version__
from tiedtools.files import digests
from tiedtools.files.output import is_file

SUFFIX = ".run.json"
START = b'{\n  "tiedtools": '  # of every manifest
# Options that name an output.
OUTPUTS = "output", "save-model", "save-vocab", "rnnlm", "checkpoint", "log-json", "manifest"
FIGURES = "loss", "valid_loss", "train_ppl", "valid_ppl", "valid_bleu", "test_ppl"
# Types of the manifest values that a rerun reads. [type]: a list; {key: type}: a dict with at least these keys.
FORM = {
    "tiedtools": str,
    "argv": [str],
    "directory": str,
    "stopped": str | None,
    "threads": int,
    "ranks": int | None,
    "inputs": [dict],
    "outputs": [{"option": str}],
    "options": dict.fromkeys((*OUTPUTS, "precision", *SPLIT), str | None),
    "settings": dict.fromkeys(("precision", *SPLIT), str | None),
    "environment": dict,
    **dict.fromkeys(FIGURES, float | int | None),
}
ORIGIN = {"path": str, "sha256": str}


def environment() -> dict[str, Any]:
    """Return the versions and the hardware that the results of a run may depend on."""
    return dict(
        tiedtools=__version__,
        python=platform.python_version(),
        **{name: importlib.metadata.version(name) for name in ("numpy", "numba", "llvmlite")},
        platform=platform.platform(),
        byteorder=sys.byteorder,
        processor=processor_name(),
        cores=available_cores(),
        TIEDTOOLS_CPU=cpu_setting(),
    )


def write(file: BinaryIO, manifest: dict[str, Any]) -> None:
    """Write a manifest, a JSON-serializable dict, to a binary file, with a line per dict item or per dict in a list."""
    dumps, lines = functools.partial(json.dumps, ensure_ascii=False), []
    for name, value in manifest.items():
        text = dumps(value)
        if isinstance(value, dict):
            items = [f"{dumps(key)}: {dumps(item)}" for key, item in value.items()]
            text = "{\n    " + ",\n    ".join(items) + "\n  }"
        elif value and isinstance(value, list) and isinstance(value[0], dict):
            text = "[\n    " + ",\n    ".join(map(dumps, value)) + "\n  ]"
        lines.append(f"  {dumps(name)}: {text}")
    # Non-UTF-8 bytes of a path are written as JSON escapes.
    file.write("{{\n{}\n}}\n".format(",\n".join(lines)).encode("utf-8", "backslashreplace"))


def beside(path: str) -> str:
    """Return the path of the manifest next to an output, or next to the target of a symbolic link."""
    return (os.path.realpath(path) if os.path.islink(path) else path) + SUFFIX


def loads(data: bytes, path: str) -> dict[str, Any]:
    """Parse a manifest from bytes; `path` names the file in errors. Raises TiedtoolsError if it is not a manifest."""
    try:
        manifest: dict[str, Any] = json.loads(data)
        wrong = [name for name, form in FORM.items() if not fits(manifest.get(name), form)]
        if manifest.get("origin") is not None and not fits(manifest["origin"], ORIGIN):
            wrong.append("origin")
    except (ValueError, AttributeError, RecursionError):
        wrong = ["JSON"]
    if wrong:
        what = f"not a run manifest, or corrupt (no {wrong[0]})"
        raise TiedtoolsError(f"{path}: {what}; give the {SUFFIX} file of an output")
    return manifest


def fits(value: Any, form: Any) -> bool:
    """Return whether a JSON value has a type, in the notation of FORM."""
    if isinstance(form, list):
        return isinstance(value, list) and all(fits(item, form[0]) for item in value)
    if isinstance(form, dict):
        return isinstance(value, dict) and all(fits(value.get(name), inner) for name, inner in form.items())
    return isinstance(value, form)


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
        self.directory = os.getcwd()  # which may be removed during the run

    def complete(self, stopped: BaseException | None, outputs: dict[str, str]) -> dict[str, Any]:
        """Return the manifest.

        stopped  the exception that stopped the run, or None
        outputs  name -> path of the outputs written
        """
        machine = environment()
        cpu = machine["TIEDTOOLS_CPU"]
        digest = lambda path: digests.of_file(path) if is_file(path) and os.path.exists(path) else {}
        self.last_manifest = dict(
            tiedtools=machine.pop("tiedtools"),
            command=(f"TIEDTOOLS_CPU={cpu} " if cpu else "") + shlex.join(["tiedtools", *self.argv]),
            argv=self.argv,
            directory=self.directory,
            started=self.started.isoformat(timespec="seconds"),
            seconds=round(time.monotonic() - self.began, 3),
            stopped=stopped and (str(stopped) if isinstance(stopped, Exception) else "interrupted"),
            **self.figures,
            memory=dict(estimated_mb=self.need and round(self.need / 1e6), peak_mb=round(memory.peak() / 1e6)),
            inputs=self.sources.found,
            outputs=[dict(option=name.replace("_", "-"), path=path, **digest(path)) for name, path in outputs.items()],
            options={self.names.get(name, name).lstrip("-"): value for name, value in self.options.items()},
            settings={name: value for name, value in self.settings.items() if self.options.get(name, ...) != value},
            environment=machine,
            counts=self.counts,
        )
        return self.last_manifest

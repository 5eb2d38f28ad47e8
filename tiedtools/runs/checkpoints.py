"""Checkpoints: the complete state of a training run, written atomically, from which an interrupted run resumes."""

import contextlib
import dataclasses
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tiedtools.base import interrupts
from tiedtools.base.errors import TiedtoolsError, brief
from tiedtools.base.messages import log
from tiedtools.base.version import __version__
from tiedtools.files import modelfile
from tiedtools.files.modelfile import Arrays
from tiedtools.files.output import open_output
from tiedtools.text.vocab import Vocab


class Checkpoint:
    """The checkpoint file of one training run.

    path      path of the file; the previous checkpoint stays intact until the new one is fully on disk
    identity  dict that must match for the run to resume; see the function `identity`
    vocab     the Vocab of the run
    minutes   interval in minutes after which `due` is true; 0: never
    configs   dataclasses of the options; a checkpoint that lacks an option was written with its default
    """

    def __init__(self, path: str, identity: dict[str, Any], vocab: Vocab, minutes: float, configs: list[Any]) -> None:
        self.defaults = {field.name: field.default for config in configs for field in dataclasses.fields(config)}
        self.path, self.identity, self.vocab, self.minutes = path, identity, vocab, minutes
        self.written = time.monotonic()

    @property
    def due(self) -> bool:
        """Whether the interval has elapsed or a signal asks the run to stop."""
        return bool(interrupts.pending() or self.minutes and time.monotonic() - self.written >= 60 * self.minutes)

    def write(self, progress: dict[str, Any], arrays: Arrays) -> None:
        """Write the checkpoint. `progress` is a JSON-serializable dict. Raises TiedtoolsError if writing fails."""
        config, arrays = dict(identity=self.identity, progress=progress), dict(arrays, counts=self.vocab.counts)
        with open_output(self.path, self.put) as file:
            modelfile.save(file, modelfile.CHECKPOINT, config, self.vocab.words, arrays)
        self.written = time.monotonic()

    def put(self, partial: str, target: str) -> None:
        """Replace the checkpoint, unless another run, started at the same time, has written it."""
        saved = None
        with contextlib.suppress(TiedtoolsError, *modelfile.WRONG):
            saved = modelfile.read_header(target, modelfile.CHECKPOINT)["config"]["identity"]
        for problem, _ in self.differences(saved) if saved else ():
            what = f"belongs to another run that was started meanwhile ({problem})"
            raise TiedtoolsError(f"{self.path}: {what}; give each run its own `checkpoint`")
        os.replace(partial, target)

    def attempt(self, progress: dict[str, Any], arrays: Arrays) -> None:
        """Write the checkpoint, but only log a warning on failure, so that the run is not lost."""
        try:
            self.write(progress, arrays)
        except TiedtoolsError as error:
            self.written = time.monotonic()  # the next attempt is not due at once
            log.warning(f"checkpoint not written: {error}")

    def read(self, check: Callable[[dict[str, Any], Arrays], object]) -> tuple[dict[str, Any], Arrays]:
        """Read the checkpoint and return (progress, arrays), validated by check(progress, arrays).

        Raises TiedtoolsError if the file is not a checkpoint, is corrupt (`check` raises KeyError or ValueError), or
        was written by an incompatible version or by a run with other options, texts, or vocabulary.
        """
        with modelfile.report_corrupt(self.path, modelfile.CHECKPOINT):
            header, words, arrays = modelfile.load(self.path, modelfile.CHECKPOINT)
            if header["kind"] != modelfile.CHECKPOINT:
                problem = f"is a model ({brief(header['kind'])}), not a checkpoint; give one written by `checkpoint`"
                raise TiedtoolsError(f"{self.path}: {problem}")
            if header["version"] != __version__:
                version = f"written by tiedtools {brief(header['version'])}; this is {__version__}"
                raise self.other(version, "that version")
            saved, progress = header["config"]["identity"], header["config"]["progress"]
            same_words = words == self.vocab.words and np.array_equal(arrays.pop("counts"), self.vocab.counts)
            for problem, needed in self.differences(saved, same_words):
                raise self.other(problem, needed)
            check(progress, arrays)
        return progress, arrays

    def differences(self, saved: dict[str, Any], same_words: bool = True) -> Iterator[tuple[str, str]]:
        """Yield (problem, what is needed to resume) for each difference of the identity of another run."""
        options, own = saved["options"], self.identity["options"]
        if (mpi := options.get("mpi")) != own.get("mpi"):
            required = "an MPI launcher" if mpi else "one process and no launcher"
            yield f"was created with{'' if mpi else 'out'} MPI", required
        valid, own_valid = (bool(run["texts"].get("validation text")) for run in (saved, self.identity))
        for name in {**options, **own}:
            was, now = (values.get(name, self.defaults.get(name)) for values in (options, own))
            if was != now and name == "kind":
                yield f"was created with another command or kind of run: {brief(was)}, not {now}", "that command"
            elif was != now and valid != own_valid:  # other options may follow from it
                yield f"was created with{'' if valid else 'out'} a validation text", "the same texts and options"
            elif was != now:
                created = f"without `{brief(name)}`" if was is None else f"with `{brief(name)}={brief(was)}`"
                now = "none" if now is None else f"`{name}={now}`" if isinstance(now, bool) else now
                yield f"was created {created}; this run has {now}", "the options of the checkpoint"
        changed = [name for name, now in self.identity["texts"].items() if saved["texts"].get(name, "") != now]
        for name in [*["vocabulary"] * (not same_words), *changed]:
            yield f"was created with a different {name}", "the same texts and options"

    def other(self, problem: str, needed: str) -> TiedtoolsError:
        """Return the TiedtoolsError for a checkpoint of another run; `needed`: conditions to resume from it."""
        return TiedtoolsError(f"{self.path}: {problem}; resume with {needed}, or start over with another `checkpoint`")


def recorded(path: str, name: str) -> Any:
    """Return a setting of the run that wrote a checkpoint; None if the file does not contain it."""
    return modelfile.read_header(path, modelfile.CHECKPOINT)["config"].get("identity", {}).get("options", {}).get(name)


def digest(ids: Any) -> str:
    """Return a hash of an array, such as int32 IDs, or of an iterable of arrays; "" for None."""
    if ids is None:
        return ""
    hashed = hashlib.blake2b(digest_size=16)
    for part in [ids] if isinstance(ids, np.ndarray) else ids:
        hashed.update(np.ascontiguousarray(part).data)
    return hashed.hexdigest()


def identity(options: dict[str, Any], **texts: Any) -> dict[str, Any]:
    """Return the JSON-serializable dict that must match for a run to resume.

    texts  name -> IDs, an argument of `digest`
    """
    texts = {name.replace("_", " "): digest(ids) for name, ids in texts.items()}
    # As read from a checkpoint: JSON turns tuples into lists.
    return json.loads(json.dumps(dict(options=options, texts=texts)))


def check_progress(
    progress: dict[str, Any], types: dict[str, Any], epochs: int, figures: dict[str, Any],
    optional: dict[str, Any] | None = None,
) -> None:  # fmt: skip
    """Raise one of modelfile.WRONG unless `progress` has all fields, with the right types and no negative number.

    types    types of the fields by name
    epochs   maximum number of epochs in `history`
    figures  types of the figures of each epoch in `history`, by name
    optional types of figures that may be missing, by name
    """
    for types_of, values in [(types, progress), *((figures, epoch) for epoch in progress["history"])]:
        modelfile.check_types(types_of | (optional or {}), values)
        if missing := types_of.keys() - values.keys():
            raise ValueError(f"missing {', '.join(sorted(missing))}")
    if min(progress[name] for name, kind in types.items() if kind in (int, float)) < 0:
        raise ValueError("negative value")
    if len(progress["history"]) > epochs:
        raise ValueError("inconsistent epoch count")


def check_arrays(arrays: Arrays, like: Arrays) -> None:
    """Raise one of modelfile.WRONG unless `arrays` matches `like` in names, shapes, and types, and is finite."""
    for name, expected in like.items():
        if arrays[name].shape != expected.shape or arrays[name].dtype != expected.dtype:
            raise ValueError(f"{name} does not have the shape and type of this model's")
    if not all(np.isfinite([array.min(initial=0), array.max(initial=0)]).all() for array in arrays.values()):
        raise ValueError("nan or infinite values")

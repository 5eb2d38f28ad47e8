"""Checkpoints: a training run on disk, whole at every moment, from which it goes on as if it had never stopped."""

import hashlib
import json
import time

import numpy as np

from tiedtools import __version__, interrupts
from tiedtools.errors import TiedtoolsError, brief
from tiedtools.files import modelfile
from tiedtools.files.output import open_output
from tiedtools.messages import log

COMPATIBLE = {"0.1.0", __version__}  # versions whose checkpoints this one continues


class Checkpoint:
    """The checkpoint of one run.

    path      its file; it keeps what it had until all of the next one is on the disk
    identity  what must be the same for a run to go on, as `identity` makes it
    vocab     the Vocab of the run
    minutes   after which `due` says that it is time for the next; 0: never
    """

    def __init__(self, path, identity, vocab, minutes):
        self.path, self.identity, self.vocab, self.minutes = path, identity, vocab, minutes
        self.written = time.monotonic()

    @property
    def due(self):
        """Whether it is time, or somebody wants the run to stop."""
        return bool(interrupts.received or self.minutes and time.monotonic() - self.written >= 60 * self.minutes)

    def write(self, progress, arrays):
        """`progress` is a dict that JSON can hold. Raises TiedtoolsError where it cannot be written."""
        config, arrays = dict(identity=self.identity, progress=progress), dict(arrays, counts=self.vocab.counts)
        with open_output(self.path) as file:
            modelfile.save(file, modelfile.CHECKPOINT, config, self.vocab.words, arrays)
        self.written = time.monotonic()

    def attempt(self, progress, arrays):
        """Write it, or tell that it could not be: no reason to lose the run."""
        try:
            self.write(progress, arrays)
        except TiedtoolsError as error:
            log.warning(f"no checkpoint: {error}")

    def read(self, check):
        """Returns (progress, arrays), which check(progress, arrays) has found to be those of such a run.

        Raises TiedtoolsError where the file is none, where it is damaged, so that `check` raises KeyError or
        ValueError, and where it is of another version, configuration or text than this run's.
        """
        with modelfile.sound(self.path, modelfile.CHECKPOINT):
            progress, arrays = self.own()
            check(progress, arrays)
        return progress, arrays

    def own(self):
        """(progress, arrays) of the file, if it is of this run."""
        header, words, arrays = modelfile.load(self.path, modelfile.CHECKPOINT)
        if header["kind"] != modelfile.CHECKPOINT:
            raise TiedtoolsError(
                f"{self.path}: a model ({brief(header['kind'])}), not a checkpoint; give a file written by `checkpoint`"
            )
        if header["version"] not in COMPATIBLE:
            version = f"written by tiedtools {brief(header['version'])}, and this is {__version__}"
            raise self.other(version, "that version")
        theirs, progress = header["config"]["identity"], header["config"]["progress"]
        theirs["options"] = modelfile.renamed(theirs["options"])
        for epoch in progress["history"]:
            if "tokens_per_s" in epoch:  # before it was called words_per_s everywhere
                epoch["words_per_s"] = epoch.pop("tokens_per_s")
        for name in {**theirs["options"], **self.identity["options"]}:
            was, now = (side["options"].get(name) for side in (theirs, self.identity))
            if was != now:
                problem = f"was created with `{brief(name)}={brief(was)}`, this run has {now}"
                raise self.other(problem, "the options of the checkpoint")
        differ = [name for name, now in self.identity["texts"].items() if theirs["texts"][name] != now]
        if words != self.vocab.words or not np.array_equal(arrays.pop("counts"), self.vocab.counts):
            differ.insert(0, "vocabulary")
        if differ:
            raise self.other(f"was created with another {differ[0]}", "the same texts and options")
        return progress, arrays

    def other(self, problem, wanted):
        """The TiedtoolsError for a checkpoint of another run; `wanted`: with what its own would go on."""
        return TiedtoolsError(f"{self.path}: {problem}; resume with {wanted}, or start anew with another `checkpoint`")


def digest(ids):
    """A hash of int32 ids, in any number of arrays; of None, too."""
    if ids is None:
        return ""
    found = hashlib.blake2b(digest_size=16)
    for part in ids:
        found.update(np.ascontiguousarray(part).data)
    return found.hexdigest()


def identity(options, **texts):
    """What must be the same for a run to go on: a dict that JSON can hold.

    options  a dict
    texts    name -> ids, as of `digest`
    """
    texts = {name.replace("_", " "): digest(ids) for name, ids in texts.items()}
    # As it will be when it is read again: a list for a tuple.
    return json.loads(json.dumps(dict(options=options, texts=texts)))


def check_progress(progress, types, epochs, figures):
    """Raise one of modelfile.WRONG unless `progress` is what a run tells of itself, no number of it negative.

    types    of what it has to tell, by name; in `history` the figures of each epoch, of which `figures` has the types
    epochs   that there are at most
    """
    for types_of, values in [(types, progress), *((figures, epoch) for epoch in progress["history"])]:
        modelfile.check_types(types_of, values)
        if missing := types_of.keys() - values.keys():
            raise ValueError(f"it does not tell {', '.join(sorted(missing))}")
    if min(progress[name] for name, kind in types.items() if kind in (int, float)) < 0:
        raise ValueError("a figure is negative")
    if len(progress["history"]) > epochs:
        raise ValueError("its epochs cannot be")


def check_arrays(arrays, like):
    """Raise one of modelfile.WRONG unless a dict of arrays, all finite, has those of `like`, by shape and type."""
    for name, wanted in like.items():
        if arrays[name].shape != wanted.shape or arrays[name].dtype != wanted.dtype:
            raise ValueError(f"{name} has other numbers than such a model")
    if not all(np.isfinite(array).all() for array in arrays.values()):
        raise ValueError("it has values that are nan or infinite")

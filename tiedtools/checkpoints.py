"""Checkpoints: a training run on disk, whole at every moment, from which it goes on as if it had never stopped."""

import hashlib
import json
import time

import numpy as np

from tiedtools import __version__, interrupts, modelfile
from tiedtools.errors import TiedtoolsError, brief
from tiedtools.output import open_output
from tiedtools.report import say

KIND = "checkpoint"


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
        write(self.path, self.identity, progress, self.vocab, arrays)
        self.written = time.monotonic()

    def attempt(self, report, progress, arrays):
        """Write it, or tell that it could not be: no reason to lose the run."""
        try:
            self.write(progress, arrays)
        except TiedtoolsError as error:
            report.pause()
            say(f"no checkpoint: {error}")

    def read(self, check):
        """Returns (progress, arrays), which check(progress, arrays) has found to be those of such a run.

        Raises TiedtoolsError as `read`, and where `check` raises KeyError or ValueError.
        """
        with modelfile.sound(self.path):
            progress, arrays = read(self.path, self.identity, self.vocab)
            check(progress, arrays)
        return progress, arrays


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
    return json.loads(json.dumps(dict(options=options, texts=texts)))


def write(path, identity, progress, vocab, arrays):
    """As Checkpoint.write."""
    with open_output(path) as file:
        config = dict(identity=identity, progress=progress)
        modelfile.save(file, KIND, config, vocab.words, dict(arrays, counts=vocab.counts))


def read(path, identity, vocab):
    """Returns (progress, arrays) of a checkpoint.

    Raises TiedtoolsError where it is none, or one of another version, configuration or text than this run's.
    """
    header, words, arrays = modelfile.load(path)
    if header["kind"] != KIND:
        raise TiedtoolsError(
            f"{path}: a model file ({brief(header['kind'])}), not a checkpoint: name what --checkpoint wrote"
        )
    if header["version"] != __version__:
        raise TiedtoolsError(
            f"{path}: written by tiedtools {brief(header['version'])}, and this is {__version__}:"
            " resume with that version, or begin anew under another --checkpoint"
        )
    theirs, progress = header["config"]["identity"], header["config"]["progress"]
    for name in {**theirs["options"], **identity["options"]}:
        was, now = (side["options"].get(name) for side in (theirs, identity))
        if was != now:
            raise TiedtoolsError(
                f"{path}: begun with {brief(name.replace('_', '-'))} {brief(was)}, not {now}: resume with the options"
                " it was begun with, or begin anew under another --checkpoint"
            )
    texts = {name: theirs["texts"][name] != now for name, now in identity["texts"].items()}
    same = words == vocab.words and np.array_equal(arrays.pop("counts"), vocab.counts)
    other = [*([] if same else ["vocabulary"]), *(name for name in texts if texts[name])]
    if other:
        raise TiedtoolsError(
            f"{path}: begun with another {other[0]}: resume with the same texts,"
            " or begin anew under another --checkpoint"
        )
    return progress, arrays

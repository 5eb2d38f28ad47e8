"""Checkpoints: a training run on disk, whole at every moment, from which it goes on as if it had never stopped."""

import dataclasses
import hashlib
import json

import numpy as np

from tiedtools import __version__, modelfile
from tiedtools.errors import TiedtoolsError
from tiedtools.output import open_output

KIND = "checkpoint"


def digest(ids):
    """A hash of int32 ids; of None, too."""
    return "" if ids is None else hashlib.blake2b(np.ascontiguousarray(ids), digest_size=16).hexdigest()


def identity(model, training, train_ids, valid_ids):
    """What must be the same for a run to go on: a dict that JSON can hold."""
    options = {"kind": model.kind, **dataclasses.asdict(model.config), **dataclasses.asdict(training)}
    # What does not change the numbers of a thread, or only how many there will be.
    free = dict.fromkeys(("threads", "checkpoint_minutes"), True)
    free.update(epochs=training.sessions == 1, min_improvement=training.schedule != "halving")
    options = {name: value for name, value in options.items() if not free.get(name)}
    texts = {"training text": digest(train_ids), "validation text": digest(valid_ids)}
    return json.loads(json.dumps(dict(options=options, texts=texts)))


def write(path, identity, progress, vocab, arrays):
    """Write a checkpoint; `path` keeps what it had until all is on the disk. `progress` is a dict that JSON can hold.

    Raises TiedtoolsError where it cannot be written.
    """
    with open_output(path) as file:
        config = dict(identity=identity, progress=progress)
        modelfile.save(file, KIND, config, vocab.words, dict(arrays, counts=vocab.counts))


def read(path, identity, vocab):
    """Returns (progress, arrays) of a checkpoint.

    Raises TiedtoolsError where it is none, or one of another version, configuration or text than this run's.
    """
    header, words, arrays = modelfile.load(path)
    if header["kind"] != KIND:
        raise TiedtoolsError(f"{path}: a model file ({header['kind']}), not a checkpoint: name what --checkpoint wrote")
    if header["version"] != __version__:
        raise TiedtoolsError(
            f"{path}: written by tiedtools {header['version']}, and this is {__version__}:"
            " resume with that version, or begin anew under another --checkpoint"
        )
    theirs, progress = header["config"]["identity"], header["config"]["progress"]
    for name in {**theirs["options"], **identity["options"]}:
        was, now = (side["options"].get(name) for side in (theirs, identity))
        if was != now:
            raise TiedtoolsError(
                f"{path}: begun with {name.replace('_', '-')} {was}, not {now}: resume with the options it was begun"
                " with, or begin anew under another --checkpoint"
            )
    texts = {name: theirs["texts"][name] != now for name, now in identity["texts"].items()}
    other = [*(["vocabulary"] if words != vocab.words else []), *(name for name in texts if texts[name])]
    if other:
        raise TiedtoolsError(
            f"{path}: begun with another {other[0]}: resume with the same texts,"
            " or begin anew under another --checkpoint"
        )
    arrays.pop("counts")
    return progress, arrays

"""Model files: one .npz of named arrays, words and a JSON header; data only, no code."""

import json

import numpy as np

from tiedtools import __version__
from tiedtools.errors import TiedtoolsError

FORMAT = 1


def save(file, kind, config, words, arrays):
    """Write a model to a binary file.

    kind    what made it, such as "word2vec"
    config  a dict that JSON can hold
    words   list of V strings without newlines
    arrays  name -> NumPy array
    """
    header = dict(format=FORMAT, kind=kind, version=__version__, config=config)
    text = lambda s: np.frombuffer(s.encode(), np.uint8)
    np.savez(file, header=text(json.dumps(header)), words=text("\n".join(words)), **arrays)


def load(path):
    """Read a model file: (header dict, words, dict of arrays). Raises TiedtoolsError where it is none."""
    header, arrays = read(path, lambda archive: archive.files)
    return header, take_words(path, arrays), arrays


def take_words(path, arrays):
    """The words, no more among the arrays of a file then."""
    try:
        return arrays.pop("words").tobytes().decode().split("\n")
    except (KeyError, ValueError) as error:
        raise damaged(path, error) from None


def rebuild(path, kind, make):
    """The model in a file: make(config, words, arrays), of which whatever it raises tells of damage.

    Raises TiedtoolsError where the file is none of this kind.
    """
    header, words, arrays = load(path)
    if header.get("kind") != kind:
        raise TiedtoolsError(f"{path}: a model of kind {header.get('kind')}, not {kind}")
    try:
        return make(header["config"], words, arrays)
    except (KeyError, TypeError, ValueError, TiedtoolsError) as error:
        raise TiedtoolsError(f"{path}: a damaged model file ({type(error).__name__}: {error})") from None


def kind(path):
    """What made a model file, without reading its arrays: None where it does not say. Raises as `load`."""
    return read(path, lambda archive: ["header"])[0].get("kind")


def damaged(path, error):
    return TiedtoolsError(f"{path}: no tiedtools model file, or damaged ({type(error).__name__})")


def read(path, names):
    """(header, dict of the arrays names(archive) but for it)."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in names(archive)}
        header = json.loads(arrays.pop("header").tobytes())
    except FileNotFoundError:
        raise TiedtoolsError(f"{path}: no such file") from None
    except MemoryError:
        raise
    except Exception as error:  # whatever a damaged archive makes NumPy raise
        raise damaged(path, error) from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise TiedtoolsError(f"{path}: a model of another format; this is tiedtools {__version__}, format {FORMAT}")
    return header, arrays

"""Model files: one .npz of named arrays, words and a JSON header; data only, no code."""

import contextlib
import json
import os
import typing
import zipfile

import numpy as np

from tiedtools import __version__, npy
from tiedtools.errors import TiedtoolsError, brief, unreadable

FORMAT = 1
LARGEST = 1e300  # number in a header
WRONG = AttributeError, KeyError, TypeError, ValueError, OverflowError  # what damaged values make others raise


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
    header, arrays = read(path)
    return header, take_words(path, arrays), arrays


def take_words(path, arrays):
    """The words, no more among the arrays of a file then."""
    try:
        return as_bytes(arrays.pop("words")).decode().split("\n")
    except (KeyError, ValueError) as error:
        raise damaged(path, error) from None


def rebuild(path, kind, make):
    """The model in a file: make(config, words, arrays), of which whatever it raises tells of damage.

    Raises TiedtoolsError where the file is none of this kind.
    """
    header, words, arrays = load(path)
    if header.get("kind") != kind:
        raise TiedtoolsError(f"{path}: a model of kind {brief(header.get('kind'))}, not {kind}")
    try:
        return make(header["config"], words, arrays)
    except (*WRONG, TiedtoolsError) as error:
        raise TiedtoolsError(f"{path}: a damaged model file ({type(error).__name__}: {brief(error)})") from None


def configured(kind, config):
    """The configuration, a dataclass `kind`, of a header. ValueError or TypeError where its values have other types."""
    check_types(typing.get_type_hints(kind), config)
    return kind(**config)


def check_types(types, values):
    """Raise ValueError unless each of the values, a dict, has the type of its name, and numbers are finite."""
    for name, value in values.items():
        allowed = typing.get_args(types[name]) or (types[name],)
        allowed += (int,) * (float in allowed)
        if type(value) not in allowed or isinstance(value, (int, float)) and not abs(value) < LARGEST:
            raise ValueError(f"{name} is {value!r}")


def kind(path):
    """What made a model file, without reading its arrays: None where it does not say. Raises as `load`."""
    return read(path, {"header"})[0].get("kind")


@contextlib.contextmanager
def sound(path):
    """A block in which a wrong value, or none, tells that the file is damaged."""
    try:
        yield
    except WRONG as error:
        raise damaged(path, error) from None


def damaged(path, error):
    return TiedtoolsError(
        f"{path}: no tiedtools model file, or damaged ({type(error).__name__}: {brief(error)}); name a whole one"
    )


def read(path, names=None):
    """(header, dict of the other arrays): all, or those of the set `names` that are there. Raises as `load`."""
    try:
        opened = open(path, "rb")
    except OSError as error:
        raise unreadable(path, error) from None
    try:
        with opened as file, zipfile.ZipFile(file) as archive:
            members = stored(archive, os.fstat(file.fileno()).st_size)
            arrays = {}
            for name, info in members.items():
                if names is None or name in names:
                    with archive.open(info) as member:
                        arrays[name] = npy.read(member, info.file_size)
        header = json.loads(as_bytes(arrays.pop("header")))
    except MemoryError:
        raise
    except Exception as error:  # whatever a damaged archive makes zipfile and json raise
        raise damaged(path, error) from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise TiedtoolsError(f"{path}: a model of another format; this is tiedtools {__version__}, format {FORMAT}")
    if not isinstance(header.get("config"), dict):
        raise damaged(path, ValueError("its header has no config"))
    return header, arrays


def stored(archive, size):
    """dict: name -> ZipInfo of an archive of `size` bytes. ValueError unless all is there, once and uncompressed."""
    members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
    if len(members) < len(archive.infolist()):
        raise ValueError("an array comes twice")
    if any(info.compress_type != zipfile.ZIP_STORED for info in members.values()):
        raise ValueError("it is compressed; write it with numpy.savez")
    if sum(info.file_size for info in members.values()) > size:
        raise ValueError("its arrays are larger than the file")
    return members


def as_bytes(array):
    if array.dtype != np.uint8 or array.ndim != 1:
        raise ValueError(f"text is an array of {array.dtype}")
    return array.tobytes()

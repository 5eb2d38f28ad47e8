"""Model files: an .npz archive of named arrays, the words, and a JSON header; data only, no code.

Memory is allocated only for data that is present.
"""

import contextlib
import functools
import json
import math
import os
import pkgutil
import re
import struct
import typing
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import SimpleNamespace
from typing import IO, Any, BinaryIO, TypeVar

import numpy as np

from tiedtools.base.errors import TiedtoolsError, brief, quoted, unreadable
from tiedtools.base.processor import available_cores
from tiedtools.base.version import __version__
from tiedtools.files.families import FAMILIES, LANGUAGE, TRANSLATION, commands

T = TypeVar("T")
Arrays = dict[str, np.ndarray]  # arrays by name
BLOCK = 1 << 20
FIELD = r"\s*'(descr|fortran_order|shape)'\s*:\s*('[<>|=]?[fiu](?:1|2|4|8|12|16)'|True|False|\([\d\sL,]*\))\s*"
NPY = re.compile(rf"\{{{FIELD},{FIELD},{FIELD},?\s*\}}\s*", re.ASCII)  # header of an .npy array: numpy.lib.format
MAX_NPY = 10_000  # NumPy's own limit on its length
FORMAT = 1
CHECKPOINT = "checkpoint"  # `kind` in a checkpoint's header
MAGIC = b"PK\x03\x04"  # of zip archives
RNNLM = "rnnlm"  # kind of the models in the files of rnnlm
RNNLM_MAGIC = re.compile(rb"version: *\d+\r?\n")  # of the model files of rnnlm
LONGEST_MAGIC = 16
FILE_KINDS = {  # kind of file -> (its name in messages, the setting or program that writes it)
    "model": ("a tiedtools model", "`save_model`"),
    CHECKPOINT: ("a tiedtools checkpoint", "`checkpoint`"),
    "runs": ("a file of runs", "`tiedtools w2v --runs N`"),
    "rnnlm model": ("a model of rnnlm", "rnnlm"),
}
LARGEST = 1e300  # limit on numbers in a header
LARGEST_SETTING = 1e30  # limit on numbers in a configuration, safe for float32
WRONG = AttributeError, EOFError, KeyError, TypeError, ValueError, OverflowError, zipfile.BadZipFile  # of corrupt files


def save(
    file: BinaryIO, kind: str, config: dict[str, Any], words: Iterable[str], arrays: Mapping[str, Any],
    settings: dict[str, Any] | None = None,
) -> None:  # fmt: skip
    """Write a model to a binary file.

    kind      kind of model, such as "word2vec"
    config    JSON-serializable dict
    words     V words without newlines
    arrays    name -> array
    settings  JSON-serializable, the other settings of training; see Trainer.settings
    """
    header = dict(format=FORMAT, kind=kind, version=__version__, config=config, settings=settings or {})
    # Without `tell`, zipfile does not go back to fill in sizes, which fails on devices and files open for appending.
    file = SimpleNamespace(read=file.read, write=file.write, flush=file.flush)
    np.savez(file, header=as_array(json.dumps(header)), words=as_array("\n".join(words)), **arrays)


def pack(name: str, header: Any, arrays: Arrays) -> Arrays:
    """Return a part of a model, a JSON-serializable header and arrays by name, as arrays for `save`."""
    return {name: as_array(json.dumps(header)), **{f"{name}.{key}": array for key, array in arrays.items()}}


def unpack(name: str, arrays: Arrays) -> tuple[Any, Arrays]:
    """Remove a part, packed by `pack`, from the arrays of a file, and return its header and arrays."""
    part = {key: arrays.pop(key) for key in list(arrays) if key.startswith(f"{name}.")}
    return json.loads(as_bytes(arrays.pop(name))), {key.removeprefix(f"{name}."): part[key] for key in part}


def is_model(path: str) -> bool:
    """Return whether a file is named .npz, or starts like a model file of tiedtools or rnnlm."""
    return path.endswith(".npz") or first_bytes(path).startswith(MAGIC) or is_rnnlm(path)


def is_rnnlm(path: str) -> bool:
    """Return whether a regular file starts like a model file of Mikolov's rnnlm."""
    return RNNLM_MAGIC.match(first_bytes(path)) is not None


def first_bytes(path: str) -> bytes:
    """Return the bytes that identify a model file; empty for a missing file, or a pipe, which cannot be read twice."""
    if os.path.isfile(path):
        with contextlib.suppress(OSError), open(path, "rb") as file:
            return file.read(LONGEST_MAGIC)
    return b""


def load(path: str, expected: str = "model") -> tuple[dict[str, Any], list[str], Arrays]:
    """Read the header, words, and arrays of a model file or checkpoint. Raises TiedtoolsError for other files."""
    header, arrays = read(path, expected=expected)
    return header, take_words(path, arrays, expected), arrays


def take_words(path: str, arrays: Arrays, expected: str = "model", name: str = "words") -> list[str]:
    """Remove the words, the array `name`, from the arrays of a file and return them."""
    with report_corrupt(path, expected):
        return as_bytes(arrays.pop(name)).decode().split("\n")


class Stored:
    """Base class of models that are saved in files.

    kind      kind of model in the header of its file
    settings  settings of training that the configuration lacks; see Trainer.settings

    A subclass defines of_file(config, words, arrays), which returns the model.
    """

    kind: str
    settings: dict[str, Any] | None = None
    of_file: Callable[..., Any]

    @classmethod
    def load(cls, path: str, threads: int | None = None) -> Any:
        """Read a model file. threads: number of threads; None: all cores, regardless of the number in training.

        Raises TiedtoolsError if the file is not a model of this kind, or is corrupt, as shown by an error in `of_file`.
        """
        header, words, arrays = load(path)
        refuse_checkpoint(path, header.get("kind"))
        if header.get("kind") != cls.kind:
            kind = quoted(str(header.get("kind")))
            raise TiedtoolsError(f"{path}: is a model of kind {kind}; give one of kind {cls.kind}")
        try:
            model = cls.of_file({**header["config"], "threads": threads or available_cores()}, words, arrays)
            model.settings = dict(header["settings"])
            return model
        except (*WRONG, TiedtoolsError) as error:
            raise corrupt(path, error) from None


def refuse_checkpoint(path: str, kind: object) -> None:
    """Raise TiedtoolsError if a file that must be a model has the `kind` of a checkpoint."""
    if kind == CHECKPOINT:
        remedy = "rerun the command that wrote it with `resume` `save_model=FILE`, and give that FILE"
        raise TiedtoolsError(f"{path}: is a checkpoint, not a model; {remedy}")


def configured(dataclass: Callable[..., T], config: dict[str, Any]) -> T:
    """Return a header's configuration as a dataclass. Raises ValueError or TypeError for values of wrong types."""
    check_types(typing.get_type_hints(dataclass), config)
    for name, value in config.items():
        if isinstance(value, float) and abs(value) > LARGEST_SETTING:
            raise ValueError(f"{name} is {value!r}")
    return dataclass(**config)


def check_types(types: dict[str, Any], values: dict[str, Any]) -> None:
    """Raise ValueError unless each item of the dict `values` has its type in `types` and numbers are finite."""
    for name, value in values.items():
        allowed = typing.get_args(types[name]) or (types[name],)
        allowed += (int,) * (float in allowed)
        if type(value) not in allowed or isinstance(value, (int, float)) and not abs(value) < LARGEST:
            raise ValueError(f"{name} is {value!r}")


def kind(path: str) -> str | None:
    """Return the kind of model in a file of tiedtools or rnnlm, without reading arrays; None if the header has no kind.

    Raises the errors of `load`.
    """
    expected = "runs" if os.fspath(path).endswith(".runs") else "model"
    return RNNLM if is_rnnlm(path) else read_header(path, expected).get("kind")


def load_model(path: str, threads: int | None = None, says: str | None = None) -> Any:
    """Read a model of any kind from a model file of tiedtools or of Mikolov's rnnlm.

    threads  number of threads to use; None: all cores
    says     what its family must be called, such as LANGUAGE; None: a model of any family

    Raises TiedtoolsError if the file does not hold such a model.
    """
    name = str(kind(path))
    refuse_checkpoint(path, name)
    if name not in FAMILIES:
        says = says or LANGUAGE
        raise TiedtoolsError(f"{path}: is a model of kind {quoted(name)}, not {says}; use {commands(says)}")
    family = FAMILIES[name]
    if says not in (None, family.says):
        raise TiedtoolsError(f"{path}: is {family.says}, not {says}; give a model of {commands(str(says))}")
    load = pkgutil.resolve_name("tiedtools.models.rnnlm.program:read") if is_rnnlm(path) else family.get("model").load
    return load(path, threads)


load_language_model = functools.partial(load_model, says=LANGUAGE)
load_translator = functools.partial(load_model, says=TRANSLATION)


@contextlib.contextmanager
def report_corrupt(path: str, expected: str = "model") -> Iterator[None]:
    """Raise TiedtoolsError, for a corrupt file, if the block finds wrong or missing values."""
    try:
        yield
    except TiedtoolsError:
        raise
    except WRONG as error:
        raise corrupt(path, error, expected) from None


def corrupt(path: str, error: BaseException, expected: str = "model") -> TiedtoolsError:
    """Return the TiedtoolsError for a file that is corrupt or not of the kind `expected`, a key of FILE_KINDS."""
    reason = f"it has no {brief(error)}" if isinstance(error, KeyError) else brief(error) or type(error).__name__
    if isinstance(error, TiedtoolsError):  # names settings of the file, not command-line options
        reason = re.sub(r"(?<![\w-])--?(?=[a-z])", "", reason)
    name, writer = FILE_KINDS[expected]
    reason = reason.replace("File is not a zip file", "no .npz archive")
    return TiedtoolsError(f"{path}: not {name}, or corrupt ({reason}); give an undamaged file written by {writer}")


def read(path: str, names: set[str] | None = None, expected: str = "model") -> tuple[dict[str, Any], Arrays]:
    """Read the header and all arrays, or the arrays `names`, of a file. Raises the errors of `load`."""
    if path == "-":
        raise TiedtoolsError("standard input: models can only be read from a file; give the name of a file")
    try:
        binary = open(path, "rb")
    except OSError as error:
        raise unreadable(path, error) from None
    try:
        with binary as file:
            if not file.seekable():
                raise TiedtoolsError(f"{path}: a model cannot be read from a pipe; give the name of a regular file")
            archive = zipfile.ZipFile(file)
            if not any(name.endswith(".npy") for name in archive.namelist()):
                raise TiedtoolsError(f"{path}: is a zip archive, not {FILE_KINDS[expected][0]}; unpack it first")
            members = stored(archive, os.fstat(file.fileno()).st_size)
            chosen = [name for name in members if names is None or name in names]
            arrays = {name: read_array(archive, name, members[name]) for name in chosen}
        header = json.loads(as_bytes(arrays.pop("header")))
    except (MemoryError, TiedtoolsError):
        raise
    except Exception as error:  # zipfile and json raise many kinds of exceptions for corrupt data
        raise corrupt(path, error, expected) from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        remedy = f"update tiedtools {__version__}, or save the model again with it"
        raise TiedtoolsError(f"{path}: is not in model format {FORMAT}; {remedy}")
    if not isinstance(header.get("config"), dict):
        raise corrupt(path, ValueError("its header has no config"))
    return header, arrays


def read_header(path: str, expected: str = "model") -> dict[str, Any]:
    """Read the header of a file, without its arrays. Raises the errors of `load`."""
    return read(path, {"header"}, expected)[0]


def read_array(archive: zipfile.ZipFile, name: str, info: zipfile.ZipInfo) -> np.ndarray:
    """Read an array of an archive. Raises ValueError, with the array's name, if it is corrupt."""
    try:
        with archive.open(info) as file:
            shape, order, dtype = npy_header(file)
            data_bytes = info.file_size - file.tell()
            if math.prod(shape) * dtype.itemsize != data_bytes:
                raise ValueError(f"expected an array of shape {shape} and type {dtype}, found {data_bytes} bytes")
            numbers = np.empty(math.prod(shape), dtype)
            data, read_into = numbers.view(np.uint8), file.readinto  # type: ignore[attr-defined]
            if sum(read_into(data[start : start + BLOCK]) for start in range(0, data_bytes, BLOCK)) < data_bytes:
                raise ValueError("unexpected end of file")
            return numbers.reshape(shape, order=order)
    except ValueError as error:
        raise ValueError(f"array {quoted(name)}: {error}") from None


def npy_header(file: IO[bytes]) -> tuple[tuple[int, ...], Any, np.dtype]:
    """Read the header of an .npy array, (shape, order, dtype), from a binary file, which is then at the first number.

    It is matched by a regular expression, never evaluated: NumPy's reader allocates what a false header claims.
    Raises ValueError if it is not an array of real numbers.
    """
    width = {b"\x93NUMPY\x01\0": 2, b"\x93NUMPY\x02\0": 4}.get(file.read(8))
    size = int.from_bytes(file.read(width), "little") if width else 0
    match = NPY.fullmatch(file.read(size).decode("latin-1")) if 0 < size <= MAX_NPY else None
    fields = dict(zip(match.groups()[::2], match.groups()[1::2])) if match else {}
    try:
        sizes = fields["shape"][1:-1].replace("L", "").split(",")
        shape = tuple(int(n) for n in (sizes if sizes[-1].strip() else sizes[:-1]))
        return shape, {"True": "F", "False": "C"}[fields["fortran_order"]], np.dtype(fields["descr"].strip("'"))
    except (KeyError, TypeError, ValueError):
        raise ValueError("no .npy header of an array of numbers") from None


def mapped(path: str, name: str) -> np.ndarray:
    """Map an array of a file without reading it. Raises ValueError or KeyError if it is corrupt or absent."""
    with open(path, "rb") as file, zipfile.ZipFile(file) as archive:
        members = stored(archive, os.fstat(file.fileno()).st_size)
        with archive.open(members[name]) as member:
            shape, order, dtype = npy_header(member)
            header = member.tell()
        if math.prod(shape) * dtype.itemsize + header != members[name].file_size:
            raise ValueError(f"array {quoted(name)} of shape {shape} does not match its size")
        file.seek(members[name].header_offset + 26)
        names = struct.unpack("<HH", file.read(4))  # lengths of the name and the extra field after the local header
        start = file.tell() + sum(names) + header
        return np.memmap(file, dtype, "r", start, shape, order) if 0 not in shape else np.empty(shape, dtype)


def stored(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """Return the members of an archive of `size` bytes by name.

    Raises ValueError if an array is duplicated, compressed, or truncated.
    """
    members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
    if len(members) < len(archive.infolist()):
        raise ValueError("duplicate array")
    if any(info.compress_type != zipfile.ZIP_STORED for info in members.values()):
        raise ValueError("its arrays are compressed")
    if sum(info.file_size for info in members.values()) > size:
        raise ValueError("its arrays are larger than the file")
    return members


def as_array(text: str) -> np.ndarray:
    return np.frombuffer(text.encode(), np.uint8)


def as_bytes(array: np.ndarray) -> bytes:
    if array.dtype != np.uint8 or array.ndim != 1:
        raise ValueError(f"expected text as uint8, found {array.dtype}")
    return array.tobytes()

"""The files of word vectors: which format a name stands for, and which files are read and written."""

import contextlib
import os
import re
from collections.abc import Iterable

from tiedtools.base.errors import Contradiction, TiedtoolsError
from tiedtools.base.settings import one_of
from tiedtools.files import modelfile
from tiedtools.files.output import split_compression
from tiedtools.text.sources import refuse_missing
from tiedtools.vectors import formats, matrixfiles, staticfolder
from tiedtools.vectors.formats import DTYPES, FOLDER, FORMATS, format_by_name
from tiedtools.vectors.modelvectors import WHICH, find_model

UNNAMED = re.compile(r"(\.\d+[Bd]?)?")  # no extension, or the end of a name such as glove.6B.50d


def format_of(path: str, format: str | None = None, dtype: str = "float32", quantize: bool = False) -> str:
    """Return the format of vectors written to `path`, as Vectors.write chooses it.

    Raises Contradiction if the file would be read as something else, the extension is unknown, the format has no
    numbers of type `dtype`, or only one of format and name is that of a quantized file.
    """
    match = WHICH.fullmatch(path)
    if path.endswith(".npz") or match and modelfile.is_model(match[1]):
        raise Contradiction(f"{path}: would be read as a model file; choose another name for vectors")
    stem, compression = split_compression(path)
    extension = os.path.splitext(stem)[1]
    written = formats.extensions()
    if format is None and format_by_name(path) == FOLDER:
        format = FOLDER
    if format is None and extension not in written and not UNNAMED.fullmatch(extension):
        raise Contradiction(
            f"{path}: unknown extension {extension}; use {', '.join(written)}, or none for text, or choose `format`"
        )
    format = format or written.get(extension, "text")
    one_of("format", format, FORMATS)
    one_of("dtype", dtype, DTYPES)
    if dtype not in FORMATS[format].dtypes:
        others = ", ".join(name for name, other in FORMATS.items() if dtype in other.dtypes)
        raise Contradiction(f"`dtype={dtype}`: format {format} has only float32; choose one of {others}")
    two_files = FORMATS[format].two_files
    if compression and two_files:
        raise Contradiction(f"{path}: format {format} is not compressed; choose a name that ends in .{format}")
    if quantize and format != "fasttext":
        raise Contradiction(f"{path}: only models of fastText are quantized; choose a name that ends in .ftz")
    if extension == ".ftz" and not quantize:
        raise Contradiction(
            f"{path}: .ftz is for quantized vectors; give `quantize`, or write `format=fasttext` to .bin"
        )
    named = format_by_name(path) or format
    if named != format and not two_files and format != FOLDER:  # the former add their extension
        raise Contradiction(f"{path}: would be read as {named}, but is {format}; choose another name or format")
    return format


def files_read(path: str, format: str | None = None) -> list[str]:
    """Return the paths of the files that `Vectors.read` reads: the vectors and, for two-file formats, the words."""
    if model := find_model(path):
        return [model[0]]
    format = format or format_by_name(path)
    if format == FOLDER:
        return list(staticfolder.paths(path))
    with contextlib.suppress(TiedtoolsError):  # a .tsv file may contain its words; `read` raises a clearer error
        return [path, matrixfiles.words_of(path, format)] if format and FORMATS[format].two_files else [path]
    return [path]


def file_written(path: str, format: str) -> str:
    """Return the path to which `Vectors.write` writes vectors. Raises Contradiction for a name without a file."""
    if format == FOLDER:
        return os.path.join(path, "model.safetensors")
    return matrixfiles.paths(path, format)[0] if FORMATS[format].two_files else path


def refuse_absent(paths: Iterable[str], format: str | None = None) -> None:
    """Raise TiedtoolsError if one of several vector files does not exist, before the first is read."""
    refuse_missing([file for path in paths for file in files_read(path, format)])


def trained_format(path: str | None, binary: bool = False, two_files: bool = True) -> str:
    """Return the format in which a run writes vectors to `path`: by extension, else text or binary.

    Raises Contradiction for the name of a model or of a folder, and of a format of two files unless `two_files`.
    """
    extension = os.path.splitext(path or "")[1]
    format = format_by_name(path or "") or ("binary" if binary else "text")
    if extension == ".npz" or format == FOLDER or FORMATS[format].two_files and not two_files:
        models = "choose another name, .npz is for models"
        other = models if extension == ".npz" else "use `tiedtools convert` for that format"
        raise Contradiction(f"`output` {path}: would be read as {extension or format}; {other}")
    return format

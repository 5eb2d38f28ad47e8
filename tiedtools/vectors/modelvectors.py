"""Read word vectors from the model files of tiedtools and rnnlm."""

import contextlib
import os
import re
from typing import Any

import numpy as np

from tiedtools.base.errors import TiedtoolsError
from tiedtools.files import modelfile
from tiedtools.files.families import FAMILIES, TRANSLATION, commands
from tiedtools.vectors import matrixfiles, rnnlmformat, runs, staticfolder
from tiedtools.vectors.formats import FOLDER, FORMATS, format_by_name
from tiedtools.vectors.norms import Matrix

WHICH = re.compile(r"(.+):(source|in|out|sum|\d+)", re.DOTALL)
MATRICES = "emb_in", "emb_out", "word_out", "emb_source", "proj"  # of model files; see docs/formats.md


def find_model(path: str) -> Any:
    """Parse "MODEL", "MODEL:in", and so on into (model file, "in", "out", "sum", "source", or the number of a run).

    Returns None for other files.

    Model files are recognized by their first bytes or a name ending in .npz. If a file named "MODEL:in" exists, it is
    opened instead. Raises TiedtoolsError if MODEL exists and is not a model file.
    """
    if modelfile.is_model(path):
        return path, "in"
    if os.path.exists(path) or not (match := WHICH.fullmatch(path)):
        return None
    if modelfile.is_model(match[1]):
        return match.groups()
    if os.path.exists(match[1]):
        raise TiedtoolsError(f"{match[1]}: is not a model file, so :{match[2]} does not apply; remove the suffix")
    return None


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


def read_parts(path: str, which: str) -> tuple[dict[str, Any], list[str], dict[str, Matrix]]:
    """Read (config, words, dict of the arrays in MATRICES that `which` needs) from a model file of tiedtools or rnnlm.

    which  see `find_model`; "source": read the source words of a translation model
    """
    source, kind = which == "source", modelfile.kind(path)
    modelfile.refuse_checkpoint(path, kind)
    if source and not ((family := FAMILIES.get(str(kind))) and "source" in family.sides):
        raise TiedtoolsError(f"{path}: has no source vectors; give {TRANSLATION}, of {commands(TRANSLATION)}")
    if modelfile.is_rnnlm(path):
        contents = rnnlmformat.read(path)
        return {}, contents.vocab.words, {name: contents.arrays[name] for name in ("emb_in", "word_out")}
    needed = ("emb_in",) if which == "in" else MATRICES
    header, arrays = modelfile.read(path, {"header", "words", "source_words", *needed})
    words = modelfile.take_words(path, arrays)
    if source and "source_words" in arrays:  # absent if the vocabulary is joint
        words = modelfile.take_words(path, arrays, name="source_words")
    return header["config"], words, arrays


def composed(path: str, config: dict[str, Any], words: list[str], matrix: Matrix) -> Any:
    """Return the vectors of the words as means of rows of a matrix. Raises TiedtoolsError if it does not fit."""
    from tiedtools.vectors.ngrams import Composed, Ngrams  # imports Numba

    try:
        ngrams = Ngrams(words, *(int(config[name]) for name in ("min_n", "max_n", "buckets")))
        if matrix.shape != (len(ngrams), config["size"]) or matrix.dtype != np.float32:
            raise ValueError(f"a matrix of {matrix.shape} for {len(ngrams)} rows")
    except modelfile.WRONG as error:
        raise TiedtoolsError(f"{path}: corrupt model file: {error}; get an undamaged copy") from None
    return Composed(words, np.ascontiguousarray(matrix), ngrams, matrix.shape[1])


def read_model(path: str, which: str) -> tuple[list[str], Matrix]:
    """Read words and vectors from a model file; `which`: see find_model; "sum" adds input and output vectors.

    With tied embeddings, input and output vectors are equal. The sum applies the projection L, if the model has one, to
    the input vectors.
    """
    if runs.is_runs(path):
        return runs.read_one(path, which)
    if which.isdigit():
        raise TiedtoolsError(f"{path}: is not a file of runs, so :{which} does not apply; remove the suffix")
    config, words, arrays = read_parts(path, which)
    if which == "sum" and config.get("tying") == "signs":
        why = "its input and output vectors differ only in signs, so that their sum cancels dimensions"
        raise TiedtoolsError(f"{path}: {why}; read {path}:in")
    if odd := [name for name in MATRICES[:4] if name in arrays and arrays[name].ndim != 2]:
        raise TiedtoolsError(f"{path}: corrupt model file: {odd[0]} is not a matrix; get an undamaged copy")
    V, emb_in = len(words), arrays.get("emb_in", np.zeros((0, 0)))
    if config.get("subwords") == "ngrams":
        vectors = composed(path, config, words, emb_in)
        if which == "in" or which == "out" and "emb_out" not in arrays:
            return words, vectors
        emb_in = np.asarray(vectors)
    emb_out = emb_in
    if "word_out" in arrays:
        emb_out = arrays["word_out"][:, : emb_in.shape[1]]  # without the weights of rnnlm's document vector
    elif "emb_out" in arrays:
        emb_out = arrays["emb_out"][:V]  # without the inner nodes of word2vec's Huffman tree
        if which != "in" and len(emb_out) == V - 1:
            raise TiedtoolsError(f"{path}: has no output vectors because it uses hierarchical softmax; read {path}:in")
    elif config.get("tying") == "untied" and not config.get("subwords"):
        emb_out = emb_in[:0]
    matrices = {"in": emb_in, "out": emb_out, "source": arrays.get("emb_source", emb_in)}
    for name in ("in", "out") if which == "sum" else [which]:
        matrix = matrices[name]
        if matrix.dtype.kind != "f" or len(matrix) != V or not matrix.size:
            what = f"has no {name if name == 'source' else f'{name}put'} vectors for its {V} words"
            raise TiedtoolsError(f"{path}: {what}; save the model again with `save_model`")
    with np.errstate(over="ignore", invalid="ignore"):
        matrix = np.ascontiguousarray(matrix, np.float32)
        if which == "sum":
            proj = arrays.get("proj", np.eye(emb_in.shape[1], dtype=emb_in.dtype))
            if emb_in.shape != emb_out.shape or proj.shape != (emb_in.shape[1],) * 2 or proj.dtype.kind != "f":
                why = "its input and output vectors cannot be added"
                raise TiedtoolsError(f"{path}: {why}; read {path}:in or {path}:out")
            matrix = np.asarray(emb_in @ proj + emb_out, np.float32)
    return words, matrix

"""Folders of static embeddings, as model2vec and sentence-transformers' StaticEmbedding read them.

    model.safetensors   the matrix, `embeddings` or `embedding.weight`, a row per token
    tokenizer.json      of Hugging Face tokenizers; a written one looks up whole words between whitespace
    config.json, modules.json   for the two libraries

The first two may be in the folder 0_StaticEmbedding. With model2vec's quantized vocabulary, `mapping` has the row of
each token, and `weights` its factor.
"""

import contextlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from tiedtools.base.errors import TiedtoolsError, brief, unreadable
from tiedtools.files.output import open_output
from tiedtools.vectors import matrixfiles
from tiedtools.vectors.norms import distinct
from tiedtools.vectors.rows import Rows
from tiedtools.vectors.runs import is_slices
from tiedtools.vectors.streams import check_writable

UNKNOWN = "[UNK]"  # the token of words outside the vocabulary; its row, the last, is zero
MATRICES = "embeddings", "embedding.weight"
MAPPINGS = {**matrixfiles.SAFETENSORS, "I8": "<i1", "I32": "<i4", "I64": "<i8"}


def paths(folder: str) -> tuple[str, str]:
    """Return the paths of the matrix and the tokenizer in a folder."""
    nested = os.path.join(folder, "0_StaticEmbedding")
    folder = nested if os.path.exists(os.path.join(nested, "model.safetensors")) else folder
    return os.path.join(folder, "model.safetensors"), os.path.join(folder, "tokenizer.json")


def read(rows: Rows, format: str | None = None) -> None:
    """Read Rows from a folder: the tokens as they are, without an unknown-word token `[UNK]` whose vector is zero."""
    matrix_path, tokens_path = paths(rows.path)
    if os.path.isfile(rows.path):
        raise TiedtoolsError(f"{rows.path}: is a file; name the folder of a static embedding")
    if os.path.isdir(rows.path) and not os.path.exists(matrix_path):
        others = "without model.safetensors; name a file of vectors"
        what = "of slices; name one: NAME.runs in it" if is_slices(rows.path) else others
        raise TiedtoolsError(f"{rows.path}: is a directory {what}")
    words, unknown = read_tokens(tokens_path)

    def choose(shapes: dict[str, list[int]]) -> list[str]:
        if not (names := [name for name in MATRICES if name in shapes]):
            found = f"0 of its matrices ({brief(', '.join(shapes)) or 'none'}) are named {' or '.join(MATRICES)}"
            raise TiedtoolsError(f"{matrix_path}: {found}; is it a static embedding?")
        return [names[0], *(name for name in ("mapping", "weights") if name in shapes)]

    matrix, *factors = matrixfiles.read_tensors(matrix_path, choose, MAPPINGS).values()
    try:
        for factor in factors:
            matrix = matrix[factor] if factor.dtype.kind == "i" else matrix * factor[:, None]
        if matrix.ndim != 2:
            raise ValueError(f"found an array of shape {matrix.shape}")
    except (IndexError, ValueError) as error:
        raise TiedtoolsError(f"{matrix_path}: is not a whole static embedding: {brief(error)}; get the file") from None
    zero = unknown is not None and len(words) == len(matrix) and not matrix[unknown].any()
    if zero and words[unknown].startswith(UNKNOWN):
        matrix = matrix[:-1] if unknown == len(words) - 1 else np.delete(matrix, unknown, 0)
        del words[unknown]
    rows.format = "model2vec"
    rows.whole(words, matrix, tokens_path)


def read_tokens(path: str) -> tuple[list[str], Any]:
    """Read (tokens in the order of their IDs, ID of the unknown-word token or None) from a tokenizer.json."""
    try:
        with open(path, "rb") as file:
            tokenizer = json.load(file)
        model = tokenizer["model"]
        vocab, unknown = model["vocab"], model.get("unk_token")
        if isinstance(vocab, list):  # Unigram: [token, log probability] by ID
            vocab, unknown = {token: k for k, (token, _) in enumerate(vocab)}, None
        ids = vocab | {token["content"]: token["id"] for token in tokenizer.get("added_tokens") or ()}
        words = sorted(ids, key=ids.__getitem__)
        if [ids[word] for word in words] != list(range(len(words))) or not all(map(str, words)):
            raise ValueError("its token IDs are not 0, 1, 2, ...")
        return words, ids.get(unknown)
    except OSError as error:
        raise unreadable(path, error) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise TiedtoolsError(f"{path}: is not a whole tokenizer: {brief(error)}; get the file") from None


def write(folder: str, words: list[str], matrix: np.ndarray, dtype: str) -> None:
    """Write a folder; of a repeated word, only the first vector. All files are complete before the first is renamed.

    Words are looked up in lower case if all are lower-case. Raises TiedtoolsError for a folder of other files.
    """
    check_writable(words, matrix, "model2vec", dtype)
    words, matrix = distinct(words, matrix)
    vocab = dict(zip(words, range(len(words))))
    unknown = UNKNOWN if UNKNOWN not in vocab else f"{UNKNOWN}{len(words)}"
    vocab[unknown] = len(words)
    normalizer = {"type": "Lowercase"} if all(word == word.lower() for word in words) else None
    tokenizer = {
        "version": "1.0", **dict.fromkeys(("truncation", "padding", "post_processor", "decoder")), "added_tokens": [],
        "normalizer": normalizer, "pre_tokenizer": {"type": "WhitespaceSplit"},
        "model": {"type": "WordLevel", "vocab": vocab, "unk_token": unknown},
    }  # fmt: skip
    config = {"model_type": "model2vec", "architectures": ["StaticModel"], "normalize": False, "max_length": None,
              "hidden_dim": matrix.shape[1], "embedding_dtype": dtype}  # fmt: skip
    modules = [{"idx": 0, "name": "0", "path": ".", "type": "sentence_transformers.models.StaticEmbedding"}]
    try:
        known = Path(folder, "modules.json")
        others = os.path.exists(folder) and os.listdir(folder)
        nested = Path(folder, "0_StaticEmbedding").exists()  # read in preference to the files written here
        if others and (nested or not (known.exists() and b"StaticEmbedding" in known.read_bytes())):
            raise TiedtoolsError(f"{folder}: is a directory of other files; name a new one")
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise unreadable(folder, error) from None
    with contextlib.ExitStack() as stack:
        for name, content in {"modules": modules, "config": config, "tokenizer": tokenizer}.items():
            file = stack.enter_context(open_output(os.path.join(folder, f"{name}.json")))
            file.write(json.dumps(content, ensure_ascii=False).encode())
            file.flush()  # reports a full disk before any file is renamed
        file = stack.enter_context(open_output(os.path.join(folder, "model.safetensors")))
        matrixfiles.write_safetensors(file, matrix, dtype, MATRICES[0], zeros=1)
        file.flush()

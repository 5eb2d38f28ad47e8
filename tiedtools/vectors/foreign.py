"""Recognize unsupported vector files by their first bytes, and advise how to convert them."""

import re

from tiedtools.base.errors import TiedtoolsError, printable
from tiedtools.files.modelfile import MAGIC, RNNLM_MAGIC, first_bytes
from tiedtools.text.sources import shown

FASTTEXT = b"\xba\x16\x4f\x2f"
# A pickle may continue with the header of a frame, and then names the class of the saved object.
PICKLE = re.compile(rb"\x80[\x02-\x05].{0,20}?gensim\.models\.\w+\W+(\w+)|\x80[\x02-\x05]", re.DOTALL)


def is_fasttext(path):
    """Return whether a regular file starts like a model of fastText."""
    return first_bytes(path).startswith(FASTTEXT)


def refuse_foreign(path, start):
    """Raise TiedtoolsError if the first bytes of a stream of vectors show that it is empty or has another format."""
    if problem := foreign("FILE" if path == "-" else printable(shown(path)), start):
        raise TiedtoolsError(f"{shown(path)}: {problem}")


def foreign(name, start):
    """Describe a file and how to convert it; None if its first bytes are not recognized."""
    if not start:
        return "is empty; give a file of word vectors"
    if start.startswith(b"\x93NUMPY"):
        return "is in NumPy's .npy format; give an uncompressed file with a name ending in .npy"
    if start.startswith(MAGIC) or RNNLM_MAGIC.match(start):
        return "contains a model file; give the name of an uncompressed file, not a pipe"
    if start.startswith(FASTTEXT):
        return "is a model of fastText (.bin or .ftz); give the name of an uncompressed file, not a pipe"
    if not (pickle := PICKLE.match(start)):
        return None
    if not pickle[1]:
        return "is a Python pickle, which could run any code; save its matrix as .npy and its words as .words"
    kind = pickle[1].decode()
    load = f"KeyedVectors.load({name!r})" if kind.endswith("KeyedVectors") else f"{kind}.load({name!r}).wv"
    return f"is a {kind} saved by gensim, a pickle; convert it: `{load}.save_word2vec_format('OUT.bin', binary=True)`"

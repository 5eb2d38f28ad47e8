"""The vocabulary: words and their counts, in word2vec.c's order and file format."""

import dataclasses

import numpy as np

from tiedtools.errors import TiedtoolsError
from tiedtools.text import open_source

END = "</s>"


@dataclasses.dataclass
class Vocab:
    """Words by id, the most frequent first, behind `</s>` (the end of a line), which is always id 0.

    words   list of V strings
    counts  int64 [V]
    """

    words: list
    counts: np.ndarray

    def __len__(self):
        return len(self.words)

    @property
    def total(self):
        """Tokens counted, `</s>` included: word2vec.c's train_words."""
        return int(self.counts.sum())

    def write(self, file):
        """Write word2vec.c's vocabulary format, `word count` a line, to a binary file."""
        file.write("".join(f"{w} {c}\n" for w, c in zip(self.words, self.counts.tolist())).encode())

    @classmethod
    def read(cls, path, min_count=1, max_vocab=None):
        """Read word2vec.c's vocabulary format; words come out sorted by count and cut as in `select`."""
        words, counts = [], []
        with open_source(path) as file:
            for number, line in enumerate(file, 1):
                word, _, count = line.rstrip(b" \t\r\n").replace(b"\t", b" ").rpartition(b" ")
                if not word and not count:
                    continue
                try:
                    counts.append(int(count))
                    words.append(word.decode())
                except ValueError:
                    words = None
                if not words or not word or counts[-1] < 0 or counts[-1] >= 1 << 62:
                    raise TiedtoolsError(f"{path}:{number}: no `word count` line; is this a vocabulary file?")
        if len(set(words)) != len(words):
            twice = next(w for i, w in enumerate(words) if w in set(words[:i]))
            raise TiedtoolsError(f"{path}: `{twice}` stands there twice; remove one line")
        if END in words:
            place = words.index(END)
            words.insert(0, words.pop(place))
            counts.insert(0, counts.pop(place))
        else:
            words.insert(0, END)
            counts.insert(0, 0)
        vocab, _ = select(words, np.array(counts, np.int64), min_count, max_vocab)
        return vocab


def select(words, counts, min_count, max_vocab):
    """The Vocab of the words counted at least `min_count` times, at most `max_vocab` of them with `</s>`.

    words[0] is `</s>` and stays. Equal counts keep the order given. Returns (Vocab, new id by old id, -1: gone).
    """
    order = 1 + np.argsort(-counts[1:], kind="stable")
    order = order[: np.count_nonzero(counts[1:] >= min_count)]
    order = np.concatenate([[0], order])[:max_vocab]
    new_id = np.full(len(words), -1, np.int32)
    new_id[order] = np.arange(len(order))
    return Vocab([words[k] for k in order], counts[order]), new_id

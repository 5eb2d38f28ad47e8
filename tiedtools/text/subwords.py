"""Subwords: words split into morphs, syllables, or characters."""

import dataclasses

import numpy as np

from tiedtools.errors import TiedtoolsError
from tiedtools.text.vocab import END, UNK


@dataclasses.dataclass
class Subwords:
    """Splits words into units; `units` are strings by ID, 0 is padding."""

    kind: str
    units: list
    parts: dict

    @classmethod
    def learn(cls, kind, words, language="en_US", segmentation=None, seed=1):
        parts = dict(zip(words, SPLIT[kind](words, language)))
        units = dict.fromkeys(unit for word in words for unit in parts[word])
        return cls(kind, ["", *units], parts)

    def segment(self, word):
        return self.parts.get(word, [*word])

    def ids(self, word):
        number = {unit: k for k, unit in enumerate(self.units)}
        found = self.segment(word)
        return [number[unit] for unit in found if unit in number], [unit for unit in found if unit not in number]

    def table(self, words):
        number = {unit: k for k, unit in enumerate(self.units)}
        rows = [[number[unit] for unit in self.segment(word) if unit in number] for word in words]
        table = np.zeros((len(words), max(map(len, rows), default=0)), np.int32)
        for row, ids in zip(table, rows):
            row[: len(ids)] = ids
        return table

    def state(self):
        return dict(kind=self.kind, units=self.units, parts=self.parts), {}

    @classmethod
    def from_state(cls, header, arrays, words):
        return cls(**header)


def morphs(words, language):
    try:
        import morfessor
    except ImportError:
        raise TiedtoolsError("morphs need Morfessor; run `pip install morfessor`") from None
    model = morfessor.BaselineModel(forcesplit_list=["-"])
    model.load_data([(1, word) for word in words if word not in (END, UNK)], count_modifier=lambda count: 1)
    model.train_batch()
    return [[word] if word in (END, UNK) else model.viterbi_segment(word)[0] for word in words]


def syllables(words, language):
    try:
        import pyphen
    except ImportError:
        raise TiedtoolsError("syllables need Pyphen; run `pip install pyphen`") from None
    dictionary = pyphen.Pyphen(lang=language)
    return [[word] if word in (END, UNK) else dictionary.inserted(word).split("-") for word in words]


def chars(words, language):
    return [[word] if word == END else ["⎡", *word, "⎦"] for word in words]


SPLIT = {"morphs": morphs, "syllables": syllables, "chars": chars}

"""Segment words into morphs, syllables, or characters, and list the subwords of a vocabulary."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from tiedtools.base.errors import Contradiction, TiedtoolsError, quoted
from tiedtools.base.settings import one_of
from tiedtools.files import modelfile
from tiedtools.files.modelfile import Arrays
from tiedtools.text import morphs
from tiedtools.text.sentences import WORD
from tiedtools.text.sources import numbered_lines, shown
from tiedtools.text.vocab import END, UNK

KINDS = "morphs", "syllables", "chars"
PADDING = ""
BEGIN, STOP = "<w>", "</w>"  # mark a word in characters; longer than a character, so no text has them as units


class Characters:
    """Segmentation of words into Unicode characters; a letter and a combining accent are two."""

    segment = list


class Syllables:
    """Segmentation of words at all hyphenation points of Pyphen with LibreOffice's patterns, and at hyphens.

    Hyphens and the empty syllables next to them are dropped, except in words of hyphens only. A word that cannot be
    split is one syllable. The patterns of a few languages change letters at a break: Hungarian asszonnyal becomes asz
    szony nyal. Pyphen is imported when the first word is segmented.

    language  code such as "en_US", "de_DE", or "ru"; a region without patterns uses the patterns of the language
    version   version of Pyphen
    patterns  SHA-256 of the pattern file in hexadecimal; None: accept any
    """

    def __init__(self, language: str, version: str | None = None, patterns: Any = None) -> None:
        self.language, self.version, self.patterns = language, version, patterns
        self.pyphen: Any = None

    def load(self) -> "Syllables":
        """Load the patterns; return self.

        Raises TiedtoolsError if Pyphen is not installed, or if its patterns have changed since the model was trained;
        Contradiction for a language without patterns.
        """
        try:
            import pyphen
        except ImportError:
            raise TiedtoolsError(f"syllables need Pyphen: {self.remedy()}") from None
        name = pyphen.language_fallback(self.language)
        if name is None:
            known = [name for name, path in pyphen.LANGUAGES.items() if path.name == f"hyph_{name}.dic"]
            raise Contradiction(f"`language={quoted(self.language)}` is not one of {', '.join(known)}")
        patterns = hashlib.sha256(pyphen.LANGUAGES[name].read_bytes()).hexdigest()
        if self.patterns not in (None, patterns):
            what = f"the {self.language} patterns of Pyphen {pyphen.__version__}"
            used = f"those of version {self.version}, which segmented the training text"
            raise TiedtoolsError(f"{what} are not {used}; {self.remedy()}")
        if self.patterns is None:
            self.version, self.patterns = pyphen.__version__, patterns
        self.pyphen = pyphen.Pyphen(lang=name)
        return self

    def remedy(self) -> str:
        return f"pip install pyphen=={self.version}" if self.version else 'pip install "tiedtools[subwords]"'

    def segment(self, word: str) -> list[str]:
        """Split a word into syllables, a list of str; "" has none. Raises the errors of `load`."""
        if self.pyphen is None:
            self.load()
        return [syllable for syllable in self.pyphen.inserted(word).split("-") if syllable] or [word] * bool(word)


class Subwords:
    """Segmentation of words into subwords, and the inventory of subwords of a training vocabulary.

    `</s>`, the end of a line, is always one subword. With `atomic_unk`, `<unk>` is one, too; otherwise it is split like
    any word, as in Assylbekov and Takhanov's code (Kim's has `atomic_unk`).

    kind       "morphs", "syllables", or "chars"
    words      the vocabulary, a list of str
    segmenter  object whose `segment` returns the subwords of a word, a list of str
    given      dict: word -> subwords, which override the segmenter
    units      list of str: the subwords of the vocabulary by first occurrence, so that subwords of frequent words come
               first; unit 0 is padding
    longest    number of columns of a `table`, as in a trained model; None: as many as its words need
    """

    longest: int | None = None

    def __init__(
        self, kind: str, words: list[str], segmenter: Any, given: Mapping[str, list[str]] | None = None,
        atomic_unk: bool = False,
    ) -> None:  # fmt: skip
        one_of("kind", kind, KINDS)
        self.kind, self.words, self.segmenter, self.atomic_unk = kind, list(words), segmenter, atomic_unk
        self.known = {**(given or {}), **{word: [word] for word in atoms(atomic_unk)}}
        self.known |= {word: segmenter.segment(word) for word in self.words if word not in self.known}
        units = dict.fromkeys(unit for word in self.words for unit in self.spelled(word))
        self.units = [PADDING, *units]
        self.index = {unit: number for number, unit in enumerate(self.units) if number}

    @classmethod
    def learn(
        cls, kind: str, words: list[str], language: str = "en_US", segmentation: str | None = None, seed: int = 1,
        atomic_unk: bool = False,
    ) -> "Subwords":  # fmt: skip
        """Segment the words of a vocabulary, each counted once.

        kind          "morphs" (Morfessor), "syllables" (Pyphen), or "chars"
        language      language of syllables
        segmentation  path of a file with the subwords of each word, `word sub sub` per line, instead of Morfessor or
                      Pyphen; other words are segmented into the vocabulary's subwords by `Lexicon`. A file in
                      Morfessor's format (`morphs.write`) may lack words
        seed          seed of Morfessor

        Raises TiedtoolsError if a library is not installed, or the file lacks words; Contradiction for a language
        without patterns.
        """
        plain = [word for word in words if word not in atoms(atomic_unk)]
        file_subwords = None
        if segmentation is not None:
            file_subwords, segmenter = from_file(segmentation, plain)
        elif kind == "morphs":
            segmenter = morphs.Lexicon.of(morphs.learn(plain, seed))
        else:
            segmenter = Syllables(language).load() if kind == "syllables" else Characters()
        return cls(kind, words, segmenter, file_subwords, atomic_unk)

    def extended(self, words: list[str]) -> "Subwords":
        """Return the Subwords of a vocabulary that has all words of this one, which keep their segmentation."""
        return Subwords(self.kind, words, self.segmenter, self.known, self.atomic_unk)

    def segment(self, word: str) -> list[str]:
        """Split any word into subwords, a list of str, without the BEGIN and STOP of characters.

        Raises TiedtoolsError for a word that needs a library which is not installed.
        """
        return self.known.get(word) or self.segmenter.segment(word)

    def spelled(self, word: str) -> list[str]:
        """Return the subwords of a word as a model reads them."""
        return [BEGIN, *self.segment(word), STOP] if self.kind == "chars" else self.segment(word)

    def unknown(self, word: str) -> tuple[list[str], bool]:
        """Return (subwords of a word that are not units, a list of str; whether none of its subwords is a unit)."""
        subwords = self.segment(word)
        unknown = [subword for subword in subwords if subword not in self.index]
        return unknown, len(unknown) == len(subwords)

    def table(self, words: list[str]) -> np.ndarray:
        """Return the unit IDs of n words, int32 [n, largest number], padded with 0; unknown subwords are skipped."""
        known = [[self.index[unit] for unit in self.spelled(word) if unit in self.index] for word in words]
        rows = [row[: self.longest] for row in known]
        table = np.zeros((len(rows), self.longest or max(map(len, rows), default=0)), np.int32)
        for row, ids in zip(table, rows):
            row[: len(ids)] = ids
        return table

    def state(self) -> tuple[dict[str, Any], Arrays]:
        """Return what a model file stores in addition to the words: (JSON-serializable dict, dict: name -> array)."""
        header, arrays = {"kind": self.kind, "atomic_unk": self.atomic_unk, "units": len(self.units)}, {}
        vocabulary = set(self.words)
        others = [f"{word} {' '.join(subwords)}" for word, subwords in self.known.items() if word not in vocabulary]
        arrays["known"] = as_array(" ".join(self.segment(word)) for word in self.words)
        arrays["others"] = as_array(others)
        if isinstance(self.segmenter, Syllables):
            header |= {name: getattr(self.segmenter, name) for name in ("language", "version", "patterns")}
        elif isinstance(self.segmenter, morphs.Lexicon):
            header["counted"] = self.segmenter.words
            arrays["morphs"] = as_array(self.segmenter.counts)
            arrays["morph_counts"] = np.array(list(self.segmenter.counts.values()), np.int64)
        return header, arrays

    @classmethod
    def from_state(cls, header: dict[str, Any], arrays: Arrays, words: list[str]) -> "Subwords":
        """Restore what `state` returned, for the same words. Raises KeyError, TypeError, or ValueError if corrupt."""
        kind, segmenter = header["kind"], Characters()
        if "morphs" in arrays:
            units, counts, total = as_lines(arrays["morphs"]), arrays["morph_counts"], header["counted"]
            if counts.shape != (len(units),) or counts.dtype != np.int64 or len(set(units)) < len(units):
                raise ValueError(f"{len(units)} morphs, and counts of shape {counts.shape} and type {counts.dtype}")
            if type(total) is not int or min(total, counts.min(initial=total)) < 0 or not counts.all():
                raise ValueError("the counts of its morphs are not positive")
            segmenter = morphs.Lexicon(dict(zip(units, counts.tolist())), total)
        elif kind == "syllables":
            segmenter = Syllables(*(str(header[name]) for name in ("language", "version", "patterns")))
        elif kind == "morphs":
            raise ValueError("it has no morphs")
        lines = as_lines(arrays["known"])
        if len(lines) != len(words):
            raise ValueError(f"{len(lines)} segmentations of {len(words)} words")
        known = {word: line.split(" ") for word, line in zip(words, lines)}
        known |= {word: subwords for word, *subwords in (line.split(" ") for line in as_lines(arrays["others"]))}
        subwords = cls(kind, words, segmenter, known, header["atomic_unk"] is True)
        if len(subwords.units) != header["units"] or PADDING in subwords.index:
            raise ValueError(f"{len(subwords.units)} subwords, expected {quoted(header['units'])}")
        return subwords


def marked(lines: Iterable[list[str]], segment: Callable[[str], list[str]], separator: str, name: str) -> Iterator[str]:
    """Yield lines, lists of words, as text with `separator` after each subword that does not end its word.

    segment  function that returns the subwords of a word; called once per distinct word
    name     name of the text

    Raises TiedtoolsError for a word that ends in the separator, since the words could not be restored.
    """
    marked_words = {}
    for words in lines:
        for word in words:
            if word not in marked_words:
                subwords = segment(word)
                if separator and subwords[-1].endswith(separator):
                    problem = f"the word {quoted(word)} ends in the separator {quoted(separator)}"
                    raise TiedtoolsError(f"{name}: {problem}; choose another with `separator`")
                marked_words[word] = f"{separator} ".join(subwords)
        yield " ".join([marked_words[word] for word in words]) + "\n"


def types(lines: Iterable[list[str]], segment: Callable[[str], list[str]]) -> Iterator[str]:
    """Yield `word<TAB>sub sub` for each distinct word, by first occurrence; arguments as for `marked`."""
    seen = set()
    for words in lines:
        for word in words:
            if word not in seen:
                seen.add(word)
                yield f"{word}\t{' '.join(segment(word))}\n"


def atoms(atomic_unk: bool) -> set[str]:
    """Return the words that are never split."""
    return {END, UNK} if atomic_unk else {END}


def from_file(path: str, words: list[str]) -> tuple[dict[str, list[str]] | None, Any]:
    """Read (dict: word -> subwords, Lexicon) from a file of segmentations; errors as in `Subwords.learn`."""
    lines = list(numbered_lines(path))
    if any(line.startswith("#") and "Morfessor Baseline" in line for _, line in lines[:1]):
        return None, morphs.Lexicon.of(morphs.parse(path, lines))
    name, segmentations = shown(path), {}
    for number, line in lines:
        if fields := WORD.findall(line):
            word, *subwords = fields
            if not subwords:
                what = f"no subwords of {quoted(word)}"
                raise TiedtoolsError(f"{name}:{number}: {what}; give `word sub sub` in each line")
            if word in segmentations:
                raise TiedtoolsError(f"{name}:{number}: duplicate word {quoted(word)}; remove one line")
            segmentations[word] = subwords
    segmentations.setdefault(UNK, [UNK])
    if missing := [word for word in words if word not in segmentations]:
        others = f" and {len(missing) - 1:,} more of the {len(words):,} words" if missing[1:] else ""
        what = f"has no line for the word {quoted(missing[0])}{others} of the vocabulary"
        advice = "add lines `word sub sub`; `tiedtools segment --types` writes them for a text"
        raise TiedtoolsError(f"{name}: {what}; {advice}")
    return segmentations, morphs.Lexicon.of((1, segmentations[word]) for word in words)


def as_array(lines: Iterable[str]) -> np.ndarray:
    """Encode lines as text, uint8, with a line break after each."""
    return modelfile.as_array("".join(f"{line}\n" for line in lines))


def as_lines(array: np.ndarray) -> list[str]:
    """Decode the lines of a text from `as_array`. Raises ValueError for another type or shape."""
    return modelfile.as_bytes(array).decode().split("\n")[:-1]

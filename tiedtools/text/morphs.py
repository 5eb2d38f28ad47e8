"""Morphs of Morfessor 2.0 Baseline: training with the library, its text format, and segmentation without the library.

Creutz, Lagus 2007, "Unsupervised Models for Morpheme Segmentation and Morphology Learning"; Virpioja, Smit, Groenroos,
Kurimo 2013, "Morfessor 2.0: Python Implementation and Extensions for Morfessor Baseline".
"""

import collections
import contextlib
import math
import random
import re
import shlex
from collections.abc import Callable, Iterable
from typing import Any, BinaryIO

from tiedtools.base.errors import TiedtoolsError, library, quoted
from tiedtools.base.messages import log
from tiedtools.files.modelfile import first_bytes
from tiedtools.text.sentences import BLANKS
from tiedtools.text.sources import counted, numbered_lines, shown

LONGEST_MORPH = 30  # characters; Morfessor's default
LONGEST_LEARNED = 100  # characters; training takes time quadratic in the length
FINISH = 0.005  # training ends when an epoch lowers the cost by less than this per word; Morfessor's default
HEADER = "# Morfessor Baseline segmentation, written by tiedtools\n"
ANALYSIS = re.compile(f"([0-9]{{1,9}}) ([^{BLANKS}]+(?: \\+ [^{BLANKS}]+)*)")
PICKLE = re.compile(rb"\x80[\x02-\x09]")
ADVICE = "give a file that `morfessor-train --save-segmentation` or `tiedtools segment --save` writes"


class Lexicon:
    """Morphs with their counts; segments any word as `morfessor-segment` does.

    The cost of a morph is -log(count / (tokens + words)). A character that is not a morph costs more than any
    segmentation without it, and other new morphs are impossible (Morfessor's `--viterbi-smoothing 0`, the default of
    the command; the library's own default allows new morphs, which have no vectors).

    counts  dict: morph -> its count in the analyses of all words
    words   total count of the words
    """

    def __init__(self, counts: dict[str, int], words: int) -> None:
        self.counts, self.words = counts, words
        total = math.log(max(1, sum(counts.values()) + words))
        self.total, self.costs = total, {morph: total - math.log(count) for morph, count in counts.items()}
        self.longest = min(LONGEST_MORPH, max(map(len, counts), default=1))

    @classmethod
    def of(cls, analyses: Iterable[tuple[int, list[str]]]) -> "Lexicon":
        """Return the Lexicon of analyses, pairs (count of the word, list of its morphs)."""
        counts, words = collections.Counter(), 0
        for count, morphs in analyses:
            words += count
            for morph in morphs:
                counts[morph] += count
        return cls(dict(counts), words)

    def segment(self, word: str) -> list[str]:
        """Find the segmentation of least cost, a list of str, by the Viterbi algorithm.

        Among segmentations of equal cost, the one with the longest last morph is returned, as in Morfessor.
        """
        unknown = {1: len(word) * self.total + 1.0}  # by length
        costs, starts = [0.0], [0]
        for end in range(1, len(word) + 1):
            cost, start = min(
                (costs[start] + self.costs.get(word[start:end], unknown.get(end - start, math.inf)), start)
                for start in range(max(0, end - self.longest), end)
            )
            costs.append(cost)
            starts.append(start)
        morphs, end = [], len(word)
        while end:
            morphs.append(word[starts[end] : end])
            end = starts[end]
        return morphs[::-1]


def learn(
    words: Iterable[str], seed: int, watch: Callable[..., Any] = lambda words, length: words
) -> list[tuple[int, list[str]]]:  # fmt: skip
    """Train Morfessor on words, each with count 1, and return their analyses, sorted: pairs (1, list of morphs).

    The batch algorithm splits recursively, with corpus weight 1; each hyphen is a separate morph. The result depends
    only on the set of words and the seed. Words of more than LONGEST_LEARNED characters are skipped.

    watch  function (words of an epoch, their number) -> the same words, which may show progress

    Raises TiedtoolsError if Morfessor is not installed.
    """
    vocabulary = sorted({word for word in words if len(word) <= LONGEST_LEARNED})
    log.info(f"learning morphs from {counted(len(vocabulary), 'word')}")
    module = morfessor()
    model = module.BaselineModel(forcesplit_list=["-"])
    model.load_data((1, word) for word in vocabulary)
    with contextlib.ExitStack() as stack:
        # Morfessor uses Python's global generator, and prints dots to stderr; both are restored.
        stack.callback(random.setstate, random.getstate())
        stack.callback(setattr, module.utils, "show_progress_bar", module.utils.show_progress_bar)
        stack.callback(setattr, module.baseline, "_progress", getattr(module.baseline, "_progress", None))
        random.seed(seed)
        module.utils.show_progress_bar = False
        module.baseline._progress = lambda words: watch(words, len(words))
        model.train_batch(finish_threshold=FINISH)
    return [(count, morphs) for count, _, morphs in model.get_segmentations()]


def morfessor() -> Any:
    """Import Morfessor. Raises TiedtoolsError if it is not installed."""
    return library("morfessor", "learning morphs needs Morfessor", "subwords")


def read(path: str) -> list[tuple[int, list[str]]]:
    """Read analyses, pairs (count, list of morphs), from Morfessor's text format: `count morph + morph` per line.

    Empty lines and comments (`#`) are skipped. Raises TiedtoolsError for Morfessor's other files: the binary model, a
    pickle, which could run any code, and the lexicon, in which no word is split.
    """
    if PICKLE.match(first_bytes(path)):
        command = f"morfessor --load {shlex.quote(str(path))} --save-segmentation FILE"
        remedy = f"convert it with `{command}`, and give that FILE"
        raise TiedtoolsError(f"{path}: is a binary file, a Python pickle; {remedy}")
    return parse(path, numbered_lines(path))


def parse(path: str, lines: Iterable[tuple[int, str]]) -> list[tuple[int, list[str]]]:
    """Parse (number, line) pairs into analyses; errors as in `read`."""
    name, analyses, words = shown(path), [], set()
    for number, line in lines:
        line = line.rstrip("\r")
        if not line or line.startswith("#"):
            continue
        match = ANALYSIS.fullmatch(line)
        if not match or not int(match[1]):
            raise TiedtoolsError(f"{name}:{number}: expected `count morph + morph`; {ADVICE}")
        morphs = match[2].split(" + ")
        if (word := "".join(morphs)) in words:
            raise TiedtoolsError(f"{name}:{number}: a second analysis of {quoted(word)}; remove one line")
        words.add(word)
        analyses.append((int(match[1]), morphs))
    if not analyses:
        raise TiedtoolsError(f"{name}: is empty; {ADVICE}")
    if all(len(morphs) == 1 for _, morphs in analyses) and any(count > 1 for count, _ in analyses):
        raise TiedtoolsError(f"{name}: no word is split; is this a lexicon or a list of words? {ADVICE}")
    return analyses


def write(file: BinaryIO, analyses: Iterable[tuple[int, list[str]]]) -> None:
    """Write analyses in Morfessor's text format to a binary file."""
    file.write((HEADER + "".join(f"{count} {' + '.join(morphs)}\n" for count, morphs in analyses)).encode())

"""What a language model makes of a text: log probabilities, perplexity, and both as SRILM's `ngram -ppl` prints them.

A model is anything with `start`, `score` and a `vocab`. Log probabilities are natural inside and have base 10 in
what is printed. All results are those of one token after the other; how a text is cut into windows and batches is
only a matter of speed.
"""

import dataclasses
import itertools
import math
import tempfile
from typing import NamedTuple

import numpy as np

from tiedtools.errors import TiedtoolsError
from tiedtools.evaluation.lexicon import NEWLINE, OOV, START, pieces
from tiedtools.figures import finite, in_digits, perplexity
from tiedtools.text.vocab import UNK
from tiedtools.training import scoring

BATCH = 64  # lines scored side by side where each is a text of its own
LN10 = math.log(10)


class Piece(NamedTuple):
    """Some consecutive words of a text: n strings (None where they are not kept), codes int32 [n] as in Lexicon, and
    natural log probabilities float64 [n], -inf where a word cannot be scored."""

    words: list | None
    codes: np.ndarray
    logprobs: np.ndarray


def score(model, ids, targets, state):
    """As scoring.score. Raises TiedtoolsError where the model gives NaN."""
    logprobs, state = scoring.score(model, ids, targets, state)
    return whole(logprobs), state


def whole(logprobs):
    """Log probabilities. Raises TiedtoolsError where one is NaN."""
    if np.isnan(logprobs).any():
        raise TiedtoolsError("the model gives probabilities that are no numbers; train it again")
    return logprobs


class Stream:
    """A text scored bit by bit, as if at once: the state (of one row) goes on, from `state` or the start."""

    def __init__(self, model, state=None):
        self.model, self.state, self.last = model, state or model.start(1), 0

    def score(self, ids):
        """Log probabilities float64 [n] of the next n ids."""
        if not len(ids):
            return np.zeros(0)
        read = np.concatenate([[self.last], ids[:-1]]).astype(np.int32)
        self.last = ids[-1]
        logprobs, self.state = score(self.model, read[:, None], ids[:, None], self.state)
        return logprobs[:, 0]


def score_lines(model, lines, state=None, batch=BATCH):
    """Log probabilities of lines that do not know each other: float64 arrays as long as the arrays of ids in `lines`.

    Each is read after `</s>`, from `state` (of one row) or the start.
    """
    results = [None] * len(lines)
    for rows, read, targets in side_by_side(lines, batch):
        begin = tuple(np.repeat(part, len(rows), axis=1) for part in state) if state else model.start(len(rows))
        logprobs, _ = score(model, read, targets, begin)
        for b, k in enumerate(rows):
            results[k] = logprobs[: len(lines[k]), b]
    return results


def side_by_side(lines, batch=BATCH):
    """Yield (rows, ids, targets): column b of int32 ids and targets [T, B] is lines[rows[b]], read after `</s>`."""
    order = sorted(range(len(lines)), key=lambda k: -len(lines[k]))
    while order:
        # Neighbors in length share a batch, so that at most half of it is padding.
        rows = [k for k in order[:batch] if 2 * len(lines[k]) >= len(lines[order[0]])]
        order = order[len(rows) :]
        targets = np.full((len(lines[rows[0]]), len(rows)), -1, np.int32)
        ids = np.zeros_like(targets)
        for b, k in enumerate(rows):
            targets[: len(lines[k]), b] = lines[k]
            ids[1 : len(lines[k]), b] = lines[k][:-1]
        yield rows, ids, targets


class Lines:
    """As Stream, but every line starts anew; the lines that are whole are scored side by side."""

    def __init__(self, model, batch):
        self.model, self.batch, self.unfinished = model, batch, Stream(model)

    def score(self, ids):
        *whole, rest = np.split(ids, np.flatnonzero(ids == 0) + 1)
        results = []
        if whole:
            results += [self.unfinished.score(whole[0]), *score_lines(self.model, whole[1:], None, self.batch)]
            self.unfinished = Stream(self.model)
        return np.concatenate([*results, self.unfinished.score(rest)])


def score_text(model, lexicon, path, errors="strict", independent=False, batch=None):
    """Yield the scored text at `path` as Pieces.

    independent  start every line anew, `batch` lines side by side; otherwise state goes on over the ends of lines
    batch        of a text in one: cut it into this many streams of equal length, which know nothing of each other;
                 the Pieces are then in no order and have no words
    Memory does not grow with the text. Raises TiedtoolsError at a file that cannot be read or is no text.
    """
    if not independent and (batch or 1) > 1:
        yield from score_streams(model, lexicon, path, errors, batch)
        return
    scorer = Lines(model, batch or BATCH) if independent else Stream(model)
    for words in pieces(path, errors):
        codes = lexicon.codes(words)
        logprobs = np.full(len(codes), -np.inf)
        logprobs[lexicon.readable(codes)] = scorer.score(lexicon.ids(codes))
        yield Piece(words, codes, logprobs)


def score_streams(model, lexicon, path, errors, batch):
    with tempfile.TemporaryFile(prefix="tiedtools-") as file:
        for words in pieces(path, errors):
            codes = lexicon.codes(words)
            readable = lexicon.readable(codes)
            file.write(codes[readable])
            left_out = codes[~readable]
            yield Piece(None, left_out, np.full(len(left_out), -np.inf))
        file.flush()
        codes = np.memmap(file, np.int32, "r")
        ids = lambda codes: np.where(codes == OOV, lexicon.unk or 0, codes).astype(np.int32)
        for at, logprobs in scoring.streams(model, codes, batch, ids=ids):
            yield Piece(None, codes[at], whole(logprobs))


def by_line(scored):
    """The same Pieces cut anew, so that each is a line with its end."""
    kept = []
    for piece in scored:
        ends = np.flatnonzero(piece.codes == 0) + 1
        for i, j in itertools.pairwise([0, *ends.tolist(), len(piece.codes)]):
            kept.append(Piece(piece.words[i:j], piece.codes[i:j], piece.logprobs[i:j]))
            if j > i and piece.codes[j - 1] == 0:
                words, codes, logprobs = zip(*kept)
                yield Piece(list(itertools.chain.from_iterable(words)), np.concatenate(codes), np.concatenate(logprobs))
                kept = []


@dataclasses.dataclass
class Totals:
    """What SRILM counts, in one text or several.

    scores_oovs  words outside the vocabulary have a probability, that of `<unk>`
    words        without the ends of lines, OOVs included
    zeroprobs    predictions of probability 0, which count in no perplexity: of [known words and ends of lines, OOVs]
    nats         summed natural log probabilities: of [known words and ends of lines, OOVs]
    """

    scores_oovs: bool
    sentences: int = 0
    words: int = 0
    oovs: int = 0
    zeroprobs: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(2, np.int64))
    nats: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(2))

    def add(self, piece):
        oov, end = piece.codes == OOV, piece.codes == 0
        self.sentences += int(end.sum())
        self.words += int((~end).sum())
        self.oovs += int(oov.sum())
        zero = np.isneginf(piece.logprobs)
        for k, chosen in enumerate((~oov, oov)):
            self.zeroprobs[k] += np.count_nonzero(chosen & zero)
            self.nats[k] += piece.logprobs[chosen & ~zero].sum()

    def __iadd__(self, other):
        for field in ("sentences", "words", "oovs", "zeroprobs", "nats"):
            setattr(self, field, getattr(self, field) + getattr(other, field))
        return self

    def figures(self, with_oovs):
        """dict: zeroprobs, logprob (base 10), ppl (with line ends), ppl1 (without); None: nothing to divide by."""
        taken = slice(2 if with_oovs else 1)
        zeroprobs, nats = int(self.zeroprobs[taken].sum()), float(self.nats[taken].sum())
        words = self.words - (0 if with_oovs else self.oovs) - zeroprobs
        ppl, ppl1 = perplexity(-nats, words + self.sentences), perplexity(-nats, words)
        return {"zeroprobs": zeroprobs, "logprob": nats / LN10, "ppl": ppl, "ppl1": ppl1}

    def as_dict(self):
        """All figures for JSON: with OOVs where they are scored, and without in `without_oovs`; None: not finite."""
        counts = {"sentences": self.sentences, "words": self.words, "oovs": self.oovs, "oovs_scored": self.scores_oovs}
        return finite({**counts, **self.figures(self.scores_oovs), "without_oovs": self.figures(False)})

    def as_text(self, sentence=False):
        """SRILM's two lines, and, for a text with OOVs that are scored, one without them."""
        found = self.figures(self.scores_oovs)
        text = (
            f"{self.sentences} sentences, {self.words} words, {self.oovs} OOVs\n"
            f"{found['zeroprobs']} zeroprobs, logprob= {found['logprob']:g}"
            f" ppl= {in_digits(found['ppl'], 'g')} ppl1= {in_digits(found['ppl1'], 'g')}\n"
        )
        if self.oovs and self.scores_oovs and not sentence:
            found = self.figures(False)
            text += (
                f"OOVs are scored as {UNK} above; without them: logprob {found['logprob']:g},"
                f" ppl {in_digits(found['ppl'], 'g')}, ppl1 {in_digits(found['ppl1'], 'g')}\n"
            )
        return text


def line_as_text(line, lexicon, source, carried, every_word):
    """A scored line as `ngram -ppl -debug 1` prints it or, with every_word, as -debug 2.

    source   what stands for SRILM's `3gram`: the kind of model
    carried  there is context before the line
    """
    totals = Totals(lexicon.unk is not None)
    totals.add(line)
    text = [" ".join(line.words[:-1]), "\n"]
    context, more = START, carried
    if every_word:
        for code, scored, log10 in zip(
            line.codes.tolist(), lexicon.readable(line.codes).tolist(), (line.logprobs / LN10).tolist()
        ):
            word = UNK if code == OOV else lexicon.words[code]
            found = f"[{source}] {10**log10:g} [ {log10:g} ]" if scored else "[OOV] 0 [ -inf ]"
            text.append(f"\tp( {word} | {context} {'...' if more else ''}) \t= {found}\n")
            if scored:
                context, more = word, True
    return "".join([*text, totals.as_text(sentence=True), "\n"])


def line_as_dict(line, line_number, lexicon, every_word):
    """The same for JSON; `tokens` has each word as it is written and its base-10 log probability, None for -inf."""
    totals = Totals(lexicon.unk is not None)
    totals.add(line)
    found = {"line": line_number, "text": " ".join(line.words[:-1]), **totals.as_dict()}
    if every_word:
        words = [lexicon.words[0] if word == NEWLINE else word for word in line.words]
        found["tokens"] = [
            (word, log10 if math.isfinite(log10) else None)
            for word, log10 in zip(words, (line.logprobs / LN10).tolist())
        ]
    return found

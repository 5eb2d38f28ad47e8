"""Log probabilities and perplexity of texts under a language model, printed in the format of SRILM's `ngram -ppl`.

A model is any object with `start`, `score`, and `vocab`. Log probabilities are natural logarithms; output has base 10.
Results are the same as when scoring one token at a time, from the initial state of each stream of a batch.
"""

import dataclasses
import itertools
import math
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tiedtools.base.errors import TiedtoolsError
from tiedtools.base.messages import finite, in_digits, perplexity
from tiedtools.evaluation.lexicon import NEWLINE, OOV, START, Lexicon, pieces
from tiedtools.network.network import State
from tiedtools.text.sources import counted
from tiedtools.text.vocab import END, UNK
from tiedtools.training import scoring

BATCH = 64  # lines per batch if lines are scored independently
LN10 = math.log(10)
OOV_NBEST = -5  # log10 probability of a word that cannot be scored in a hypothesis
REPEAT = None  # for `mean_probabilities`, the previous word


class Piece(NamedTuple):
    """Consecutive words of a text with their log probabilities."""

    words: Any  # n strings; None: not stored
    codes: np.ndarray  # int32 [n], as in Lexicon
    logprobs: np.ndarray  # float64 [n], natural logarithms; -inf for words that cannot be scored


def score(model: Any, ids: np.ndarray, targets: np.ndarray, state: State) -> tuple[np.ndarray, State]:
    """Score as scoring.score does. Raises TiedtoolsError if the model outputs NaN."""
    logprobs, state = scoring.score(model, ids, targets, state)
    return reject_nan(logprobs), state


def reject_nan(logprobs: np.ndarray) -> np.ndarray:
    """Return log probabilities unchanged. Raises TiedtoolsError if one of them is NaN."""
    if np.isnan(logprobs).any():
        raise TiedtoolsError("the model outputs NaN instead of probabilities; train it again")
    return logprobs


class Stream:
    """Scores a text in pieces; the state, of batch size 1, carries over from `state` or the initial state."""

    def __init__(self, model: Any, state: State | None = None, measure: Callable[..., Any] = score) -> None:
        self.model, self.state, self.last, self.measure = model, state or model.start(1), 0, measure

    def score(self, ids: Any) -> np.ndarray:
        """Return the log probabilities of the next n IDs, float64 [n], or what `measure` returns, [n, ...]."""
        read = np.append(self.last, ids).astype(np.int32)
        self.last = read[-1]
        values, self.state = self.measure(self.model, read[:-1, None], ids[:, None], self.state)
        return values[:, 0]


def score_lines(
    model: Any, lines: Sequence[np.ndarray], state: State | None = None, batch: int = BATCH,
    measure: Callable[..., Any] = score,
) -> list[np.ndarray]:  # fmt: skip
    """Score lines independently: list of n int arrays of IDs -> list of n float64 arrays of log probabilities.

    Each line is read after `</s>`, from `state` or the initial state. Each array of `state` has one row for all lines,
    [N, 1, ...], or a row per line, [N, n, ...].
    """
    results: list[Any] = [None] * len(lines)
    for rows, read, targets in line_batches(lines, batch):
        begin = tuple(rows_of(part, rows) for part in state) if state else model.start(len(rows))
        logprobs, _ = measure(model, read, targets, begin)
        for b, k in enumerate(rows):
            results[k] = logprobs[: len(lines[k]), b]
    return results


def rows_of(part: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return part[:, rows]; a single row, [N, 1, ...], is repeated for all `rows` without copying it."""
    if part.shape[1] > 1:
        return part[:, rows]
    return as_strided(part, (len(part), len(rows), *part.shape[2:]), (part.strides[0], 0, *part.strides[2:]))


def line_batches(lines: Sequence[np.ndarray], batch: int = BATCH) -> Iterator[tuple[Any, np.ndarray, np.ndarray]]:
    """Yield (rows, ids, targets): column b of int32 ids and targets [T, B] is lines[rows[b]], read after `</s>`."""
    order = sorted(range(len(lines)), key=lambda k: -len(lines[k]))
    while order:
        # Lines of similar length share a batch, so that at most half of it is padding.
        rows = [k for k in order[:batch] if 2 * len(lines[k]) >= len(lines[order[0]])]
        order = order[len(rows) :]
        targets = np.full((len(lines[rows[0]]), len(rows)), -1, np.int32)
        ids = np.zeros_like(targets)
        for b, k in enumerate(rows):
            targets[: len(lines[k]), b] = lines[k]
            ids[1 : len(lines[k]), b] = lines[k][:-1]
        yield rows, ids, targets


def rescore(
    model: Any, lexicon: Lexicon, hypotheses: Iterable[tuple[Any, list[str]]], batch: int = BATCH,
    oov_logprob: float = OOV_NBEST,
) -> Iterator[float]:  # fmt: skip
    """Yield the base-10 log probability of each hypothesis, line end included, in order, as for n-best lists.

    hypotheses  iterable of (utterance, list of words); the hypotheses of an utterance are consecutive

    The hypotheses of the first utterance start from the initial state; the hypotheses of each later utterance start
    from the state after the best hypothesis of the previous one. Out-of-vocabulary words are scored as `<unk>`. Without
    `<unk>`, their log10 probability is `oov_logprob`, and the model does not read them.
    """
    stream = Stream(model)
    for _, group in itertools.groupby(hypotheses, key=lambda hypothesis: hypothesis[0]):
        best, best_score = None, -np.inf
        while chunk := list(itertools.islice(group, batch)):
            coded = [lexicon.codes([*words, NEWLINE]) for _, words in chunk]
            lines = [lexicon.ids(codes) for codes in coded]
            for codes, line, logprobs in zip(coded, lines, score_lines(model, lines, stream.state, batch)):
                logprob = float(logprobs.sum()) + LN10 * oov_logprob * (len(codes) - len(line))
                if best is None or logprob > best_score:
                    best, best_score = line, logprob
                yield logprob / LN10
        # The state after the last utterance is not needed, but groupby does not show which utterance is the last.
        stream.score(best)


def fate(oov_logprob: float) -> str:
    """Describe how `rescore` treats words that it cannot score, for Lexicon.log_oovs."""
    return f"given probability 10^{oov_logprob:g}" if oov_logprob else "skipped"


class Lines:
    """Like Stream, but the state is reset at the start of each line; complete lines are scored in batches."""

    def __init__(self, model: Any, batch: int, measure: Callable[..., Any] = score) -> None:
        self.model, self.batch, self.measure, self.unfinished = model, batch, measure, Stream(model, None, measure)

    def score(self, ids: np.ndarray) -> np.ndarray:
        *complete, rest = np.split(ids, np.flatnonzero(ids == 0) + 1)
        results = []
        if complete:
            results.append(self.unfinished.score(complete[0]))
            results += score_lines(self.model, complete[1:], None, self.batch, self.measure)
            self.unfinished = Stream(self.model, None, self.measure)
        return np.concatenate([*results, self.unfinished.score(rest)])


def score_text(
    model: Any, lexicon: Lexicon, path: Any, errors: str = "strict", independent: bool = False, batch: Any = None,
    words: Iterable[list[str]] | None = None, measure: Callable[..., Any] = score,
) -> Iterator[Piece]:  # fmt: skip
    """Score the text at `path` and yield it as Pieces. Memory use does not grow with the text.

    independent  reset the state at the start of each line and score `batch` lines at a time; otherwise the state
                 carries over from line to line, and the text is split into `batch` independent streams of equal length;
                 the Pieces of several streams are in arbitrary order and have no words
    words        the text, in the form of lexicon.pieces, instead of the file at `path`; only for one stream or lines
    measure      function like `score`, whose values [T, B, ...] the Pieces have instead of log probabilities

    Raises TiedtoolsError if the file cannot be read or is not text.
    """
    if independent or (batch or 1) == 1:
        scorer = Lines(model, batch or BATCH, measure) if independent else Stream(model, None, measure)
        for piece in words or pieces(path, errors):
            codes = lexicon.codes(piece)
            values = scorer.score(lexicon.ids(codes))
            logprobs = np.full((len(codes), *values.shape[1:]), -np.inf)
            logprobs[lexicon.readable(codes)] = values
            yield Piece(piece, codes, logprobs)
        return
    with tempfile.TemporaryFile(prefix="tiedtools-") as file:  # the codes of the whole text, to split it
        for words in pieces(path, errors):
            codes = lexicon.codes(words)
            readable = lexicon.readable(codes)
            file.write(codes[readable])
            skipped = codes[~readable]
            yield Piece(None, skipped, np.full(len(skipped), -np.inf))
        file.flush()
        codes = np.memmap(file, np.int32, "r")
        unk = np.int32(lexicon.unk or 0)
        for at, logprobs in scoring.streams(model, codes, batch, ids=lambda part: np.where(part == OOV, unk, part)):
            yield Piece(None, codes[at], reject_nan(logprobs))


def codes(lexicon: Lexicon, words: Iterable[Any]) -> dict[Any, Any]:
    """Map words for `mean_probabilities` to their IDs, -1 for REPEAT. Raises TiedtoolsError for an unknown word."""
    index = {word: -1 if word is REPEAT else lexicon.index.get(NEWLINE if word == END else word) for word in words}
    if unknown := [word for word, code in index.items() if code is None]:
        raise TiedtoolsError(f"{unknown[0]!r} is not in the model's vocabulary; check its spelling")
    return index


def mean_probabilities(
    model: Any, lexicon: Lexicon, path: Any, words: Iterable[Any], errors: str = "strict"
) -> dict[str, tuple[float, float]]:
    """Map each word to its mean predicted probability over the text at `path` and its proportion of the tokens.

    words   words to average; `</s>` stands for a line end, REPEAT for the previous word: the probability of `<unk>`
            (Inan et al. 2017, section 6.4), and of repeating a word (Press and Wolf 2017, section 3)
    errors  as in Decoder

    Raises TiedtoolsError if a word is not in the vocabulary, and as score_text does.
    """
    index = codes(lexicon, words)

    def measure(model: Any, ids: np.ndarray, targets: np.ndarray, state: State) -> tuple[np.ndarray, State]:
        """Return the probability of each word, and whether it is the target, [T, B, words, 2]."""
        guesses = [ids if word is REPEAT else np.full_like(ids, code) for word, code in index.items()]
        values = np.empty((*ids.shape, len(guesses), 2))
        adapts = getattr(model.config, "doc_dim", 0)  # to each target: no guess may precede a true word
        step = 1 if adapts else max(1, len(ids))
        for t in range(0, len(ids), step):
            part = slice(t, t + step)
            for k, guess in enumerate(guesses):
                logprobs, after = score(model, ids[part], guess[part], state)
                values[part, :, k, 0], values[part, :, k, 1] = np.exp(logprobs), targets[part] == guess[part]
            state = score(model, ids[part], targets[part], state)[1] if adapts else after
        return values, state

    sums, predicted = np.zeros((len(index), 2)), 0
    for piece in score_text(model, lexicon, path, errors, measure=measure):
        values = piece.logprobs[lexicon.readable(piece.codes)]
        sums, predicted = sums + values.sum(0), predicted + len(values)
    return {word: (mean, share) for word, (mean, share) in zip(index, (sums / predicted).tolist())}


def by_line(scored: Iterable[Piece]) -> Iterator[Piece]:
    """Regroup Pieces into lines, each with its line end."""
    parts = []
    for piece in scored:
        ends = np.flatnonzero(piece.codes == 0) + 1
        for i, j in itertools.pairwise([0, *ends.tolist(), len(piece.codes)]):
            parts.append(Piece(piece.words[i:j], piece.codes[i:j], piece.logprobs[i:j]))
            if j > i and piece.codes[j - 1] == 0:
                words, codes, logprobs = zip(*parts)
                yield Piece(list(itertools.chain.from_iterable(words)), np.concatenate(codes), np.concatenate(logprobs))
                parts = []


@dataclasses.dataclass
class Totals:
    """SRILM's statistics of one or several texts.

    unk        ID of `<unk>`, which replaces words outside the vocabulary; None: they are not scored
    words      number of words, including words outside the vocabulary, excluding line ends
    outside    number of words outside the vocabulary
    zeroprobs  in-vocabulary words and line ends of probability 0, excluded from perplexities
    unscored   SRILM's OOVs, also excluded: [typed `<unk>` of probability 0, other words without a probability]
    nats       sum of the remaining natural log probabilities: [in-vocabulary words and line ends, other words]
    """

    unk: int | None
    sentences: int = 0
    words: int = 0
    outside: int = 0
    zeroprobs: int = 0
    unscored: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(2, np.int64))
    nats: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(2))

    def add(self, piece: Piece) -> None:
        outside, end, zero = piece.codes == OOV, piece.codes == 0, np.isneginf(piece.logprobs)
        typed = piece.codes == self.unk
        self.sentences += int(end.sum())
        self.words += int((~end).sum())
        self.outside += int(outside.sum())
        self.zeroprobs += int((zero & ~outside & ~typed).sum())
        self.unscored += (zero & typed).sum(), (zero & outside).sum()
        self.nats += [piece.logprobs[group & ~zero].sum() for group in (~outside, outside)]

    def __iadd__(self, other: "Totals") -> "Totals":
        for field in dataclasses.fields(self)[1:]:
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))
        return self

    def figures(self, with_outside: bool = True) -> dict[str, Any]:
        """Return zeroprobs, logprob (base 10), ppl (with line ends), and ppl1 (without) as a dict; None: undefined.

        with_outside  whether to include words outside the vocabulary that are scored
        """
        groups = slice(2 if with_outside else 1)
        unscored, nats = int(self.unscored[groups].sum()), float(self.nats[groups].sum())
        words = self.words - (0 if with_outside else self.outside) - unscored - self.zeroprobs
        ppl, ppl1 = perplexity(-nats, words + self.sentences), perplexity(-nats, words)
        return {"zeroprobs": self.zeroprobs, "logprob": nats / LN10, "ppl": ppl, "ppl1": ppl1}

    def as_dict(self) -> dict[str, Any]:
        """Return all results for JSON; `without_oovs` excludes words outside the vocabulary; None: not finite."""
        counts = {"sentences": self.sentences, "words": self.words, "oovs": int(self.unscored.sum())}
        scored = self.unk is not None
        counts |= {"oovs_scored": scored, "as_unk": self.outside if scored else 0}
        return finite({**counts, **self.figures(), "without_oovs": self.figures(False)})

    def as_text(self, sentence: bool = False) -> str:
        """Format SRILM's two lines and, if words were scored as `<unk>`, a third with the results without them."""
        formatted = lambda of: (f"{of['logprob']:g}", in_digits(of["ppl"], "g"), in_digits(of["ppl1"], "g"))
        logprob, ppl, ppl1 = formatted(self.figures())
        text = f"{self.sentences} sentences, {self.words} words, {self.unscored.sum()} OOVs\n"
        text += f"{self.zeroprobs} zeroprobs, logprob= {logprob} ppl= {ppl} ppl1= {ppl1}\n"
        if self.outside and self.unk is not None and not sentence:
            logprob, ppl, ppl1 = formatted(self.figures(False))
            text += f"scored as {UNK}: {counted(self.outside, 'word')} outside the vocabulary; without:"
            text += f" logprob {logprob}, ppl {ppl}, ppl1 {ppl1}\n"
        return text


def line_as_text(line: Piece, lexicon: Lexicon, source: str, carried: bool, every_word: bool) -> str:
    """Format a scored line as `ngram -ppl -debug 1` does; with `every_word`, as -debug 2 does.

    source   kind of model, printed where SRILM prints the order of the n-gram, such as `3gram`
    carried  whether earlier lines are context
    """
    totals = Totals(lexicon.unk)
    totals.add(line)
    text = [" ".join(line.words[:-1]), "\n"]
    context, more = START, carried
    if every_word:
        columns = line.codes, lexicon.readable(line.codes), line.logprobs / LN10
        for code, scored, log10 in zip(*(column.tolist() for column in columns)):
            word = UNK if code == OOV else lexicon.words[code]
            unscored = code in (OOV, lexicon.unk) and log10 == -math.inf
            figures = "[OOV] 0 [ -inf ]" if unscored else f"[{source}] {10**log10:g} [ {log10:g} ]"
            text.append(f"\tp( {word} | {context} {'...' if more else ''}) \t= {figures}\n")
            if scored:
                context, more = word, True
    return "".join([*text, totals.as_text(sentence=True), "\n"])


def line_as_dict(line: Piece, line_number: int, lexicon: Lexicon, every_word: bool) -> dict[str, Any]:
    """Return a scored line as a dict for JSON; `tokens` has each word as written and its log10 probability or None."""
    totals = Totals(lexicon.unk)
    totals.add(line)
    result = {"line": line_number, "text": " ".join(line.words[:-1]), **totals.as_dict()}
    if every_word:
        words = [lexicon.words[0] if word == NEWLINE else word for word in line.words]
        logs = zip(words, (line.logprobs / LN10).tolist())
        result["tokens"] = [(word, log10 if math.isfinite(log10) else None) for word, log10 in logs]
    return result

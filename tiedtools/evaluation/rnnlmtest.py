"""Reproduce the output of Mikolov's rnnlm 0.4 with -test, -nbest, and -gen.

Out-of-vocabulary words (OOVs) are read as zero vectors, and not predicted. `write` is called with the strings to
print. `lm_prob` is the path of another model's probabilities: one line per token, line ends and OOVs included, that
begins with the number. `weight` is this model's weight in the interpolation of both. `debug=0` omits the totals.
"""

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tiedtools.base.errors import TiedtoolsError
from tiedtools.base.messages import in_digits, log, perplexity
from tiedtools.evaluation import continuation
from tiedtools.evaluation.documents import without_resets
from tiedtools.evaluation.lexicon import NEWLINE, Lexicon, lines, pieces
from tiedtools.evaluation.pairfiles import as_number
from tiedtools.evaluation.perplexity import BATCH, LN10, OOV_NBEST, Stream, score, score_lines
from tiedtools.text.sources import byte_lines, open_source, shown

# log10 probability of an OOV by this model if the other model knows the word; OOV_NBEST if neither does.
OOV_TEST = -8


def test(
    model: Any, path: Any, write: Callable[[str], object], lm_prob: str | None = None, weight: float = 0.75,
    dynamic: float = 0.0, debug: int = 1, errors: str = "strict",
) -> None:  # fmt: skip
    """Print the log probability and perplexity of a text; the state carries over from line to line.

    dynamic  learning rate of dynamic evaluation, which trains on each word after predicting it and changes the model's
             parameters; 0: none
    debug    2: also print each word
    errors   as in Decoder

    Raises TiedtoolsError if the text is empty, the model diverges, or lm_prob ends too early or has an invalid line.
    """
    lexicon, other, totals, count = Lexicon(model.vocab), probabilities(lm_prob), np.zeros(3), 0
    texts = (lexicon.codes(words) for words in pieces(path, errors))
    if dynamic:
        texts = [np.concatenate(list(texts))]
    scored = functools.partial(model.learn, lr=dynamic) if dynamic else Stream(model).score
    if debug > 1:
        columns, width = ("P(LM)           ", 50) if lm_prob else ("", 34)
        write(f"Index   P(NET)          {columns}Word\n{'-' * width}\n")
    for codes in texts:
        logprobs, q = scored(codes), np.fromiter(other, float, len(codes))
        if dynamic and not np.isfinite(logprobs).all():
            raise TiedtoolsError(f"{shown(path)}: dynamic evaluation diverged; lower `dynamic={dynamic:g}`")
        counted = (codes >= 0) | (q > 0)
        totals += log10s(codes, logprobs, q, weight)[:, counted].sum(1)
        count += np.count_nonzero(counted)
        if debug > 1:
            write(table(codes, np.exp(logprobs), q if lm_prob else None, lexicon.words))
    warn_if_unfinished(other, lm_prob)
    if debug:
        write(as_text(totals, count, lm_prob and weight))


def nbest(
    model: Any, path: str, write: Callable[[str], object], lm_prob: str | None = None, weight: float = 0.75,
    debug: int = 1, errors: str = "strict",
) -> None:  # fmt: skip
    """Print the log10 probability of each hypothesis, a line `utterance words ...`, under the interpolated models.

    As in rnnlm, the hypotheses of the first utterance start from the state after a line end, read from a hidden state
    of zeros; later hypotheses start from the state after the first hypothesis of the previous utterance. The n-gram
    features continue from the preceding line, even of the same utterance. With `independent`, line ends reset both.
    Errors as in `test`.
    """
    lexicon, other, totals, count = Lexicon(model.vocab), probabilities(lm_prob), np.zeros(3), 0
    hypotheses = ((words[0], [*words[1:], NEWLINE]) for _, words in lines(path, errors) if words)
    names = "independent", "learn_start", "direct"
    independent, learned, direct = (getattr(model.config, name, False) for name in names)
    if independent:
        model = without_resets(model)
    h, *rest = model.start(1)
    if not learned:
        line_end = np.zeros((1, 1), np.int32)
        _, (h, *_) = score(model, line_end, line_end - 1, (np.zeros_like(h), *rest))
    stream = Stream(model, (h, *rest))
    before = rest[1] if direct and not independent else None
    for _, group in itertools.groupby(hypotheses, key=lambda hypothesis: hypothesis[0]):
        first = None
        while chunk := [lexicon.codes(words) for _, words in itertools.islice(group, BATCH)]:
            first, begin = chunk[0] if first is None else first, stream.state
            if before is not None:
                last, before = preceding(chunk, before)
                begin = *begin[:2], last, begin[3]
            for codes, logprobs in zip(chunk, score_lines(model, chunk, begin)):
                q = np.fromiter(other, float, len(codes))
                logs = log10s(codes, logprobs, q, weight if lm_prob else 1.0)
                logs[:, codes < 0] = np.where(q > 0, logs[1], OOV_NBEST)[codes < 0]
                write(f"{logs[2].sum():f}\n")
                totals += logs.sum(1)
                count += len(codes)
        if independent:
            stream.state = model.start(1)
        else:
            stream.score(first)
    if not count:
        raise TiedtoolsError(f"{shown(path)}: no hypotheses; give lines of an utterance ID and words")
    warn_if_unfinished(other, lm_prob)
    if debug:
        write(as_text(totals, count, lm_prob and weight))


def preceding(lines: list[np.ndarray], last: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the last words before each of n consecutive lines, int32 [1, n, order], newest first, and after all lines.

    last  the last words before the first line, [1, 1, order]
    """
    rows = [last[0, 0]]
    for codes in lines:
        rows.append(np.concatenate([codes[-2::-1], [0], rows[-1]])[: len(rows[-1])])
    words = np.array([rows], np.int32)
    return words[:, :-1], words[:, -1:]


def generate(model: Any, words: int, write: Callable[[str], object], seed: int = 1) -> None:
    """Print `words` words sampled from the model; line ends count as words."""
    choose = functools.partial(continuation.draw, rng=np.random.default_rng(seed))
    for word in itertools.islice(continuation.generate(model, choose), words):
        write(f"{model.vocab.words[word]} " if word else "\n")


def probabilities(path: str | None) -> Iterator[float]:
    """Yield the number at the start of each line of the file at `path`; None: yield zeros endlessly."""
    if path is None:
        yield from itertools.repeat(0.0)
    number = 0
    with open_source(path) as file:
        for number, line in enumerate(byte_lines(file, shown(path)), 1):
            words = line.split(maxsplit=1)
            p = as_number(words[0].decode("latin-1")) if words else None
            if p is None or not 0 <= p <= 1:
                raise TiedtoolsError(f"{shown(path)}:{number}: not a probability; give one per line and token")
            yield p
    raise TiedtoolsError(f"{shown(path)}:{number + 1}: the file ends too early; give a probability for each token")


def warn_if_unfinished(other: Iterator[float], path: str | None) -> None:
    """Warn if `other`, the `probabilities` of a file, has lines left: the file may belong to another text."""
    if path is not None:
        with contextlib.suppress(TiedtoolsError):  # raised at the end of the file
            next(other)
            log.warning(f"{shown(path)}: has more lines than the text has words and line ends; is it for this text?")


def log10s(codes: np.ndarray, logprobs: np.ndarray, q: np.ndarray, weight: float) -> np.ndarray:
    """Return the log10 probabilities of n tokens by this model, the other model (q [n]), and both: float64 [3, n]."""
    known = codes >= 0
    p = np.where(known, np.exp(logprobs), 0)
    with np.errstate(divide="ignore"):
        net = np.where(known, logprobs / LN10, OOV_TEST)
        return np.stack([net, np.log10(q), np.log10(weight * p + (1 - weight) * q)])


def table(codes: np.ndarray, p: np.ndarray, q: np.ndarray | None, words: list[str]) -> str:
    """Format a line for each token; q None: there is no other model."""
    text = []
    for k, code in enumerate(codes.tolist()):
        second = "" if q is None else f"{q[k]:.10f}\t" if code >= 0 else "0\t\t"
        text.append(f"{code}\t{p[k]:.10f}\t{second}{words[code]}\n" if code >= 0 else f"-1\t0\t\t{second}OOV\n")
    return "".join(text)


def as_text(totals: np.ndarray, count: Any, weight: Any) -> str:
    """Format the totals of log10 probabilities, [3] as in `log10s`; weight None: there is no other model."""
    ppls = [in_digits(perplexity(-total * LN10, count), "f") for total in totals]
    text = "\ntest log probability: {:f}\n{}\nPPL net: {}\n{}"
    if weight is None:
        return text.format(totals[0], "", ppls[0], "")
    logs = f"test log probability given by other lm: {totals[1]:f}\n"
    logs += f"test log probability {weight:f}*rnn + {1 - weight:f}*other_lm: {totals[2]:f}\n"
    return text.format(totals[0], logs, ppls[0], f"PPL other: {ppls[1]}\nPPL combine: {ppls[2]}\n")

"""What Mikolov's rnnlm 0.4 prints with -test, -nbest and -gen.

Words outside the vocabulary (OOVs) are no words to the model: it goes on without one, and does not predict them.
`write` is a function of a string; lm_prob the path of another model's probabilities, a line a token, line ends and OOVs
included, the number first; weight that of this model where both are mixed; debug 0 leaves out the totals.
"""

import contextlib
import functools
import itertools

import numpy as np

from tiedtools.errors import TiedtoolsError
from tiedtools.evaluation import continuation
from tiedtools.evaluation.lexicon import NEWLINE, Lexicon, lines, pieces
from tiedtools.evaluation.perplexity import BATCH, LN10, Stream, score, score_lines
from tiedtools.figures import in_digits, perplexity
from tiedtools.messages import log
from tiedtools.text.sources import byte_lines, open_source, shown

# log10 probabilities of an OOV: beside another model that knows it, and in n-best lists where none does.
OOV_BESIDE, OOV_ALONE = -8, -5


def test(model, path, write, lm_prob=None, weight=0.75, dynamic=0.0, debug=1, errors="strict"):
    """The probability of a text, which is read in one go.

    dynamic  learning rate at which the model learns each word after predicting it; 0: it does not. Parameters change
    debug    2: every word, too
    errors   as of text.Decoder

    Raises TiedtoolsError for an empty text, where the model diverges, and where lm_prob is too short or has a
    line that is no probability.
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
            raise TiedtoolsError(
                f"{shown(path)}: the model diverged while it learned from it; lower `dynamic={dynamic:g}`"
            )
        counted = (codes >= 0) | (q > 0)
        totals += log10s(codes, logprobs, q, weight)[:, counted].sum(1)
        count += np.count_nonzero(counted)
        if debug > 1:
            write(table(codes, np.exp(logprobs), q if lm_prob else None, lexicon.words))
    tell_rest(other, lm_prob)
    if debug:
        write(as_text(totals, count, lm_prob and weight))


def nbest(model, path, write, lm_prob=None, weight=0.75, debug=1, errors="strict"):
    """log10 probability of each hypothesis, a line `utterance words ...`, mixed with the other model's.

    Those of an utterance start from what the model knows after the first hypothesis of the utterance before. (In rnnlm,
    n-gram features see the words of the very line before; here the context is whole.) Errors as of `test`.
    """
    lexicon, other, totals, count = Lexicon(model.vocab), probabilities(lm_prob), np.zeros(3), 0
    hypotheses = ((words[0], [*words[1:], NEWLINE]) for _, words in lines(path, errors) if words)
    # As there: the end of a line has been read, with nothing before it.
    h, *rest = model.start(1)
    line_end = np.zeros((1, 1), np.int32)
    _, (h, *_) = score(model, line_end, line_end - 1, (np.zeros_like(h), *rest))
    state = h, *rest
    for _, group in itertools.groupby(hypotheses, key=lambda hypothesis: hypothesis[0]):
        first = None
        while chunk := [lexicon.codes(words) for _, words in itertools.islice(group, BATCH)]:
            first = chunk[0] if first is None else first
            for codes, logprobs in zip(chunk, score_lines(model, chunk, state)):
                q = np.fromiter(other, float, len(codes))
                logs = log10s(codes, logprobs, q, weight if lm_prob else 1.0)
                logs[:, codes < 0] = np.where(q > 0, logs[1], OOV_ALONE)[codes < 0]
                write(f"{logs[2].sum():f}\n")
                totals += logs.sum(1)
                count += len(codes)
        stream = Stream(model, state)
        stream.score(first)
        state = stream.state
    if not count:
        raise TiedtoolsError(f"{shown(path)}: no hypotheses; give lines of an utterance's id and words")
    tell_rest(other, lm_prob)
    if debug:
        write(as_text(totals, count, lm_prob and weight))


def generate(model, words, write, seed=1):
    """So many words drawn from the model, line ends counted."""
    choose = functools.partial(continuation.draw, rng=np.random.default_rng(seed))
    for word in itertools.islice(continuation.generate(model, choose), words):
        write(f"{model.vocab.words[word]} " if word else "\n")


def probabilities(path):
    """Yield the number that each line begins with; zeros without end where there is no path."""
    if path is None:
        yield from itertools.repeat(0.0)
    number = 0
    with open_source(path) as file:
        for number, line in enumerate(byte_lines(file, shown(path)), 1):
            try:
                p = float(line.split(maxsplit=1)[0])
            except (IndexError, ValueError):
                p = -1.0
            if not 0 <= p <= 1 or b"_" in line.split(maxsplit=1)[0]:
                raise TiedtoolsError(f"{shown(path)}:{number}: is no probability; give one a line for each token")
            yield p
    raise TiedtoolsError(f"{shown(path)}:{number + 1}: the file ends too early; give a probability for each token")


def tell_rest(other, path):
    """Tell where `probabilities` of a file have more to give: it may be that of another text."""
    if path is not None:
        with contextlib.suppress(TiedtoolsError):  # its end
            next(other)
            log.warning(f"{shown(path)}: has more lines than there are words and line ends; is it of the same text?")


def log10s(codes, logprobs, q, weight):
    """float64 [3, n]: log10 probability of each token by the model, by the other one (q [n]), and by both mixed."""
    known = codes >= 0
    p = np.where(known, np.exp(logprobs), 0)
    with np.errstate(divide="ignore"):
        net = np.where(known, logprobs / LN10, OOV_BESIDE)
        return np.stack([net, np.log10(q), np.log10(weight * p + (1 - weight) * q)])


def table(codes, p, q, words):
    """The lines of single tokens; q None: there is no other model."""
    text = []
    for k, code in enumerate(codes.tolist()):
        beside = "" if q is None else f"{q[k]:.10f}\t" if code >= 0 else "0\t\t"
        text.append(f"{code}\t{p[k]:.10f}\t{beside}{words[code]}\n" if code >= 0 else f"-1\t0\t\t{beside}OOV\n")
    return "".join(text)


def as_text(totals, count, weight):
    """The last lines, from summed log10 probabilities [3]; weight None: there is no other model."""
    ppls = [in_digits(perplexity(-total * LN10, count), "f") for total in totals]
    text = "\ntest log probability: {:f}\n{}\nPPL net: {}\n{}"
    if weight is None:
        return text.format(totals[0], "", ppls[0], "")
    logs = (
        f"test log probability given by other lm: {totals[1]:f}\n"
        f"test log probability {weight:f}*rnn + {1 - weight:f}*other_lm: {totals[2]:f}\n"
    )
    return text.format(totals[0], logs, ppls[0], f"PPL other: {ppls[1]}\nPPL combine: {ppls[2]}\n")

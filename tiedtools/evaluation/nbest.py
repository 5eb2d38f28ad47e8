"""Rescore hypotheses, such as the n-best lists of a speech recognizer, with a language model."""

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from tiedtools.evaluation.lexicon import NEWLINE, Lexicon
from tiedtools.evaluation.perplexity import BATCH, LN10, Stream, score_lines
from tiedtools.evaluation.rnnlmtest import OOV_NBEST


def rescore(
    model: Any, lexicon: Lexicon, hypotheses: Iterable[tuple[Any, list[str]]], batch: int = BATCH,
    oov_logprob: float = OOV_NBEST,
) -> Iterator[float]:  # fmt: skip
    """Yield the base-10 log probability of each hypothesis, line end included, in order.

    hypotheses  iterable of (utterance, list of words); the hypotheses of an utterance are consecutive

    The hypotheses of the first utterance start from the initial state; the hypotheses of each later utterance start
    from the state after the best hypothesis of the previous one. Out-of-vocabulary words are scored as `<unk>`. Without
    `<unk>`, their log10 probability is `oov_logprob`, and the model does not read them.
    """
    state = model.start(1)
    for _, group in itertools.groupby(hypotheses, key=lambda hypothesis: hypothesis[0]):
        best, best_score = None, -np.inf
        while chunk := list(itertools.islice(group, batch)):
            coded = [lexicon.codes([*words, NEWLINE]) for _, words in chunk]
            lines = [lexicon.ids(codes) for codes in coded]
            for codes, line, logprobs in zip(coded, lines, score_lines(model, lines, state, batch)):
                logprob = float(logprobs.sum()) + LN10 * oov_logprob * (len(codes) - len(line))
                if best is None or logprob > best_score:
                    best, best_score = line, logprob
                yield logprob / LN10
        # The state after the last utterance is not needed, but groupby does not show which utterance is the last.
        stream = Stream(model, state)
        stream.score(best)
        state = stream.state


def fate(oov_logprob: float) -> str:
    """Describe how `rescore` treats words that it cannot score, for Lexicon.tell_oovs."""
    return f"given probability 10^{oov_logprob:g}" if oov_logprob else "skipped"

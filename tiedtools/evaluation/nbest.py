"""Rescore hypotheses, such as the n-best lists of a speech recognizer, with a language model."""

import itertools

import numpy as np

from tiedtools.evaluation.lexicon import NEWLINE
from tiedtools.evaluation.perplexity import BATCH, LN10, Stream, score_lines


def rescore(model, lexicon, hypotheses, batch=BATCH):
    """Yield the base-10 log probability of each hypothesis, line end included, in order.

    hypotheses  iterable of (utterance, list of words); those of an utterance are consecutive

    The hypotheses of the first utterance start from the initial state, those of each later one from the state after the
    best hypothesis of the utterance before. Out-of-vocabulary words are scored as `<unk>` or, without it, skipped.
    """
    state = model.start(1)
    for _, group in itertools.groupby(hypotheses, key=lambda hypothesis: hypothesis[0]):
        best, best_score = None, -np.inf
        while chunk := list(itertools.islice(group, batch)):
            lines = [lexicon.ids(lexicon.codes([*words, NEWLINE])) for _, words in chunk]
            for line, logprobs in zip(lines, score_lines(model, lines, state, batch)):
                logprob = float(logprobs.sum())
                if best is None or logprob > best_score:
                    best, best_score = line, logprob
                yield logprob / LN10
        # The state after the last utterance is not needed, but groupby does not tell which is the last.
        stream = Stream(model, state)
        stream.score(best)
        state = stream.state

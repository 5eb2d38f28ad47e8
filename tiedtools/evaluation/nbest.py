"""Rescoring of hypotheses, those of a speech recogniser for example."""

import itertools

import numpy as np

from tiedtools.evaluation.lexicon import NEWLINE
from tiedtools.evaluation.perplexity import BATCH, LN10, Stream, score_lines


def rescore(model, lexicon, hypotheses, batch=BATCH):
    """Yield the base-10 log probability of each hypothesis with its line's end, in order, as they are scored.

    hypotheses  iterable of (utterance, list of words)

    All hypotheses of an utterance start from one state; those of the next utterance, where `utterance` changes, from
    the state behind the best of them. With one `utterance` for all, every hypothesis starts a text.
    Words that cannot be scored (no `<unk>`) are left out.
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
        # A single group ends here only with the text itself, and then nobody wants the state.
        stream = Stream(model, state)
        stream.score(best)
        state = stream.state

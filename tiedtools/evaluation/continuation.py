"""How a text goes on, by a language model: its most probable next words, or words drawn from it."""

import numpy as np

from tiedtools.errors import TiedtoolsError
from tiedtools.evaluation.neighbours import largest
from tiedtools.evaluation.perplexity import score
from tiedtools.training.scoring import TIME


def read(model, ids, state):
    """Log probabilities float64 [V] of the word after `ids` (at least one), and the state (of one row) behind them.

    Raises TiedtoolsError where the model gives NaN.
    """
    ids = np.asarray(ids, np.int32)[:, None]
    cut = (len(ids) - 1) // TIME * TIME
    if cut:
        _, state = score(model, ids[:cut], np.full((cut, 1), -1, np.int32), state)
    logprobs, state = model.predict(ids[cut:], state)
    if np.isnan(logprobs).any():
        raise TiedtoolsError("the model gives probabilities that are no numbers; train it again")
    return np.minimum(logprobs[0], 0.0), state  # above 0 by rounding, of absurdly large scores


def most_probable(logprobs, top):
    """The `top` most probable words: list of (id, probability), the most probable first, equal ones by id."""
    ids = largest(logprobs, top)
    return list(zip(ids.tolist(), np.exp(logprobs[ids]).tolist()))


def draw(logprobs, rng, temperature=1.0, top_k=None, banned=None):
    """One word's id, drawn with probability proportional to p ** (1 / temperature); 0: always the most probable word.

    top_k   draw among the k most probable words only
    banned  an id that is never drawn
    """
    scores = np.array(logprobs)
    if banned is not None:
        scores[banned] = -np.inf
    candidates = largest(scores, top_k) if top_k else np.flatnonzero(scores > -np.inf)
    if not len(candidates):
        raise TiedtoolsError("the model gives every word that may follow the probability 0")
    scores = scores[candidates]
    if not temperature:
        return int(candidates[scores.argmax()])
    with np.errstate(over="ignore"):
        weights = np.exp((scores - scores.max()) / temperature)
    bounds = np.cumsum(weights)
    return int(candidates[np.searchsorted(bounds, rng.random() * bounds[-1], side="right")])


def generate(model, choose, prompt=None):
    """Yield ids without end, 0 at each line's end; choose(logprobs [V]) takes one.

    prompt  ids that every line starts with (they are not among those yielded), each line from `</s>` anew; None: one
            text, whose state goes on from line to line
    """
    after_prompt = logprobs, state = read(model, [0, *([] if prompt is None else prompt)], model.start(1))
    while True:
        word = choose(logprobs)
        yield word
        logprobs, state = after_prompt if prompt is not None and word == 0 else read(model, [word], state)

"""Continue a text with a language model: its most probable next words, or words sampled from it."""

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tiedtools.base.errors import TiedtoolsError
from tiedtools.evaluation.perplexity import reject_nan, score
from tiedtools.network.network import State
from tiedtools.training.scoring import TIME
from tiedtools.vectors.neighbors import largest

Ids = Sequence[int] | np.ndarray


def read(model: Any, ids: Ids, state: State) -> tuple[np.ndarray, State]:
    """Read `ids` (at least one); return the next word's log probabilities, float64 [V], and the state after `ids`.

    The state has batch size 1. Raises TiedtoolsError if the model outputs NaN.
    """
    ids = np.asarray(ids, np.int32)[:, None]
    cut = (len(ids) - 1) // TIME * TIME
    if cut:
        adapts = getattr(model.config, "doc_dim", 0)  # to the words that it predicts
        _, state = score(model, ids[:cut], ids[1 : cut + 1] if adapts else np.full((cut, 1), -1, np.int32), state)
    logprobs, state = model.predict(ids[cut:], state)
    return np.minimum(reject_nan(logprobs)[0], 0.0), state  # rounding of extremely large scores can exceed 0


def most_probable(logprobs: np.ndarray, top: int) -> list[tuple[int, float]]:
    """List the `top` most probable words as (id, probability), most probable first, ties by ID."""
    ids = largest(logprobs, top)
    return list(zip(ids.tolist(), np.exp(logprobs[ids]).tolist()))


def draw(
    logprobs: np.ndarray, rng: np.random.Generator, temperature: float = 1.0, top_k: int | None = None,
    banned: int | None = None,
) -> int:  # fmt: skip
    """Sample a word ID with probability proportional to p ** (1 / temperature); temperature 0: the most probable word.

    top_k   sample only from the k most probable words
    banned  an ID that is never sampled

    Raises TiedtoolsError if all other words have probability 0.
    """
    scores = np.array(logprobs)
    if banned is not None:
        scores[banned] = -np.inf
    candidates = largest(scores, top_k) if top_k else np.flatnonzero(scores > -np.inf)
    if not len(candidates):
        raise TiedtoolsError("the model assigns probability 0 to every allowed next word; train it again")
    scores = scores[candidates]
    if not temperature:
        return int(candidates[scores.argmax()])
    with np.errstate(over="ignore", under="ignore"):
        bounds = np.cumsum(np.exp((scores - scores.max()) / temperature))
    return int(candidates[np.searchsorted(bounds, rng.random() * bounds[-1], side="right")])


def generate(model: Any, choose: Callable[[np.ndarray], int], prompt: Ids | None = None) -> Iterator[int]:
    """Generate word IDs endlessly, with 0 at each line end; choose(logprobs [V]) picks the next ID.

    prompt  IDs that begin every line and are not yielded; each line then starts from the state after `</s>`. None:
            generate one text, with the state carried over from line to line
    """
    after_prompt = logprobs, state = read(model, [0, *([] if prompt is None else prompt)], model.start(1))
    while True:
        word = choose(logprobs)
        yield word
        logprobs, state = after_prompt if prompt is not None and word == 0 else read(model, [word], state)


def sampled(
    model: Any, words_of: list[str], prompt: Ids | None, lines: int | None, words: int | None, seed: int,
    **settings: Any
) -> Iterator[str | None]:  # fmt: skip
    """Yield sampled words, and None at the end of each line, until a limit is reached.

    words_of      list of the vocabulary's words by ID
    prompt        see `generate`
    lines, words  limits, at least 1; neither: 10 lines. A line cut off by `words` also ends in None
    settings      keyword arguments of `draw`
    """
    lines = 10 if lines is None and words is None else lines
    for word in generate(model, functools.partial(draw, rng=np.random.default_rng(seed), **settings), prompt):
        if word:
            yield words_of[word]
            words = words and words - 1
        else:
            lines = lines and lines - 1
        if not word or words == 0:
            yield None
        if words == 0 or lines == 0:
            return

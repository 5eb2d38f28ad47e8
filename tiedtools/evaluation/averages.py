"""Average the predicted probabilities of single words over a text.

Used for the probability of `<unk>` (Inan et al. 2017, section 6.3) and of repeating the previous word (Press and Wolf
2017, section 3).
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from tiedtools.base.errors import TiedtoolsError
from tiedtools.evaluation.lexicon import NEWLINE, Lexicon, pieces
from tiedtools.evaluation.perplexity import score
from tiedtools.text.vocab import END

REPEAT = None


def mean_probabilities(
    model: Any, lexicon: Lexicon, path: Any, words: Iterable[Any], errors: str = "strict"
) -> dict[str, tuple[float, float]]:
    """Map each word to its mean predicted probability over the text at `path` and its proportion of the tokens.

    words   words to average; `</s>` stands for a line end, REPEAT for the previous word
    errors  as in Decoder

    Raises TiedtoolsError if a word is not in the vocabulary, and as score_text does.
    """
    index = {word: -1 if word is REPEAT else lexicon.index.get(NEWLINE if word == END else word) for word in words}
    for word, code in index.items():
        if code is None:
            raise TiedtoolsError(f"{word!r} is not in the model's vocabulary; check its spelling")
    sums, counts, predicted = np.zeros(len(index)), np.zeros(len(index), np.int64), 0
    state, last = model.start(1), 0
    for tokens in pieces(path, errors):
        ids = lexicon.ids(lexicon.codes(tokens))
        if not len(ids):
            continue
        read = np.concatenate([[last], ids[:-1]]).astype(np.int32)[:, None]
        for k, (word, code) in enumerate(index.items()):
            targets = read if word is REPEAT else np.full_like(read, code)
            logprobs, after = score(model, read, targets, state)
            sums[k] += np.exp(logprobs).sum()
            counts[k] += np.count_nonzero(ids == targets[:, 0])
        state, last, predicted = after, ids[-1], predicted + len(ids)
    return {word: (float(sums[k]) / predicted, int(counts[k]) / predicted) for k, word in enumerate(index)}

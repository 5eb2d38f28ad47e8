"""Training for a permutation test: documents are exchanged between two texts at random, and models trained on both."""

from typing import Any

import numpy as np

from tiedtools.base.errors import TiedtoolsError
from tiedtools.base.messages import log
from tiedtools.models.word2vec.config import Config, Resampling
from tiedtools.models.word2vec.manyruns import ManyRuns, TrainedRuns, documents_of
from tiedtools.models.word2vec.trainer import Word2VecTrainer
from tiedtools.text.encoding import EncodedText


class PermutedRuns(ManyRuns):
    """ManyRuns whose runs 2 m and 2 m + 1, from 0, are the sides of permutation m; permutation 0 exchanges nothing.

    Sides keep their numbers of documents. The documents of a side are always in random order, also in permutation 0:
    the permutations are then exchangeable. Both sides start from the same seed, since only their texts should differ.
    """

    kind = "a permutation test"

    def __init__(self, model: TrainedRuns, text: EncodedText, bounds: np.ndarray, first: int, *files: Any) -> None:
        self.first = first  # number of documents of the first text
        super().__init__(model, text, bounds, *files)

    @property
    def documents(self) -> np.ndarray:
        return np.append(self.bounds, self.first)

    def order(self, k: int) -> np.ndarray:
        permutation, side = divmod(k, 2)
        rng, documents = np.random.default_rng([self.model.config.seed, permutation]), len(self.bounds) - 1
        if permutation:
            return np.split(rng.permutation(documents), [self.first])[side]
        return [rng.permutation(self.first), self.first + rng.permutation(documents - self.first)][side]


class PermutationTrainer(Word2VecTrainer):
    """Trains the models of a permutation test of two texts; `model` is then a TrainedRuns, see PermutedRuns."""

    def __init__(
        self, config: Config, texts: list[Any], *files: Any, permutations: int, document: str, **options: Any
    ) -> None:
        if texts[0] == texts[1]:
            raise TiedtoolsError(f"{texts[0]}: occurs twice; give two texts")
        resampling = Resampling(2 * (permutations + 1), "shuffle", document)
        super().__init__(config, texts, *files, resampling=resampling, **options)

    def make(self, text: EncodedText) -> TrainedRuns:
        model = super().make(text)
        model.training["seeds"] = [(self.config.seed + k // 2) % 2**32 for k in range(len(model))]
        return model

    def begin(self, model: TrainedRuns, text: EncodedText, resume: bool) -> PermutedRuns:
        bounds = documents_of(text, self.marks, "shuffle")
        files = self.files.checkpoint, self.files.checkpoint_minutes, resume
        texts = " and ".join(map(str, self.texts))
        if not self.marks.files:
            raise TiedtoolsError(f"{texts}: one is empty; give two texts")
        after_first = np.flatnonzero(text.ids == 0)[self.marks.files[0] - 1] + 1
        first = int(np.searchsorted(bounds[:-1], after_first))
        if not all(part.any() for part in np.split(text.ids, [after_first])):
            raise TiedtoolsError(f"{texts}: one has no word of the vocabulary; lower `min_count`")
        if len(bounds) == 3:
            what = "one document each, so that nothing can be exchanged; choose another `document`"
            raise TiedtoolsError(f"{texts}: {what}")
        log.info(f"{first:,} and {len(bounds) - 1 - first:,} documents (one per {self.marks.kind})")
        return PermutedRuns(model, text, bounds, first, *files)

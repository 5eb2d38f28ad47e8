"""Loss of a word2vec model on a held-out text."""

import numpy as np

from tiedtools.base import interrupts
from tiedtools.kernels.base.scalar import mix
from tiedtools.kernels.word2vec import sampling
from tiedtools.models.word2vec.workspaces import OwnNegatives
from tiedtools.training import hogwild


class HeldOut:
    """Scores the model of a Run on an EncodedText with the run's vocabulary.

    cuts  bounds of the pieces that threads take, int64 [pieces + 1]

    Subsampling, windows, and negatives are drawn as in training, separately for each target and with the same seeds at
    every call. Losses of different epochs thus differ only by the model, and do not depend on the number of threads.
    """

    def __init__(self, run, text, cuts):
        self.run, self.text, self.cuts = run, text, cuts
        config, longest = run.model.config, int(np.diff(cuts).max())
        self.workspaces = [OwnNegatives(config, longest, run.longest_path) for _ in range(config.threads)]

    def loss(self):
        """Return the mean loss in nats per prediction; None without predictions."""
        totals = np.zeros((len(self.cuts) - 1, 2))

        def work(thread, piece):
            start, end = self.cuts[piece : piece + 2]
            own, seed = self.workspaces[thread], np.uint64(mix(np.uint64(piece)))
            ids = self.text.read(start, own.ids[: end - start])
            own.train(self.run, totals[piece], sampling.subsample(*own.text, ids, self.run.thresholds, seed), 0.0, seed)

        tick = (lambda: None) if self.run.defers else interrupts.check
        hogwild.run(work, range(len(totals)), len(self.workspaces), self.run.ask_to_stop, tick)
        nats, predictions = totals.sum(0)
        return float(nats / predictions) if predictions else None

"""A text in pieces for threads that learn word by word."""

import numpy as np

STEP = 8192  # words that a thread learns between two looks at what has happened


class Pieces:
    """The batches, as fit.py wants them, of a model that learns word by word: each thread has a part of the text.

    Batch k of an epoch is (text, cuts), as of Rnnlm.train: a piece for each thread. Where sentences are independent,
    pieces are of whole ones, and each epoch may have them in another order.
    """

    def __init__(self, ids, config):
        c, self.config, self.epoch = config, config, None
        self.length, self.words = len(ids), int(np.count_nonzero(np.asarray(ids) >= 0))
        self.source = self.text = np.concatenate([np.zeros(1, np.int32), ids], dtype=np.int32)
        self.sentences = np.flatnonzero(self.source[:-1] == 0) if c.independent else None
        self.steps = max(1, -(-self.length // (c.threads * STEP)))
        self.starts = self.sentences

    @staticmethod
    def memory(config, n):
        """Bytes for a text of n words, with what changing the order of its sentences takes."""
        return n * (4 + 24 * config.shuffle)

    def begin(self, epoch):
        """Put the sentences into the order of an epoch; an unfinished one at the end stays there."""
        if epoch == self.epoch or not self.config.shuffle or self.sentences is None:
            return
        self.epoch = epoch
        lengths = np.diff(self.sentences, append=self.length)
        whole = len(lengths) - (self.source[-1] != 0)
        order = np.arange(len(lengths))
        order[:whole] = np.random.default_rng([self.config.seed, epoch]).permutation(whole)
        lengths, self.starts = lengths[order], np.cumsum(lengths[order]) - lengths[order]
        positions = np.repeat(self.sentences[order] - self.starts, lengths)
        positions += np.arange(self.length)
        self.text = np.append(self.source[:1], self.source[1:][positions])

    def __getitem__(self, k):
        return self.text, np.stack([self.cut(k), self.cut(k + 1)], 1)

    def cut(self, k):
        """Where the k-th piece of each thread begins, int64 [threads]."""
        threads, grain = self.config.threads, self.config.block
        parts = self.align(np.arange(threads + 1) * self.length // threads, grain)
        begin, size = parts[:-1], np.diff(parts)
        positions = self.align(begin + size * k // self.steps, 1 if self.starts is not None else grain)
        return parts[1:] if k == self.steps else np.minimum(positions, parts[1:])

    def align(self, positions, grain):
        """The first starts of sentences from these positions on; in one long text, multiples of `grain` before them."""
        if self.starts is not None:
            return np.append(self.starts, self.length)[np.searchsorted(self.starts, positions)]
        return np.where(positions == self.length, self.length, positions // grain * grain)


class Learner:
    """Trains an Rnnlm, which changes with each word and needs no optimizer. A state is what threads carry along."""

    def __init__(self, model):
        self.model = model

    def begin(self):
        self.model.begin()
        return self.state()

    def state(self):
        return tuple(array.copy() for array in self.model.carried())

    def step(self, pieces, state, number, lr):
        """Learn a piece in each thread: (nats, words predicted, 0.0, state)."""
        for array, value in zip(self.model.carried(), state):
            array[:] = value
        text, cuts = pieces
        nats = -float(self.model.train(text, cuts, lr).sum())
        predicted = sum(np.count_nonzero(text[begin + 1 : end + 1] >= 0) for begin, end in cuts)
        return nats, int(predicted), 0.0, self.state()

"""Workers that train models of tiedtools and time each part of a step; see processes.worker."""

import dataclasses
from typing import Any

from benchmarks import nmt
from benchmarks.clock import BOTH, Clock
from benchmarks.subwords import Synthetic
from benchmarks.zipf import Windows
from tiedtools.models.lm.config import LstmConfig
from tiedtools.models.lm.model import LstmLM
from tiedtools.models.translation.config import TranslationConfig
from tiedtools.models.translation.model import Translator
from tiedtools.network.cells import LSTM
from tiedtools.network.layers.feedforward import Embedding, Linear
from tiedtools.network.layers.regularization import Dropout
from tiedtools.network.optimizers import SGD
from tiedtools.text.vocab import Vocab


class LmTraining:
    """Worker that trains on a lm.Task, a dict; answers a number of windows with the measurements."""

    def __init__(self, task):
        self.lr, self.text, rate = task["lr"], Windows(task), task["dropout"]
        dropout = dict(drop_emb=rate, drop_layer=rate, drop_out=rate, drop_state=rate * (task["dropout_kind"] == "gal"))
        fields = {field.name for field in dataclasses.fields(LstmConfig)} & task.keys()
        config: Any = LstmConfig(**{name: task[name] for name in fields}, **dropout)
        vocab = Vocab.made_up(task["vocabulary"])
        vocab.subwords = Synthetic(config.subwords, len(vocab)) if config.subwords else None
        self.model = LstmLM(vocab, config)
        self.state = self.model.start(task["batch"])
        self.optimizer = SGD(self.model.params, task["clip"])
        network = self.model.network
        layers = lambda kind: [layer for layer in network.layers if isinstance(layer, kind)]
        parts = [("embedding", BOTH, layers(Embedding)), ("dropout", BOTH, layers(Dropout))]
        parts += [(f"{type(c).__name__} {method}", [method], [c]) for c in layers(LSTM) for method in BOTH]
        parts += [("L", BOTH, layers(Linear))]
        for table in network.tables:
            parts += [("subwords", BOTH, table.layers[:1]), ("highways", BOTH, table.layers[1:])]
        self.clock = Clock(self.model, self.optimizer, parts)

    def step(self):
        """Train on the next window; return the mean cross entropy in nats."""
        ids, targets = self.text.next()
        nats, predicted, self.state = self.model.train_step(ids, targets, self.state, self.text.done)
        self.optimizer.update(self.lr)
        return nats / predicted

    def __call__(self, windows):
        return self.clock.measured(windows, self.step)


class NmtTraining:
    """Worker that trains on a nmt.Task, a dict; answers a number of batches with measurements of the first batches."""

    def __init__(self, task):
        dropout = dict.fromkeys(["drop_emb", "drop_annotation", "drop_out"], task["dropout"])
        names = "size", "hidden", "tie", "batch", "threads", "precision"
        vocab = Vocab.made_up(task["vocabulary"])
        config = TranslationConfig(**{name: task[name] for name in names}, **dropout, optimizer="adam")
        self.model = Translator(vocab, vocab, config)
        self.batches, self.learner, net = nmt.batches(task), self.model.learner(nmt.CLIP), self.model.network
        parts = [
            ("embedding", BOTH, [net.read_source, net.read_target]),
            ("dropout", BOTH, [net.drop_source, net.drop_target, net.drop_annotation, net.drop_out]),
            ("encoder", BOTH, [net.encoder]),
            ("decoder", [*BOTH, "remember", "start"], [net.decoder]),
            ("readout", BOTH, [net.readout]),
        ]
        self.clock, self.done = Clock(self.model, self.learner.optimizer, parts), 0

    def step(self):
        """Train on the next batch; return the mean cross entropy in nats."""
        batch = self.batches[self.done % len(self.batches)]
        self.done += 1
        nats, predicted, _, _ = self.learner.step(batch, (), self.done, nmt.LR)
        return nats / predicted

    def __call__(self, steps):
        self.done = 0
        return self.clock.measured(steps, self.step)

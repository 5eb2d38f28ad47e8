"""Worker process that trains tiedtools' translation model and times each part of a step.

python -m tiedtools.benchmark.nmtworker TASK        a Worker's process; TASK is a nmt.Task as JSON
"""

import json
import sys

from tiedtools.benchmark.lstmworker import BOTH, Clock
from tiedtools.benchmark.nmt import CLIP, LR, batches
from tiedtools.benchmark.processes import serve
from tiedtools.models.translation.config import TranslationConfig
from tiedtools.models.translation.model import Translator
from tiedtools.text.vocab import Vocab


class Training:
    """Training run on a nmt.Task, given as a dict."""

    def __init__(self, task):
        names, rate = ("size", "hidden", "tie", "batch", "threads", "precision"), task["dropout"]
        config = TranslationConfig(
            optimizer="adam", drop_emb=rate, drop_annotation=rate, drop_out=rate, **{name: task[name] for name in names}
        )
        vocab = Vocab.made_up(task["vocabulary"])
        self.model, self.batches, self.done = Translator(vocab, vocab, config), batches(task), 0
        self.learner, self.clock, net = self.model.learner(CLIP), Clock(), self.model.network
        self.clock.wrap("embedding", BOTH, net.read_source, net.read_target)
        self.clock.wrap("dropout", BOTH, net.drop_source, net.drop_target, net.drop_annotation, net.drop_out)
        self.clock.wrap("encoder", BOTH, net.encoder)
        self.clock.wrap("decoder", (*BOTH, "remember", "start"), net.decoder)
        self.clock.wrap("readout", BOTH, net.readout)
        self.clock.end(self.model, self.learner.optimizer)

    def step(self):
        """Train on the next batch; returns the mean cross entropy in nats."""
        batch = self.batches[self.done % len(self.batches)]
        self.done += 1
        nats, predicted, _, _ = self.learner.step(batch, (), self.done, LR)
        return nats / predicted

    def __call__(self, steps):
        """Answer a nmt.Contender: train on the first `steps` batches and return a dict of the measurements."""
        self.done = 0
        return self.clock.measured(steps, self.step)


if __name__ == "__main__":
    serve(Training(json.loads(sys.argv[1])))

"""Worker process that trains tiedtools' language model and times each part of a step.

python -m tiedtools.benchmark.lstmworker TASK        a Worker's process; TASK is a lstm.Task as JSON
"""

import dataclasses
import json
import sys
import time

import numpy as np

from tiedtools.base import memory
from tiedtools.benchmark.processes import serve
from tiedtools.benchmark.subwords import Synthetic
from tiedtools.models.lm.config import LstmConfig
from tiedtools.models.lm.model import LstmLM
from tiedtools.network.cells.lstm import LSTM
from tiedtools.network.layers.dropout import Dropout
from tiedtools.network.layers.embedding import Embedding
from tiedtools.network.layers.linear import Linear
from tiedtools.network.optimizers import SGD
from tiedtools.text.vocab import Vocab

BOTH = "forward", "backward"  # methods of a layer


class Clock:
    """Timer of the parts of a step: wraps methods of the layers and the optimizer; `seconds` is {part: seconds}."""

    def __init__(self):
        self.seconds = {}

    @classmethod
    def of(cls, model, optimizer):
        """Return the Clock of a language model."""
        self, both = cls(), BOTH
        of = lambda kind: [layer for layer in model.network.layers if isinstance(layer, kind)]
        self.wrap("embedding", both, *of(Embedding))
        self.wrap("dropout", both, *of(Dropout))
        for cell in of(LSTM):
            self.wrap(f"{type(cell).__name__} forward", both[:1], cell)
            self.wrap(f"{type(cell).__name__} backward", both[1:], cell)
        self.wrap("L", both, *of(Linear))
        for table in model.network.tables:
            self.wrap("subwords", both, *table.layers[:1])
            self.wrap("highways", both, *table.layers[1:])
        self.end(model, optimizer)
        return self

    def end(self, model, optimizer):
        """Wrap the last parts of a step, which all networks have."""
        self.wrap("softmax", ("loss",), model.network.output)
        self.wrap("update", ("update",), optimizer)
        self.wrap("update", ("begin_step",), model.params)

    def measured(self, windows, step):
        """Call `step`, which returns the mean nats, `windows` times; return the measurements, a dict."""
        before, began = dict(self.seconds), time.perf_counter()
        nats = [step() for _ in range(windows)]
        seconds = time.perf_counter() - began
        parts = {part: now - before[part] for part, now in self.seconds.items()}
        parts["the rest"] = seconds - sum(parts.values())
        return dict(seconds=seconds, nats=sum(nats) / windows, bytes=memory.peak(), parts=parts)

    def wrap(self, part, methods, *things):
        for thing in things:
            self.seconds.setdefault(part, 0.0)
            for method in methods:
                setattr(thing, method, self.timed(part, getattr(thing, method)))

    def timed(self, part, function):
        def run(*args, **kwargs):
            began = time.perf_counter()
            result = function(*args, **kwargs)
            self.seconds[part] += time.perf_counter() - began
            return result

        return run


class Training:
    """Training run on a lstm.Task, given as a dict."""

    def __init__(self, task):
        self.task, self.windows = task, 0
        rate, own = task["dropout"], {field.name for field in dataclasses.fields(LstmConfig)}
        config = LstmConfig(
            drop_emb=rate,
            drop_layer=rate,
            drop_state=rate if task["dropout_kind"] == "gal" else 0.0,
            drop_out=rate,
            **{name: task[name] for name in own & task.keys()},
        )
        vocab = Vocab.made_up(task["vocabulary"])
        vocab.subwords = Synthetic(config.subwords, len(vocab)) if config.subwords else None
        self.model = LstmLM(vocab, config)
        self.ids = np.fromfile(task["path"], np.int32).reshape(-1, task["batch"])
        self.state = self.model.start(task["batch"])
        self.optimizer = SGD(self.model.params, task["clip"])
        self.clock = Clock.of(self.model, self.optimizer)

    def step(self):
        """Train on the next window; returns the mean cross entropy in nats."""
        task, T = self.task, self.task["steps"]
        start = self.windows * T % (len(self.ids) - 1)
        self.windows += 1
        ids, targets = self.ids[start : start + T], self.ids[start + 1 : start + 1 + T]
        nats, predicted, self.state = self.model.train_step(ids, targets, self.state, self.windows)
        self.optimizer.update(task["lr"])
        return nats / predicted

    def __call__(self, windows):
        """Answer a lstm.Contender: train on `windows` windows and return a dict of the measurements."""
        return self.clock.measured(windows, self.step)


if __name__ == "__main__":
    serve(Training(json.loads(sys.argv[1])))

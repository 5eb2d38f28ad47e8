"""Worker process that trains the language model of `tiedtools bench lstm` in PyTorch.

python -m tiedtools.benchmark.torchlm TASK        a Worker's process; TASK is a lstm.Task as JSON
"""

import json
import sys
import time

import torch
from torch import nn

from tiedtools import memory
from tiedtools.benchmark.processes import serve


class Model(nn.Module):
    """LSTM language model: int64 words [T, B], state -> scores [T * B, V], state (h, c), [layers, B, hidden] each.

    Follows PyTorch's word language model example, with dropout at Zaremba's three sites; `tying` as in LstmConfig.
    nn.LSTM has a redundant second bias vector.
    """

    def __init__(self, V, size, hidden, layers, tying, dropout=0.0, init=0.1):
        super().__init__()
        width = size if tying == "linear" else hidden
        self.embedding = nn.Embedding(V, size)
        self.dropout = nn.Dropout(dropout)
        self.lstm = nn.LSTM(size, hidden, layers, dropout=dropout if layers > 1 else 0)
        self.linear = nn.Linear(hidden, size, bias=False) if tying == "linear" else nn.Identity()
        self.output = nn.Linear(width, V)
        if tying != "untied":
            self.output.weight = self.embedding.weight
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -init, init)

    def forward(self, ids, state):
        x, state = self.lstm(self.dropout(self.embedding(ids)), state)
        return self.output(self.linear(self.dropout(x)).flatten(0, 1)), state


class Training:
    """Training run on a lstm.Task, given as a dict."""

    def __init__(self, task):
        torch.set_num_threads(task["threads"])
        torch.manual_seed(1)
        self.task, self.windows, self.bf16 = task, 0, task["precision"] == "bfloat16"
        rows, B = task["rows"], task["batch"]
        self.ids = torch.from_file(task["path"], size=rows * B, dtype=torch.int32).long().view(rows, B)
        shape = "vocabulary", "size", "hidden", "layers", "tying", "dropout"
        self.model = Model(*(task[name] for name in shape))
        self.parameters = list(self.model.parameters())
        self.loss = nn.CrossEntropyLoss()
        self.state = (torch.zeros(task["layers"], B, task["hidden"]),) * 2

    def step(self):
        """Train on the next window; returns the mean cross entropy in nats."""
        task, T = self.task, self.task["steps"]
        start = self.windows * T % (len(self.ids) - 1)
        self.windows += 1
        ids, targets = self.ids[start : start + T], self.ids[start + 1 : start + 1 + T]
        self.model.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=self.bf16):
            scores, state = self.model(ids, self.state)
            loss = self.loss(scores, targets.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.parameters, task["clip"])
        with torch.no_grad():
            for parameter in self.parameters:
                parameter.add_(parameter.grad, alpha=-task["lr"])
        self.state = tuple(part.detach() for part in state)
        return loss.item()

    def __call__(self, windows):
        """Answer a lstm.Contender: train on `windows` windows and return a dict of the measurements."""
        began = time.perf_counter()
        nats = [self.step() for _ in range(windows)]
        seconds = time.perf_counter() - began
        library = f"torch {torch.__version__}"
        return dict(seconds=seconds, nats=sum(nats) / windows, bytes=memory.peak(), library=library)


if __name__ == "__main__":
    serve(Training(json.loads(sys.argv[1])))

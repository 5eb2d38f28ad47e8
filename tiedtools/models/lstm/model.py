"""The LSTM language model: embeddings, layers, dropout, the map between (L or P), softmax; how its parameters start."""

import dataclasses
import math

import numpy as np

from tiedtools.cores import available_cores
from tiedtools.files import modelfile
from tiedtools.kernels import descent
from tiedtools.kernels.elementwise import normalize_rows
from tiedtools.models.lstm.config import LstmConfig
from tiedtools.network.buffers import imagining
from tiedtools.network.layers.augmented import AugmentedSoftmax
from tiedtools.network.layers.dropout import Dropout, WordDropout
from tiedtools.network.layers.embedding import Embedding
from tiedtools.network.layers.linear import Linear
from tiedtools.network.layers.lstm import LSTM
from tiedtools.network.layers.sampled import SampledSoftmax
from tiedtools.network.layers.softmax import Softmax
from tiedtools.network.params import Params
from tiedtools.network.threads import Team, idle
from tiedtools.text.vocab import Vocab
from tiedtools.training.windows import Windows
from tiedtools.vectors.vectors import Vectors

DRAWN = 4096  # rows at a time


class LstmLM:
    """P(w_t | w_1 .. w_{t-1}), as fit.py and the commands for language models want it; see LstmConfig for all variants.

    A state is (h, c), [layers, B, n] each.
    """

    kind = "lstm"
    Team: type = Team

    def __init__(self, vocab, config, values=None):
        """`values`: dict of arrays to start from, by name; without it they are drawn."""
        self.vocab, self.config, self.team = vocab, config, self.Team(config.threads)
        c, V = config, len(vocab)
        self.params = params = Params(c.dtype, half=c.precision == "bfloat16")
        if c.tying != "untied":
            params.tie("emb_out", "emb_in")
        self.embedding = Embedding(params, self.team, "emb_in", V, c.emb)
        widths = [c.emb] + [c.hidden] * c.layers
        self.layers = [LSTM(params, self.team, f"lstm{k + 1}", *widths[k : k + 2]) for k in range(c.layers)]
        self.linear, width = None, c.hidden
        if c.tying == "linear" or c.projection:
            width = c.emb if c.tying == "linear" else c.hidden
            self.linear = Linear(params, self.team, "proj", c.hidden, width, c.linear_bias or c.projection > 0)
        output = params, self.team, "emb_out", V, width, c.output_bias
        if c.augment or c.augment_share:
            weights = (1 - c.augment_share, c.augment_share * c.tau * V) if c.augment_share else (1.0, c.augment)
            self.softmax: Softmax = AugmentedSoftmax(*output, "emb_in", c.emb, weights, c.tau, c.detach)
        elif c.sampled:
            self.softmax = SampledSoftmax(*output, c.sampled, vocab.counts)
        else:
            self.softmax = Softmax(*output)
        if values is not None:
            params.check(values)
        params.build()
        if values is None:
            self.draw()
            self.constrain()
        else:
            params.fill(values)
        self.norm, self.squares = np.zeros(1), np.zeros((c.threads, 8))
        self.place_dropout()

    def place_dropout(self):
        c = self.config
        steps = () if c.dropout == "standard" else ("steps",)
        examples = ("sequences",) if steps and c.mask_sharing == "batch" else ()
        drop = lambda rate, same=steps + examples: Dropout(self.team, rate, same, self.params.dtype)
        gal = c.dropout == "gal"
        self.drop_word = WordDropout(self.team, c.drop_word, examples, self.params.dtype)
        self.drop_in = drop(0 if gal else c.drop_emb, ())
        self.drop_up = [drop(0 if gal else c.drop_layer) for _ in self.layers[1:]] + [drop(c.drop_out)]
        self.drop_state = drop(c.drop_state)
        self.drop_gates = [drop(c.drop_emb if k == 0 else c.drop_layer) for k in range(c.layers * gal)]
        self.drop_after = drop(c.drop_out)
        if c.linear_dropout == "after":
            self.drop_up[-1] = drop(0)

    def draw(self):
        """Start uniform, with biases perhaps 0."""
        c, rng = self.config, np.random.default_rng(self.config.seed)
        for name, array in self.params.owners():
            inner = name.startswith(("lstm", "proj"))
            reach = c.init_lstm if inner else c.init
            bias = array.ndim == 1
            if bias:
                uniform = c.init_bias == "uniform" or c.init_bias == "lstm" and inner
                drawn = rng.uniform(-reach, reach, array.shape) * uniform
                if name.startswith("lstm"):
                    drawn[c.hidden : 2 * c.hidden] += c.forget_bias
                array[:] = drawn
                continue
            for rows in np.split(array, range(DRAWN, len(array), DRAWN)):
                rows[:] = rng.uniform(-reach, reach, rows.shape)

    def constrain(self):
        if self.config.unit_embeddings:
            self.team(normalize_rows, self.params.padded("emb_in"))

    @classmethod
    def warm_up(cls, config):
        """Have the kernels compiled by a small model, so that a process has taken the memory that this takes."""
        small = dataclasses.replace(config, emb=16, hidden=16, threads=1, sampled=min(config.sampled, 16))
        cls(Vocab.made_up(), small).compile()

    @classmethod
    def memory(cls, vocab, config):
        """Bytes of a model's arrays while a Fit trains it: parameters, the best ones, gradients, what steps need."""
        with imagining() as sizes:
            model = idle(cls)(vocab, config)
            ids = np.zeros((config.steps, config.batch), np.int32)
            model.train_step(ids, ids, model.start(config.batch), 0)
        return sum(sizes) + model.params.values.nbytes

    @property
    def n_params(self):
        """Trained numbers; a shared array counts once."""
        return self.params.count

    @property
    def uniform_loss(self):
        """See fit.py; of sampled softmax, over a target and its samples."""
        V, samples = len(self.vocab), self.config.sampled
        return math.log(min(1 + samples, V) if samples else V)

    def start(self, batch):
        shape = self.config.layers, batch, self.config.hidden
        return np.zeros(shape, self.params.dtype), np.zeros(shape, self.params.dtype)

    def compile(self):
        """Have the kernels compiled; the parameters stay as they are."""
        word, state = np.zeros((1, 1), np.int32), self.start(1)
        self.train_step(word, word, state, 0)
        self.update(0.0, 0.0, decay=0.0)
        self.score(word, word, state)

    def forward(self, ids, state, seed=None, training=False):
        """The softmax's input for int32 ids [T, B], and the state behind.

        seed(site)  seeds masks; None: no dropout        training  products are of the precision that is configured
        """
        seed = seed or (lambda site: None)
        h, c = (array.copy() for array in state)
        ids = np.ascontiguousarray(ids)
        x = self.drop_word.forward(self.embedding.forward(ids), ids, seed("word"))
        x = self.drop_in.forward(x, seed("in"))
        for k, (layer, drop) in enumerate(zip(self.layers, self.drop_up)):
            masks, masks_x = self.masks_over_time(k, ids.shape[1], seed)
            x, (h[k], c[k]) = layer.forward(x, (h[k], c[k]), masks, masks_x, full_precision=not training)
            x = drop.forward(x, seed(("up", k)))
        if self.linear:
            x = self.linear.forward(x, full_precision=not training)
            if self.config.linear_dropout != "before":
                x = self.drop_after.forward(x, seed("after"))
        return x, (h, c)

    def masks_over_time(self, k, B, seed):
        """Masks for layer k's h and x on their way into the gates: LSTM.forward's `masks` and `masks_x`, None for none.

        Inan et al. 2017 have one for h, which is that of the way up; Gal and Ghahramani 2016 one for each gate of each.
        """
        c = self.config
        if seed("in") is None:
            return None, None
        draw = lambda drop, site, n: np.array(
            np.broadcast_to(drop.draw(seed(site), 1, B, n)[0, :, :n], (B, n)), order="C"
        )
        if c.dropout != "gal":
            return (draw(self.drop_state, ("up", k), c.hidden)[None] if c.drop_state else None), None
        gates = lambda drop, name, n: (
            np.stack([draw(drop, (name, k, gate), n) for gate in range(4)]) if drop.drop else None
        )
        widths = c.emb if k == 0 else c.hidden
        return gates(self.drop_state, "state", c.hidden), gates(self.drop_gates[k], "gates", widths)

    def batches(self, ids):
        """See fit.py."""
        return Windows(self, ids)

    def train_step(self, ids, targets, state, step):
        """See Windows. The gradient is that of the objective: the cross entropy and what regularises it."""
        c, params = self.config, self.params
        seeds = lambda site: mask_seed(c.seed, step, site)
        params.begin_step()
        x, state = self.forward(ids, state, seeds, training=True)
        targets = np.ascontiguousarray(targets)
        scale = 1 / (targets.shape[1] if c.loss_scale == "sum" else targets.size)
        nll, dx = self.softmax.loss(x, targets, scale, seeds("samples"))
        if self.linear:
            if c.linear_dropout != "before":
                dx = self.drop_after.backward(dx)
            dx = self.linear.backward(dx)
            if c.projection:
                params.gradient("proj.W")[0][:] += scale * c.projection * params.padded("proj.W")
        for layer, drop in zip(self.layers[::-1], self.drop_up[::-1]):
            dx = layer.backward(drop.backward(dx))
        self.embedding.backward(self.drop_word.backward(self.drop_in.backward(dx)))
        return float(nll.sum()), np.count_nonzero(targets >= 0), state

    def update(self, lr, clip, decay=None):
        """See Windows. `decay` None: the configuration's weight decay."""
        p, decay = self.params, self.config.weight_decay if decay is None else decay
        flat = p.values, p.grads, p.dense, *p.segments()
        self.team(descent.step, self.norm, self.squares, *flat, lr, clip or math.inf, decay)
        if lr:
            self.constrain()
        return float(self.norm[0])

    def score(self, ids, targets, state, sample=None):
        """See fit.py."""
        # As in Gal and Ghahramani's code, no words are dropped in Monte Carlo testing.
        draws = lambda site: None if site == "word" else mask_seed(self.config.seed, -1 - sample, site)
        seeds = None if sample is None else draws
        x, state = self.forward(ids, state, seeds)
        return self.softmax.score(x, np.ascontiguousarray(targets)).copy(), state

    def predict(self, ids, state):
        """Log-probabilities, float64 [B, V], of all words after the last of ids int32 [T, B]; and the state there."""
        x, state = self.forward(ids, state)
        scores = x[-1, :, : self.softmax.n].astype(float) @ self.params["emb_out"].T.astype(float)
        if self.config.output_bias:
            scores += self.params["emb_out.b"]
        scores -= scores.max(1, keepdims=True)
        return scores - np.log(np.exp(scores).sum(1, keepdims=True)), state

    def vectors(self, which):
        """The Vectors of "in", "out", their "sum" or "concat"."""
        return Vectors.of(self.vocab.words, which, self.params["emb_in"], self.params["emb_out"])

    def save(self, file):
        """Write a model file."""
        arrays = dict(self.params.owners(), counts=self.vocab.counts)
        modelfile.save(file, self.kind, dataclasses.asdict(self.config), self.vocab.words, arrays)

    @classmethod
    def load(cls, path, threads=None):
        """Read a model file, to run on so many threads (None: all cores, whatever it was trained on).

        Raises TiedtoolsError where it is none of this kind.
        """

        def make(config, words, arrays):
            config = modelfile.configured(LstmConfig, {**config, "threads": threads or available_cores()})
            return cls(Vocab(words, arrays.pop("counts")).check(), config, arrays)

        return modelfile.rebuild(path, cls.kind, make)


def mask_seed(seed, step, site):
    """64 bits for the masks at one site, a name or a tuple, in one step."""
    words = np.frombuffer(repr(site).encode().ljust(32), np.uint32)
    return np.random.SeedSequence([seed, step % 2**64, *words.tolist()]).generate_state(1, np.uint64)[0]

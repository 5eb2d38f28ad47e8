"""Construction of the network of a recurrent language model from its LstmConfig: layers and dropout sites.

ids -> embedding -> [dropout -> cell] * layers -> [TAR] -> dropout -> [AR] -> [L or P -> dropout] -> softmax

Where `c` is Any, it is an LstmConfig, whose settings for layers and subwords are never None once it is constructed.
"""

import math
import pkgutil
from collections.abc import Iterator
from typing import Any

import numpy as np

from tiedtools.models.lm.config import LstmConfig
from tiedtools.network.config import CELLS
from tiedtools.network.encoders import CharCNN, MorphSum, SylConcat
from tiedtools.network.layers.feedforward import Embedding, Highway, Linear
from tiedtools.network.layers.output import AugmentedSoftmax, SampledSoftmax, Softmax
from tiedtools.network.layers.regularization import Activity, Dropout, Masks, TemporalActivity, WeightDrop, WordDropout
from tiedtools.network.network import Network
from tiedtools.network.params import Params, Start, uniform, zeros
from tiedtools.network.tables import Composed, Lookup
from tiedtools.text.vocab import Vocab


def network(params: Params, c: LstmConfig, vocab: Vocab) -> Network:
    """Return the Network of an LstmConfig `c` for the words of a Vocab, declaring its parameters in `params`."""
    if c.tying != "untied" and not c.subwords:
        params.tie("emb_out", "emb_in")
    params.unit_rows += ["emb_in"] * c.unit_embeddings
    V, start = len(vocab), uniform(c.init)
    emb_in = composed(params, "emb_in", c, vocab) if c.subwords else Lookup(params, "emb_in", V, c.size, start, True)
    hidden_layers = list(layers(params, c, emb_in))
    if c.one_table and c.subwords:
        emb_out = emb_in
    elif c.subwords and c.reuse != "plain":
        for layer in c.reused:
            params.tie(f"emb_out.{layer}.", f"emb_in.{layer}.")
        emb_out = composed(params, "emb_out", c, vocab)
    else:
        emb_out = Lookup(params, "emb_out", V, output_width(c), start, c.sampled > 0)
    output_layer = output(params, c, vocab.counts, emb_in, emb_out)
    tables = composed_tables(c, emb_in, emb_out, output_layer) if c.subwords else []
    return Network(hidden_layers, output_layer, tables)


def composed(params: Params, name: str, c: Any, vocab: Vocab) -> Composed:
    """Return the Composed table `name` of a Vocab with subwords."""
    codes, S = vocab.subwords.table(vocab.words) - 1, len(vocab.subwords.units) - 1  # padding becomes -1
    initializer, m = uniform(c.init), c.highway_dim
    biases = initializer if c.init_bias == "uniform" else zeros
    start = Start(uniform() if c.init_by_width else initializer, biases, embeddings=initializer)
    if c.subwords == "chars":
        encoder: list[Any] = [CharCNN(params, name, codes.shape[1], S, c.subword_dim, c.widths, start)]
    elif c.subwords == "syllables":
        encoder = [SylConcat(params, name, codes.shape[1], S, c.subword_dim, m, start)]
    else:
        encoder = [MorphSum(params, name, S, c.subword_dim, start)]
        if c.subword_dim != m:
            encoder.append(Linear(params, f"{name}.proj", c.subword_dim, m, start))
    highways = [Highway(params, f"{name}.hw{k + 1}", m, start) for k in range(c.highways)]
    return Composed(params, encoder + highways, codes, m)


def composed_tables(c: LstmConfig, emb_in: Any, emb_out: Any, output: Any) -> list[Composed]:
    """Return the distinct Composed tables, after setting the words that they compose in a training step."""
    inputs = [lambda step: step.ids]
    if emb_out is emb_in:
        emb_in.needed = [*inputs, output.words] if c.sampled else []
        return [emb_in]
    if not (c.augment or c.augment_share):
        emb_in.needed = inputs
    if c.reuse == "plain":
        return [emb_in]
    emb_out.needed = [output.words] if c.sampled else []
    return [emb_in, emb_out]


def layers(params: Params, c: Any, emb_in: Any) -> Iterator[Any]:
    gal, fixed = c.dropout_kind == "gal", () if c.dropout_kind == "standard" else ("steps",)
    batch = ("sequences",) if fixed and c.mask_sharing == "batch" else ()
    drop = lambda site, rate: [Dropout(params, site, rate, fixed + batch)] if rate else []

    def start(reach: float) -> Start:
        return Start(uniform(reach), zeros if c.init_bias == "zero" else uniform(reach), c.forget_bias)

    yield Embedding(params, emb_in)
    if c.drop_word:
        # Merity et al. drop rows of E for the whole batch.
        yield WordDropout(params, "word", c.drop_word, ("sequences",) if c.dropout_kind == "locked" else batch)
    if not gal:
        yield from drop("in", c.drop_emb)
    width = c.width
    for k, n in enumerate(c.units):
        reach = 1 / math.sqrt(n) if c.init_by_width else c.init_lstm
        yield make_cell(params, c, k, width, n, start(reach), batch)
        width = n
        if k + 1 < c.layers:
            yield from drop(("up", k), 0 if gal else c.drop_layer)
    if c.tar:
        yield TemporalActivity(params, width, c.tar)
    if c.linear_dropout != "after":
        yield from drop(("up", c.layers - 1), c.drop_out)
    if c.ar:
        yield Activity(params, width, c.ar)
    if c.tying == "linear" or c.projection:
        bias = c.linear_bias or c.projection > 0
        yield Linear(params, "proj", width, output_width(c), start(c.init_lstm), bias, c.projection)
        if c.linear_dropout != "before":
            yield from drop("after", c.drop_out)


def make_cell(params: Params, c: LstmConfig, k: int, width: int, n: int, start: Start, batch: tuple[str, ...]) -> Any:
    """Return the cell of layer k, which maps `width` units to `n`, with its dropout masks, fixed over time.

    Inan et al. 2017 use one mask for the state, the same as for the layer's output. Gal and Ghahramani 2016 use one
    mask per gate, both for the state and for the layer's input; an RHN has one mask for each.
    """
    Cell = pkgutil.resolve_name(CELLS[c.cell])
    masks = lambda sites, n, rate: Masks(params, sites, n, rate, batch) if rate else None
    if c.dropout_kind == "gal":
        of_state, of_x = ([(site, k, gate) for gate in range(Cell.gates)] for site in ("state", "gates"))
        over_time = masks(of_state, n, c.drop_state), masks(of_x, width, c.drop_layer if k else c.drop_emb)
    else:
        over_time = masks([("up", k)], n, c.drop_state), None
    options: dict[str, Any] = dict(depth=c.depth, transform=c.transform_bias) if c.cell == "rhn" else {}
    if c.drop_weights:
        options["drop_weights"] = WeightDrop(params, ("weights", k), c.drop_weights)
    return Cell(params, f"{c.cell}{k + 1}", width, n, start, over_time, **options)


def output_width(c: LstmConfig) -> Any:
    return c.width if c.tying == "linear" else c.hidden


def output(params: Params, c: LstmConfig, counts: np.ndarray, emb_in: Any, emb_out: Any) -> Softmax:
    V, biases = len(counts), uniform(c.init) if c.init_bias == "uniform" else zeros
    bias = "emb_out.b" if c.output_bias else None
    if c.augment or c.augment_share:
        weights = (1 - c.augment_share, c.augment_share * c.tau * V) if c.augment_share else (1.0, c.augment)
        similarity = emb_in if c.subwords else Lookup(params, "emb_in", V, c.size, uniform(c.init), c.detach)
        return AugmentedSoftmax(params, emb_out, similarity, weights, c.tau, c.detach, bias, biases)
    if c.sampled:
        return SampledSoftmax(params, emb_out, c.sampled, np.asarray(counts), bias, biases)
    return Softmax(params, emb_out, bias, biases)

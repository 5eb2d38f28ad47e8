"""Construction of the network of an LSTM language model from its LstmConfig: layers and dropout sites.

ids -> embedding -> [dropout -> cell] * layers -> dropout -> [L or P -> dropout] -> softmax
"""

import numpy as np

from tiedtools.network.cells import cell
from tiedtools.network.layers.augmented import AugmentedSoftmax
from tiedtools.network.layers.dropout import Dropout, Masks, WordDropout
from tiedtools.network.layers.embedding import Embedding
from tiedtools.network.layers.linear import Linear
from tiedtools.network.layers.sampled import SampledSoftmax
from tiedtools.network.layers.softmax import Softmax
from tiedtools.network.network import Network
from tiedtools.network.start import Start, uniform, zeros
from tiedtools.network.tables import Lookup


def network(params, c, counts):
    """Return the Network of an LstmConfig `c` for words with these counts [V], declaring its parameters in `params`."""
    if c.tying != "untied":
        params.tie("emb_out", "emb_in")
    params.unit_rows += ["emb_in"] * c.unit_embeddings
    return Network(list(layers(params, c, len(counts))), output(params, c, counts))


def layers(params, c, V):
    gal, lasting = c.dropout_kind == "gal", () if c.dropout_kind == "standard" else ("steps",)
    batch = ("sequences",) if lasting and c.mask_sharing == "batch" else ()
    drop = lambda site, rate, same=lasting + batch: [Dropout(params, site, rate, same)] if rate else []
    inner = Start(uniform(c.init_lstm), zeros if c.init_bias == "zero" else uniform(c.init_lstm), c.forget_bias)

    yield Embedding(params, Lookup(params, "emb_in", V, c.size, uniform(c.init), by_rows=True))
    if c.drop_word:
        yield WordDropout(params, "word", c.drop_word, batch)
    if not gal:
        yield from drop("in", c.drop_emb, ())
    width = c.size
    for k in range(c.layers):
        yield make_cell(params, c, k, width, inner, batch)
        width = c.hidden
        if k + 1 < c.layers:
            yield from drop(("up", k), 0 if gal else c.drop_layer)
        elif c.linear_dropout != "after":
            yield from drop(("up", k), c.drop_out)
    if c.tying == "linear" or c.projection:
        bias = c.linear_bias or c.projection > 0
        yield Linear(params, "proj", width, output_width(c), inner, bias, c.projection)
        if c.linear_dropout != "before":
            yield from drop("after", c.drop_out)


def make_cell(params, c, k, width, start, batch):
    """Return the cell of layer k with its dropout masks, which are constant over time.

    Inan et al. 2017 use one mask for the state, the same as for the layer's output. Gal and Ghahramani 2016 use one
    mask per gate, both for the state and for the layer's input.
    """
    kind = cell(c.cell)
    masks = lambda sites, n, rate: Masks(params, sites, n, rate, batch) if rate else None
    if c.dropout_kind == "gal":
        of_state, of_x = ([(site, k, gate) for gate in range(kind.gates)] for site in ("state", "gates"))
        over_time = masks(of_state, c.hidden, c.drop_state), masks(of_x, width, c.drop_layer if k else c.drop_emb)
    else:
        over_time = masks([("up", k)], c.hidden, c.drop_state), None
    return kind(params, f"{c.cell}{k + 1}", width, c.hidden, start, over_time)


def output_width(c):
    return c.size if c.tying == "linear" else c.hidden


def output(params, c, counts):
    V, biases = len(counts), uniform(c.init) if c.init_bias == "uniform" else zeros
    table = Lookup(params, "emb_out", V, output_width(c), uniform(c.init), by_rows=c.sampled > 0)
    bias = "emb_out.b" if c.output_bias else None
    if c.augment or c.augment_share:
        weights = (1 - c.augment_share, c.augment_share * c.tau * V) if c.augment_share else (1.0, c.augment)
        like = Lookup(params, "emb_in", V, c.size, by_rows=c.detach)
        return AugmentedSoftmax(params, table, like, weights, c.tau, c.detach, bias, biases)
    if c.sampled:
        return SampledSoftmax(params, table, c.sampled, np.asarray(counts), bias, biases)
    return Softmax(params, table, bias, biases)

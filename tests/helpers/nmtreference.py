"""Reference translation model in plain float64 NumPy, sentence by sentence and step by step.

Parameters are a dict of arrays with the names that Translator uses, tied ones under each name.
"""

import numpy as np
from lmreference import log_softmax, sigmoid


def gru(x, z, h):
    """One step from the inputs' part x and the state's part z of the gates r, u, c, [3n] each, and the state h."""
    (x_r, x_u, x_c), (z_r, z_u, z_c) = np.split(x, 3), np.split(z, 3)
    r, u = sigmoid(x_r + z_r), sigmoid(x_u + z_u)
    return u * h + (1 - u) * np.tanh(x_c + r * z_c)


def encode(p, words):
    """Return the annotations [S, 2n] of a sentence of word IDs."""
    sides = []
    for way, order in ("forward", words), ("backward", words[::-1]):
        name, states = f"encoder.{way}", []
        h = np.zeros(len(p[f"{name}.W_h"]))
        for word in order:
            h = gru(p["emb_source"][word] @ p[f"{name}.x.W"] + p[f"{name}.x.b"], h @ p[f"{name}.W_h"], h)
            states.append(h)
        sides.append(np.array(states))
    return np.hstack([sides[0], sides[1][::-1]])


def start(p, c):
    return np.tanh(c.mean(0) @ p["start.W"] + p["start.b"])


def decode(p, c, s, y):
    """One step from the state s and the embedding y: log probabilities [V], state, weights of attention [S]."""
    s1 = gru(y @ p["gru1.x.W"] + p["gru1.x.b"], s @ p["gru1.W_h"], s)
    hidden = np.tanh(c @ p["attention.memory.W"] + p["attention.memory.b"] + s1 @ p["attention.state.W"])
    weights = np.exp(log_softmax(hidden @ p["attention.v"]))
    k = weights @ c
    s = gru(k @ p["gru2.W_x"], s1 @ p["gru2.W_h"] + p["gru2.b"], s1)
    sums = s @ p["readout.state.W"] + p["readout.state.b"] + y @ p["readout.word.W"] + k @ p["readout.context.W"]
    return log_softmax(np.tanh(sums) @ p["emb_out"].T + p["emb_out.b"]), s, weights


def sentence(p, source, target):
    """Return the log probabilities of the words of a target sentence, and the weights of attention [T, S]."""
    c = encode(p, source)
    s, y = start(p, c), np.zeros(p["emb_in"].shape[1])
    logs, attended = [], []
    for word in target:
        logp, s, weights = decode(p, c, s, y)
        y = p["emb_in"][word]
        logs.append(logp[word])
        attended.append(weights)
    return np.array(logs), np.array(attended)

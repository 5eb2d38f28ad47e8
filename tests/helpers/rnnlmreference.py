"""Reference class-based RNN language model with an online document vector, in plain float64 NumPy.

Mikolov et al. 2011 and version 0.4b of their program; Rei 2015. Weights are updated word by word. Parameters are a dict
of arrays with Rnnlm's names. As in that program, an error is the target minus the probability, and updates are added.
"""

import dataclasses

import numpy as np

LONGEST = 512  # maximum words of a sentence per backward pass

PRIMES = [
    *(108641969, 116049371, 125925907, 133333309, 145678979, 175308587, 197530793, 234567803, 251851741, 264197411),
    *(330864029, 399999781, 407407183, 459258997, 479012069, 545678687, 560493491, 607407037, 629629243, 656789717),
    *(716048933, 718518067, 725925469, 733332871, 753085943, 755555077, 782715551, 790122953, 812345159, 814814293),
    *(893826581, 923456189, 940740127, 953085797, 985184539, 990122807),
]


def word_classes(counts, n, old=False):
    """Return the class of each word, from cumulative relative counts (old) or square roots of counts."""
    mass = np.asarray(counts) / sum(counts)
    mass = mass if old else np.sqrt(mass) / np.sqrt(mass).sum()
    classes, a, cumulative = [], 0, 0.0
    for share in mass:
        classes.append(a)
        cumulative += share
        if cumulative > (a + 1) / n and a < n - 1:
            a += 1
    return classes


def slots(c, history, n, label=None):
    """Return the indices in `direct` of the n-gram features of n outcomes, one row per order.

    Outcomes are the words of class `label`, or the classes if it is None. Products of two primes wrap at 32 bits and
    sums at 64. Their program uses slot 0 for "no feature"; here it is an ordinary slot. -1: no feature, because the
    history contains an out-of-vocabulary word.
    """
    half, found = c.direct // 2, np.full((c.direct_order, n), -1)
    for order in range(c.direct_order):
        if order and history[order - 1] < 0:
            break
        total = PRIMES[0] * PRIMES[1] % 2**32 * (1 if label is None else int(label) + 1)
        for b in range(1, order + 1):
            prime = PRIMES[(order * PRIMES[b] % 2**32 + b) % len(PRIMES)]
            total += prime * (int(history[b - 1]) + 1)
        first = total % 2**64 % half + (0 if label is None else half)
        found[order] = (first + np.arange(n)) % c.direct
    return found


def softmax(scores):
    exps = np.exp(scores - scores.max())
    return exps / exps.sum()


def outputs(p, c, starts, x, history, word):
    """Return the probability of a word given x = [h, d], the output weight updates for lr = 1, and the error of x.

    Updates are (name, index, amount).
    """
    k = np.searchsorted(starts, word, "right") - 1
    members = np.arange(starts[k], starts[k + 1])
    M, probability, changes, error = c.hidden, 1.0, [], 0.0
    W_classes = np.vstack([p["class_hid"], *([p["class_doc"]] if c.doc_dim else [])])
    for W, label, target in (W_classes, None, k), (p["word_out"][members].T, k, word - starts[k]):
        n = W.shape[1]
        scores = x @ W
        if c.direct:
            features = slots(c, history, n, label)
            scores = scores + np.where(features >= 0, p["direct"][features], 0).sum(0)
        y = softmax(scores)
        delta = np.eye(n)[target] - y
        probability, error = probability * y[target], error + W @ delta
        if label is None:
            changes.append(("class_hid", ..., np.outer(x[:M], delta)))
            if c.doc_dim:
                changes.append(("class_doc", ..., np.outer(x[M:], delta)))
        else:
            changes.append(("word_out", members, np.outer(delta, x)))
        if c.direct:
            fires = features >= 0
            changes.append(("direct", features[fires], np.broadcast_to(delta, features.shape)[fires]))
    return probability, changes, error


def change_outputs(p, c, changes, lr, decay):
    for name, index, amount in changes:
        shrink = name == "direct" or decay
        np.add.at(p[name], index, lr * amount - (lr * c.beta * p[name][index] if shrink else 0))


@dataclasses.dataclass
class Step:
    """One time step: input word, h before and after it, and the error of h from the output."""

    id: int
    before: np.ndarray
    h: np.ndarray
    error: np.ndarray
    starts: bool  # first step of a sentence or of the text


def clipped(c, error):
    return np.clip(error, -c.cutoff, c.cutoff) if c.cutoff else error


def back_through_time(p, c, steps, block, lr, decays):
    """Update emb, hid and, if the first step starts a sentence, start_hid. The last `block` steps are new."""
    emb, hid, error = np.zeros_like(p["emb_in"]), np.zeros_like(p["hid"]), np.zeros(c.hidden)
    for step in reversed(steps):
        r = (step.error + error) * step.h * (1 - step.h)
        if step.id >= 0:
            emb[step.id] += r
        hid += np.outer(step.before, r)
        error = clipped(c, p["hid"] @ r)
    keep = (1 - lr * c.beta) ** decays
    read = [step.id for step in steps[-block:] if step.id >= 0]
    np.multiply.at(p["emb_in"], read, keep)
    p["emb_in"] += lr * emb
    p["hid"][:] = p["hid"] * keep + lr * hid
    if c.learn_start and steps[0].starts:
        p["start_hid"] += lr * error


def start_hid(p, c):
    """Return the initial h: 1 for independent sentences as in Mikolov's program, unless learned; else 0.1."""
    return np.ones(c.hidden) if c.independent and not c.learn_start else p["start_hid"].copy()


def run(p, c, starts, ids, lr=None, docs=None):
    """Return the natural log probability of each word, float64 [n], and the document vectors [n, D] used for them.

    c       an RnnlmConfig; starts: class bounds [C + 1]; ids: word IDs, 0 at line ends, -1 for out-of-vocabulary words
    lr      learning rate; p is updated. None: score only
    docs    document vectors to use instead of the model's own
    """
    apart, M = c.independent, c.hidden
    length = LONGEST if c.sentences else c.bptt_block if c.bptt else 1
    further = 0 if c.sentences else max(0, c.bptt - 1)
    logs, vectors = np.zeros(len(ids)), np.zeros((len(ids), c.doc_dim))
    for t, (last, word) in enumerate(zip([0, *ids[:-1]], ids)):
        first = t == 0 or apart and last == 0
        if first:
            h, d = start_hid(p, c), p["start_doc"].copy() if c.doc_dim else np.zeros(0)
            history, past, block, waiting, into_doc, decays = [0] * c.direct_order, [], [], [], [], 0
        else:
            history = [last, *history[:-1]]
        before, h = h, 1 / (1 + np.exp(-(h @ p["hid"] + (p["emb_in"][last] if last >= 0 else 0))))
        block.append(Step(last, before, h, np.zeros(M), first))
        vectors[t] = d if docs is None else docs[t]
        if word >= 0:
            probability, changes, error = outputs(p, c, starts, np.concatenate([h, vectors[t]]), history, word)
            logs[t] = np.log(probability)
            block[-1].error = clipped(c, error[:M])
            d = d + c.doc_lr * error[M:]
            into_doc.append(error[M:])
            decay = (t + 1) % 10 == 0
            decays += decay
            waiting.append((changes, decay))
        if lr is None:
            continue
        sentence_ends = apart and word == 0
        block_ends = sentence_ends or len(block) == length or t == len(ids) - 1
        if block_ends or not c.defer:
            for changes, decay in waiting:
                change_outputs(p, c, changes, lr, decay)
            waiting = []
        if block_ends:
            back_through_time(p, c, past[max(0, len(past) - further) :] + block, len(block), lr, decays)
            past += [dataclasses.replace(step, error=np.zeros(M)) for step in block]
            block, decays = [], 0
        if sentence_ends and c.doc_dim:
            gather = {"mean": np.mean, "sum": np.sum, "first": lambda q, axis: q[0]}[c.start_doc]
            p["start_doc"] += lr * gather(into_doc, axis=0)
    return logs, vectors

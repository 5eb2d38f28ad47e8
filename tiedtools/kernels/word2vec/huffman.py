"""Huffman coding of a vocabulary, for hierarchical softmax."""

from tiedtools.kernels.base.jit import jit


@jit
def tree(parent, bit, weight):
    """Build the Huffman tree (Huffman 1952) as word2vec.c does, by merging the two rarest nodes until one is left.

    parent  int32 [2 V - 1], bit uint8 [2 V - 1]: nodes 0 .. V - 1 are words, the rest inner nodes; the last is the root
    weight  int64 [2 V - 1]: the counts in descending order (word 0, `</s>`, may be out of order; the code is then
            slightly longer than optimal), then V - 1 zeros, which become the counts of the inner nodes

    The second-rarest of two merged nodes gets bit 1. Linear time, because words in ascending order of count and inner
    nodes in order of creation form two sorted queues.
    """
    size = (weight.size + 1) // 2
    word, inner = size - 1, size
    for node in range(size, 2 * size - 1):
        for b in range(2):
            if word >= 0 and (inner == node or weight[word] < weight[inner]):
                child = word
                word -= 1
            else:
                child = inner
                inner += 1
            parent[child] = node
            bit[child] = b
            weight[node] += weight[child]


@jit
def paths(nodes, codes, starts, parent, bit):
    """Compute the path from the root to each word: inner nodes (0 .. V - 2, the root last) and the bits taken there.

    nodes   int32 [total], codes uint8 [total], or both of size 0 to fill in `starts` only
    starts  int64 [V + 1]: the path of word k is starts[k] : starts[k + 1]
    """
    size = starts.size - 1
    root = 2 * size - 2
    at = 0
    for k in range(size):
        starts[k] = at
        node = k
        depth = 0
        while node != root:
            depth += 1
            node = parent[node]
        if nodes.size > 0:
            node = k
            for j in range(at + depth - 1, at - 1, -1):
                codes[j] = bit[node]
                node = parent[node]
                nodes[j] = node - size
        at += depth
    starts[size] = at

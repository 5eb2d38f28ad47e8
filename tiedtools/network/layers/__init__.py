"""Layers: y = layer.forward(x, step), and dx = layer.backward(dy), which adds to the gradients of their parameters.

A layer declares its parameters at construction, and keeps what backward needs from forward, so each backward follows
its forward. Numbers of a layer are arrays [T, B, width]: steps, sequences, units; their rows are filled up with zeros,
as Buffers gives them. `step` is a step.Step. Buffers are
the layer's own, and what it returns holds until its next forward.

Output layers end a network: `loss(x, step)` -> (nats float64 [T, B], dx), `score(x, step)` -> log probabilities of the
targets, float64 [T, B], and `distribution(x)` -> log probabilities of all words, float64 [B, V].
"""

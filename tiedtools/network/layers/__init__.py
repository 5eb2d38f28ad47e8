"""Network layers: y = layer.forward(x, step), and dx = layer.backward(dy), which adds to the parameters' gradients.

A layer declares its parameters at construction. It stores what `backward` needs from `forward`, so each call of
`backward` must follow its `forward`. `step` is a network.Step. Activations are arrays [T, B, width] (steps, sequences,
units), with zero-padded rows, in the layer's Buffers; they are valid until its next `forward`.

Output layers end a network: `loss(x, step)` -> (nats float64 [T, B], dx), `score(x, step)` -> log probabilities of the
targets, float64 [T, B], and `distribution(x)` -> log probabilities of all words, float64 [B, V].
"""

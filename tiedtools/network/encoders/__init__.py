"""Encoders: the first layer of a composed word table, which maps words to sums or convolutions of subword embeddings.

    y = encoder.forward(codes, step)        y [1, V', n]
    encoder.backward(dy)                    adds to the gradients of the encoder's parameters

codes  int32 [V', L], the subwords of each word, from 0; -1 at the end: padding, which has no embedding and adds nothing

Parameters: name.emb.E  [S, d], the embeddings of S subwords, and the parameters of an encoder's layers.
"""

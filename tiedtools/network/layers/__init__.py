"""Layers: forward(x) -> y and backward(dy) -> dx, which adds to the gradients of the layer's parameters.

A layer declares its parameters at construction, and keeps what backward needs from forward, so each backward follows
its forward. Numbers of a layer are arrays [T, B, width]: steps, sequences, units. Its buffers are its own, and what it
returns holds until its next forward.
"""

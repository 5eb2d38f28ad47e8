"""Test scratch arrays."""

import numpy as np

from tiedtools.network.params import Buffers


def test_padding_is_zero_whatever_shapes_came_before():
    buffers = Buffers(np.float32)
    shapes = [(99, 15), (4, 40), (20, 40), (3, 70), (10, 5), (2, 3, 17), (12, 17), (10, 40)]
    for shape in shapes:
        array = buffers("x", *shape)
        assert array.shape[:-1] == shape[:-1] and array.shape[-1] >= shape[-1]
        assert not array[..., shape[-1] :].any(), shape
        array[..., : shape[-1]] = 1


def test_arrays_are_reused():
    buffers = Buffers(np.float32)
    first = buffers("x", 10, 20)
    assert buffers("x", 10, 20) is first and np.shares_memory(buffers("x", 4, 7), first)
    assert not np.shares_memory(buffers("y", 10, 20), first)

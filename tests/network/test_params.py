"""Test Params: tied arrays, gradients from several layers, sparse gradients."""

import numpy as np
import pytest

from tiedtools.network.params import Params
from tiedtools.network.threads import Team


@pytest.fixture(params=["float32", "float64"])
def params(request):
    """Params with tied emb_in and emb_out, a matrix, and a bias."""
    params = Params(Team(1), request.param)
    params.tie("emb_out", "emb_in")
    params.add("emb_in", (6, 5), by_rows=True)
    params.add("W", (5, 3))
    params.add("emb_out", (6, 5))
    params.add("b", (6,))
    params.build()
    return params


def by_rows():
    """Return Params with two tables with sparse gradients, one of them tied, before and after a matrix."""
    params = Params(Team(1))
    params.tie("both", "rows")
    params.add("table", (7, 3), by_rows=True)
    params.add("W", (4, 4))
    params.add("rows", (9, 20), by_rows=True)
    params.add("both", (9, 20), by_rows=True)
    params.add("b", (9,), by_rows=True)
    params.build()
    return params


def test_tied_names_share_one_array(params):
    params["emb_in"][2, 3] = 7
    assert params["emb_out"][2, 3] == 7 and params["emb_out"].shape == (6, 5)
    assert np.shares_memory(params["emb_in"], params["emb_out"])
    assert {name for name, _ in params.owners()} == {"emb_in", "W", "b"}
    assert params.count == 30 + 15 + 6


@pytest.mark.parametrize("first, second", [((6, 5), (5, 6)), ((6, 5), (6, 4)), ((6,), (6, 1))])
def test_tied_arrays_must_have_the_same_shape(first, second):
    params = Params(Team(1))
    params.tie("out", "in")
    params.add("in", first)
    with pytest.raises(ValueError, match="^out .* cannot be in"):
        params.add("out", second)


def test_arrays_are_disjoint_views_of_the_flat_array(params):
    assert params.values.dtype == params["W"].dtype == params.dtype
    for k, (name, array) in enumerate(params.owners(), 1):
        assert not array.any(), "arrays overlap or are not zero-initialized"
        array[:] = k
        assert np.shares_memory(array, params.values)
        grad, _ = params.gradient(name)
        assert grad.shape == params.padded(name).shape
    assert np.count_nonzero(params.values) == params.count
    assert [np.unique(array).tolist() for _, array in params.owners()] == [[1], [2], [3]]


def test_rows_are_aligned_to_cache_lines(params):
    for name in "emb_in", "W":
        padded = params.padded(name)
        assert all(row.ctypes.data % 64 == 0 for row in padded) and (padded.strides[0] // 64) % 2


def test_first_gradient_overwrites_and_later_ones_accumulate(params):
    for _ in range(2):
        params.begin_step()
        grad, accumulate = params.gradient("emb_out")
        assert not accumulate
        again, accumulate = params.gradient("emb_in")
        assert accumulate and np.shares_memory(grad, again)
        assert params.gradient("W")[1] is False and params.gradient("W")[1] is True


def test_row_gradients_of_an_array_with_a_dense_gradient(params):
    """Embeddings tied to a full softmax have a dense gradient, whichever layer writes it first."""
    rows = np.array([1, 4])
    params.begin_step()
    params.gradient("emb_out")[0][:] = 2
    params.row_gradient("emb_in", rows)[rows] += 1
    assert params.row_gradient("emb_in", rows)[:, 0].tolist() == [2, 3, 2, 2, 3, 2]
    params.begin_step()
    params.row_gradient("emb_in", rows)[rows] += 1
    grad, accumulate = params.gradient("emb_out")
    assert accumulate and grad[:, 0].tolist() == [0, 1, 0, 0, 1, 0]
    assert [len(part) for part in params.segments()] == [0, 0] and params.dense == params.values.size


def segments(params):
    """Return how often each element of the flat array is covered by gradients."""
    flags = np.zeros(params.values.size, int)
    flags[: params.dense] = 1
    for start, size in zip(*params.segments()):
        flags[start : start + size] += 1
    return flags


def test_sparse_rows_become_segments_and_are_cleared():
    params = by_rows()
    params.begin_step()
    for name, rows in ("table", [5, 0, 5]), ("rows", [3, 8]), ("both", [8, 2, 8]), ("b", [4]):
        rows = np.array(rows, np.int32)
        np.add.at(params.row_gradient(name, rows)[..., : params[name].shape[-1]], rows, 1)
    params.gradient("W")[0][:] = 1
    touched = {"table": [0, 5], "rows": [2, 3, 8]}
    flags = segments(params)
    assert set(flags) == {0, 1}, "segments must not overlap"
    for name, rows in touched.items():
        has = params.cut(flags, name)
        assert np.flatnonzero(has.all(1)).tolist() == np.flatnonzero(has.any(1)).tolist() == rows
        assert np.flatnonzero(params.cut(params.grads, name).any(1)).tolist() == rows
    assert params.cut(flags, "W").all() and np.flatnonzero(params.cut(flags, "b")).tolist() == [4]
    assert params.cut(params.grads, "rows")[:, 0].tolist() == [0, 0, 1, 1, 0, 0, 0, 0, 3], "both roles"

    params.begin_step()
    assert not params.grads[params.dense :].any() and not segments(params)[params.dense :].any()
    params.row_gradient("table", np.array([1], np.int32))[1] += 1
    assert np.flatnonzero(params.cut(segments(params), "table").any(1)).tolist() == [1]

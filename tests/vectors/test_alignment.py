"""Orthogonal alignment, against SciPy."""

import numpy as np
from scipy.linalg import orthogonal_procrustes

from tiedtools.vectors.alignment import aligned_cosines, rotation


def test_the_rotation_is_scipys():
    rng = np.random.default_rng(1)
    one, two = rng.standard_normal((2, 30, 5))
    np.testing.assert_allclose(rotation(one, two), orthogonal_procrustes(two, one)[0])


def test_rotated_vectors_are_aligned_without_the_absent():
    rng = np.random.default_rng(1)
    one = rng.standard_normal((30, 5))
    two = 3 * one @ np.linalg.qr(rng.standard_normal((5, 5)))[0]
    two[:4] = rng.standard_normal((4, 5))
    cosines = aligned_cosines(one, two, np.arange(30) >= 4)
    assert np.isnan(cosines[:4]).all()
    np.testing.assert_allclose(cosines[4:], 1, atol=1e-6)

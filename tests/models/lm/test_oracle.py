"""Test training of every LstmLM variant against recorded PyTorch results from the same start; see torchcase.py."""

import numpy as np
import pytest
from torchcase import TOLERANCE, cases, recorded, trained


@pytest.mark.parametrize("name, loss_scale, dtype", cases())
def test_losses_and_norms_match_pytorch(name, loss_scale, dtype):
    theirs = recorded()[cases()[name, loss_scale, dtype]]
    _, losses, norms = trained(name, dtype, loss_scale)
    np.testing.assert_allclose(losses, theirs["loss"], rtol=TOLERANCE[dtype])
    np.testing.assert_allclose(norms, theirs["norm"], rtol=10 * TOLERANCE[dtype])


def test_every_variant_is_recorded():
    assert recorded().keys() == set(cases().values())

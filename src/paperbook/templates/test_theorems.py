"""Checks of the theorems of chapter @SLUG@."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from paperbook.@SLUG@ import sample_mean


@pytest.mark.theorem("thm-@SLUG@-minimiser")
@settings(deadline=None, max_examples=50)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 20), shift=st.floats(-3, 3))
def test_mean_minimises_the_sum_of_squares(seed, n, shift):
    x = torch.randn(n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    mean = sample_mean(x)
    increase = (x - mean - shift).square().sum() - (x - mean).square().sum()
    assert increase.item() == pytest.approx(n * shift**2, abs=1e-10)

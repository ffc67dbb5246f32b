"""Tests of the method of chapter @SLUG@."""

import pytest
import torch

from paperbook.@SLUG@ import mean_error, sample_mean


def test_mean_of_known_numbers():
    assert sample_mean(torch.tensor([[1.0, 2.0], [3.0, 6.0]])).tolist() == [2.0, 4.0]


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (torch.tensor(1.0), "x must hold"),
        (torch.empty(0, 3), "x must hold"),
        (torch.tensor([1.0, float("nan")]), "x must be finite"),
    ],
)
def test_bad_samples_are_refused(x, message):
    with pytest.raises(ValueError, match=message):
        sample_mean(x)


def test_error_is_reproducible_and_falls():
    def error(n):
        return mean_error(n, repeats=2000, generator=torch.Generator().manual_seed(0))

    assert error(16) == error(16)
    assert error(256) < error(16)


@pytest.mark.parametrize("name", ["num_samples", "repeats"])
def test_counts_below_one_are_refused(name):
    counts = {"num_samples": 2, "repeats": 2, name: 0}
    with pytest.raises(ValueError, match=name):
        mean_error(counts["num_samples"], repeats=counts["repeats"], generator=torch.Generator())

"""The notebook of chapter ntk_width: every declared parameter, changed, changes its record."""

import pytest
from inprocess import InProcess

from paperbook import project
from paperbook.parameters import declared_parameters

# Small enough to run three dozen times; the smoke profile itself is run by `make smoke`.
TINY = {
    "seeds": 1,
    "starts": 1,
    "subsets": 1,
    "width": 64,
    "num_samples": 6,
    "input_dim": 6,
    "width_samples": 6,
    "width_limit": 128,
    "rate_samples": 5,
    "digit_samples": 10,
    "lazy_scale": 4.0,
    "tol": 1e-2,
    "max_steps": 200,
    "regimes": [0.5, 1.0, 4.0, 8.0],
    "widths": [32, 64],
    "kernel_widths": [16, 64],
    "output_dims": [1, 3],
    "sample_counts": [6, 12],
    "low_rank_dims": [3, 6],
    "ranks": [1, 3],
    "conditions": [1.0, 3.0],
    "spikes": [0.0, 0.5],
    "iteration_dims": [1, 3],
}
CHANGES = {
    "seed": 1,
    "seeds": 2,
    "starts": 2,
    "subsets": 2,
    "ratio": 2.0,
    "output_scale": 2.0,
    "lazy_scale": 8.0,
    "width": 128,
    "num_samples": 7,
    "input_dim": 7,
    "output_dim": 3,
    "rank": 1,
    "sketched": True,
    "spike": 0.5,
    "tol": 1e-3,
    "max_steps": 5,
    "regimes": [0.25, 1.0, 4.0, 8.0],
    "widths": [32, 128],
    "kernel_widths": [16, 32],
    "width_samples": 8,
    "width_limit": 4,
    "output_dims": [1, 4],
    "sample_counts": [6, 16],
    "low_rank_dims": [3, 8],
    "ranks": [1, 2],
    "conditions": [1.0, 6.0],
    "rate_samples": 6,
    "spikes": [0.0, 0.8],
    "iteration_dims": [1, 4],
    "digit_samples": 12,
}


@pytest.mark.slow
def test_every_parameter_changes_the_record():
    declared = declared_parameters(project.notebook_path("ntk_width"))
    # The device must not change results.
    assert set(declared) - set(CHANGES) == {"device"}
    assert InProcess("ntk_width", TINY).without_effect(CHANGES.items()) == []

"""The audit functions agree with the lemmas, and exceed 1 where an assumption is taken away."""

from dataclasses import replace

import pytest
import torch

from paperbook.ntk_width import (
    audit,
    empirical_ntk,
    forward,
    gaussian_init,
    make_generator,
    random_task,
)

TASK = random_task(0, num_samples=5, input_dim=6, output_dim=2, ratio=4.0)
LOW_RANK = random_task(
    0, num_samples=5, input_dim=6, output_dim=7, rank=2, condition=3.0, sketched=True
)


def test_ratios_are_at_most_one():
    assert 0 < audit.init_width_ratio(TASK, range(3), delta=0.1, limit=2000) < 0.01
    assert 0.5 < audit.path_ratio(TASK, 64, 0) <= 1
    assert 1 / 3 < audit.flip_ratio(100, 2.0, 0) <= 1
    assert 0.1 < audit.drift_ratio(TASK, 64, 0) <= 1
    envelope, path = audit.zero_output_ratios(TASK, 200, 0, delta=0.2)
    assert 0.1 < envelope < 1
    assert 0.1 < path <= 1
    assert 0.2 < audit.linear_rate_ratio(TASK, 0, steps=60) < 1
    assert audit.subspace_gap(LOW_RANK, 32, 0, steps=50) < 1e-12
    assert 0.1 < audit.sketch_ratio(LOW_RANK, 100, 0) <= 1


def test_a_width_that_is_never_reached_is_infinite():
    assert audit.init_width_ratio(TASK, range(3), delta=0.1, limit=5) == float("inf")


def test_subspace_gap_is_seen_for_a_plain_start():
    plain = replace(LOW_RANK, sketched=False)
    assert audit.subspace_gap(plain, 32, 0, steps=50) > 1e-3


def test_path_ratio_is_close_to_one_along_the_weakest_direction(monkeypatch):
    """R_0 on the weakest eigenvector: the bound holds, and has less than a tenth to spare."""
    scale = {"ratio": 16.0, "output_scale": 64.0}
    task = random_task(3, num_samples=4, input_dim=8, output_dim=1, **scale)
    start = task.start(256, 0)
    vectors = torch.linalg.eigh(sum(empirical_ntk(start, task.X)))[1]
    weakest = replace(task, Y=forward(start, task.X) - 0.1 * vectors[:, :1])
    assert 0.9 < audit.path_ratio(weakest, 256, 0) <= 1
    monkeypatch.setattr(audit, "DISCRETE", 0.9)
    assert audit.path_ratio(weakest, 256, 0) > 1


def test_random_tasks_share_their_inputs():
    common = {"num_samples": 6, "input_dim": 4}
    a = random_task(1, output_dim=2, **common)
    b = random_task(1, output_dim=5, rank=2, condition=2.0, **common)
    assert torch.equal(a.X, b.X)
    assert b.basis.shape == (5, 2)
    assert b.response_condition == pytest.approx(2.0)
    assert not torch.equal(a.X, random_task(2, output_dim=2, **common).X)


def test_starts_differ_by_seed_and_width():
    assert not torch.equal(TASK.start(6, 0).W, TASK.start(6, 1).W)
    expected = gaussian_init(6, 6, 2, alpha=0.5, beta=2.0, generator=make_generator(0, 6))
    assert torch.equal(TASK.start(6, 0).V, expected.V)

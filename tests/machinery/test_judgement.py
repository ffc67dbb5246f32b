"""Samples to intervals to judgements."""

import math

import numpy as np
import pytest
import torch

from paperbook.card import Claim
from paperbook.evidence.intervals import interval
from paperbook.evidence.judgement import Judgement, judge, measure

SHARED = {"id": "toy-x", "spec": "A1", "statement": "s", "source": "abstract"}


def claim(**fields) -> Claim:
    return Claim(**SHARED, **{"kind": "empirical", "statistic": "x", "rule": "< 0", **fields})


def test_student_interval_by_hand():
    # mean 2, standard deviation 1, n = 3, t(0.975, 2 degrees of freedom) = 4.302653
    low, high = interval(np.array([1.0, 2.0, 3.0]), "t")
    half = 4.302652730 / math.sqrt(3)
    assert (low, high) == pytest.approx((2 - half, 2 + half))


def test_student_interval_covers_at_its_level():
    draws = np.random.default_rng(0).normal(size=(4000, 3))
    covered = [low <= 0 <= high for low, high in (interval(row, "t") for row in draws)]
    assert np.mean(covered) == pytest.approx(0.95, abs=0.015)


def test_binomial_interval_is_the_exact_one():
    # Clopper-Pearson for 0 of 10: upper end 1 - 0.025^(1/10)
    assert interval(np.zeros(10), "binomial") == pytest.approx((0, 1 - 0.025 ** (1 / 10)))


def test_bootstrap_interval_surrounds_the_mean():
    samples = np.random.default_rng(1).exponential(size=60)
    low, high = interval(samples, "bootstrap")
    assert low < samples.mean() < high
    assert high - low == pytest.approx(4 * samples.std() / math.sqrt(60), rel=0.3)


def test_one_sample_is_never_conclusive():
    assert judge(claim(), [-100.0]).verdict == "inconclusive"


def test_equal_samples_are_judged_as_they_are():
    assert judge(claim(), [-1.0, -1.0]).verdict == "reproduced"
    assert judge(claim(rule="> 0"), [-1.0, -1.0]).verdict == "not reproduced"


def test_theorems_are_judged_on_their_worst_instance():
    theorem = claim(kind="theorem", rule="< 1e-6")
    assert judge(theorem, [1e-9, 1e-7]).verdict == "reproduced"
    failed = judge(theorem, [1e-9, 1e-7, 1.0])
    assert (failed.verdict, failed.tests[0].value) == ("not reproduced", 1.0)
    assert judge(theorem, [1e-9, math.inf]).verdict == "not reproduced"


def test_tensors_and_nested_lists_are_samples_too():
    expected = measure("", "< 0", "t", [-1.0, -2.0])
    assert measure("", "< 0", "t", torch.tensor([-1.0, -2.0], dtype=torch.float64)) == expected
    assert measure("", "< 0", "t", [torch.tensor(-1.0), torch.tensor(-2.0)]) == expected


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        ([], "at least one"),
        ([1.0, math.nan], "NaN"),
        ([1.0, math.inf], "finite"),
        (["many"], "could not convert"),
        ({"slope": [1.0]}, "takes plain samples"),
    ],
)
def test_samples_that_cannot_be_judged(samples, message):
    with pytest.raises(ValueError, match=f"toy-x.*{message}"):
        judge(claim(), samples)


def test_named_tests_must_all_be_given():
    named = Claim(
        **SHARED,
        kind="mechanism",
        tests=[
            {"name": "a", "statistic": "x", "rule": "< 0"},
            {"name": "b", "statistic": "y", "rule": "> 0"},
        ],
    )
    assert judge(named, {"a": [-1, -1.1], "b": [1, 1]}).verdict == "reproduced"
    assert judge(named, {"a": [-1, -1.1], "b": [-1, -1]}).verdict == "not reproduced"
    for wrong in ({"a": [1]}, {"a": [1], "b": [1], "c": [1]}, [1]):
        with pytest.raises(ValueError, match="takes 'a', 'b'"):
            judge(named, wrong)


def test_judgements_survive_json():
    judgement = judge(claim(), [-1.0, -2.0, 0.5])
    assert Judgement.from_dict(judgement.to_dict()) == judgement

"""Rules and verdicts."""

import math

import pytest

from paperbook.evidence.rules import INCONCLUSIVE, NOT_REPRODUCED, REPRODUCED, Rule, combine

INF = math.inf


@pytest.mark.parametrize(
    ("text", "low", "high", "verdict"),
    [
        ("< 0", -2, -1, REPRODUCED),
        ("< 0", -1, 0, INCONCLUSIVE),
        ("< 0", 0, 1, NOT_REPRODUCED),
        ("<= 0", -1, 0, REPRODUCED),
        ("<= 0", 0, 1, INCONCLUSIVE),
        ("<= 0", 0.1, 1, NOT_REPRODUCED),
        ("> 0.98", 0.981, 0.99, REPRODUCED),
        ("> 0.98", 0.9, 0.98, NOT_REPRODUCED),
        (">= -1e-3", -1e-3, 5, REPRODUCED),
        ("in [0.7, 1.3]", 0.7, 1.3, REPRODUCED),
        ("in [0.7, 1.3]", 0.6, 0.8, INCONCLUSIVE),
        ("in [0.7, 1.3]", 1.31, 2, NOT_REPRODUCED),
        ("< 0", -INF, INF, INCONCLUSIVE),
        ("in [0, 1]", -INF, INF, INCONCLUSIVE),
    ],
)
def test_verdict_of_an_interval(text, low, high, verdict):
    assert Rule.parse(text).verdict(low, high) == verdict


@pytest.mark.parametrize(
    "text", ["", "0", "<", "= 1", "in [1, 0]", "in [1, 1]", "in (0, 1)", "< x"]
)
def test_unreadable_rules_are_refused(text):
    with pytest.raises(ValueError, match="is not one of"):
        Rule.parse(text)


@pytest.mark.parametrize(
    ("text", "worst"), [("< 1", 3), ("> 1", -2), ("in [0, 0.9]", 3), ("in [0, 3]", -2)]
)
def test_worst_value_is_the_one_that_satisfies_least(text, worst):
    assert Rule.parse(text).worst([-2, 0.5, 3]) == worst


def test_a_claim_needs_all_its_tests():
    assert combine([REPRODUCED, REPRODUCED]) == REPRODUCED
    assert combine([REPRODUCED, INCONCLUSIVE]) == INCONCLUSIVE
    assert combine([INCONCLUSIVE, NOT_REPRODUCED, REPRODUCED]) == NOT_REPRODUCED

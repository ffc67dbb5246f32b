"""95 % intervals for a statistic, from independent samples of it."""

import math

import numpy as np
from scipy import stats

LEVEL = 0.95
METHODS = ("t", "worst", "bootstrap", "binomial")


def interval(samples: np.ndarray, method: str) -> tuple[float, float]:
    """Ends of the interval of ``samples`` (n,) under ``method``.

    ``t``: Student's t for the mean; one sample alone has an unbounded interval.
    ``bootstrap``: bias-corrected accelerated bootstrap of the mean (10 000 resamples, fixed seed).
    ``binomial``: exact Clopper-Pearson interval of a success rate; samples are 0 or 1.
    ``worst``: the range of a deterministic check over its instances.

    Raises:
        ValueError: unknown method, samples that are no numbers, or other than 0/1 for binomial.
    """
    if method not in METHODS:
        raise ValueError(f"interval method must be one of {', '.join(METHODS)}, got {method!r}")
    if method == "worst":
        return float(samples.min()), float(samples.max())
    if not np.isfinite(samples).all():
        raise ValueError("samples must be finite")
    if method == "binomial":
        return _binomial(samples)
    if len(samples) == 1:
        return -math.inf, math.inf
    if np.ptp(samples) == 0:
        return float(samples[0]), float(samples[0])
    return _student(samples) if method == "t" else _bootstrap(samples)


def _student(samples: np.ndarray) -> tuple[float, float]:
    half = stats.t.ppf(0.5 + LEVEL / 2, len(samples) - 1) * stats.sem(samples)
    mean = float(samples.mean())
    return mean - float(half), mean + float(half)


def _bootstrap(samples: np.ndarray) -> tuple[float, float]:
    found = stats.bootstrap(
        (samples,),
        np.mean,
        confidence_level=LEVEL,
        n_resamples=10_000,
        rng=np.random.default_rng(0),
    ).confidence_interval
    return float(found.low), float(found.high)


def _binomial(samples: np.ndarray) -> tuple[float, float]:
    if not np.isin(samples, (0, 1)).all():
        raise ValueError("binomial samples must be 0 or 1")
    test = stats.binomtest(int(samples.sum()), len(samples))
    found = test.proportion_ci(confidence_level=LEVEL, method="exact")
    return float(found.low), float(found.high)

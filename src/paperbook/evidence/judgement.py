"""From samples to a verdict: the one place where the book decides what holds."""

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from paperbook.evidence.intervals import interval
from paperbook.evidence.rules import NOT_REPRODUCED, REPRODUCED, Rule, combine


@dataclass(frozen=True)
class Measured:
    """One test of a claim: its samples, their mean (or worst case), interval and verdict.

    ``low`` and ``high`` are None where the interval is unbounded (a single sample).
    """

    name: str
    rule: str
    method: str
    samples: tuple[float, ...]
    value: float
    low: float | None
    high: float | None
    verdict: str

    def __str__(self) -> str:
        if self.method == "worst":
            return short(self.value)
        if self.low is None or self.high is None:
            return f"{short(self.value)} (one sample)"
        return f"{short(self.value)} [{short(self.low)}, {short(self.high)}]"


@dataclass(frozen=True, repr=False)
class Judgement:
    """Verdict on one claim with the measurements behind it; a scale claim has none."""

    claim: str
    verdict: str
    tests: tuple[Measured, ...]

    def __str__(self) -> str:
        numbers = "; ".join(f"{t.name} {t}".strip() for t in self.tests)
        return f"{self.claim}: {self.verdict} ({numbers})"

    __repr__ = __str__  # what a notebook shows below a cell that ends with a judgement

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Judgement":
        tests = tuple(Measured(**{**t, "samples": tuple(t["samples"])}) for t in data["tests"])
        return cls(data["claim"], data["verdict"], tests)


def measure(name: str, rule: str, method: str, samples: Any) -> Measured:
    """Judge ``samples`` (array-like of numbers, any shape, at least one) by ``rule``.

    Raises:
        ValueError: no samples, NaN among them, infinite ones where a mean is taken.
    """
    values = np.asarray([float(v) for v in np.ravel(_plain(samples))])
    if values.size == 0:
        raise ValueError("samples must hold at least one number, got none")
    if np.isnan(values).any():
        raise ValueError("samples must not hold NaN")
    low, high = interval(values, method)
    parsed = Rule.parse(rule)
    if method == "worst":
        value = parsed.worst(values.tolist())
        verdict = REPRODUCED if parsed.allows(value) else NOT_REPRODUCED
    else:
        value = float(values.mean())
        verdict = parsed.verdict(low, high)
    ends = (end if math.isfinite(end) else None for end in (low, high))
    return Measured(name, rule, method, tuple(values.tolist()), value, *ends, verdict)


def judge(claim: Any, samples: Any) -> Judgement:
    """Judge a card's claim: samples for its one test, or a dict with samples for each by name.

    Raises:
        ValueError: names that do not fit the claim's tests, or samples that cannot be judged.
    """
    names = [test.name for test in claim.tests]
    given = samples if isinstance(samples, dict) else {"": samples}
    if sorted(given) != sorted(names):
        wanted = ", ".join(repr(n) for n in names) if names != [""] else "plain samples"
        raise ValueError(f"{claim.id}: this claim takes {wanted}; got {', '.join(given) or 'none'}")
    tests = []
    for test in claim.tests:
        try:
            tests.append(measure(test.name, test.rule, claim.method, given[test.name]))
        except (ValueError, TypeError) as error:
            where = f"{claim.id}.{test.name}" if test.name else claim.id
            raise ValueError(f"{where}: {error}") from None
    return Judgement(claim.id, combine([t.verdict for t in tests]), tuple(tests))


def short(value: float | None) -> str:
    """A number for readers: three significant digits."""
    if value is None:
        return "unbounded"
    return f"{value:.3g}"


def _plain(samples: Any) -> Any:
    """Tensors (on any device) become arrays; lists of tensors too."""
    if hasattr(samples, "detach"):
        return samples.detach().cpu().numpy()
    if isinstance(samples, list | tuple):
        return [_plain(sample) for sample in samples]
    return samples

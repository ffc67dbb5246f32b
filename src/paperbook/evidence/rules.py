"""Rules that a statistic must satisfy, such as ``< 0`` or ``in [0.7, 1.3]``."""

import re
from dataclasses import dataclass

NUMBER = r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"
COMPARISON = re.compile(rf"^(<=|>=|<|>)\s*{NUMBER}$")
RANGE = re.compile(rf"^in\s*\[\s*{NUMBER}\s*,\s*{NUMBER}\s*\]$")

REPRODUCED = "reproduced"
NOT_REPRODUCED = "not reproduced"
INCONCLUSIVE = "inconclusive"
NEEDS_SCALE = "needs scale"
VERDICTS = (REPRODUCED, NOT_REPRODUCED, INCONCLUSIVE, NEEDS_SCALE)


@dataclass(frozen=True)
class Rule:
    """The set of values ``low .. high`` that a claim allows; ``strict`` leaves the ends out."""

    low: float
    high: float
    strict: bool

    @classmethod
    def parse(cls, text: str) -> "Rule":
        """Read ``< a``, ``<= a``, ``> a``, ``>= a`` or ``in [a, b]``.

        Raises:
            ValueError: any other text, or ``in [a, b]`` with a >= b.
        """
        text = text.strip()
        if match := COMPARISON.match(text):
            sign, bound = match.group(1), float(match.group(2))
            low, high = (-float("inf"), bound) if sign[0] == "<" else (bound, float("inf"))
            return cls(low, high, strict=len(sign) == 1)
        if match := RANGE.match(text):
            low, high = float(match.group(1)), float(match.group(2))
            if low < high:
                return cls(low, high, strict=False)
        raise ValueError(
            f"rule {text!r} is not one of '< a', '<= a', '> a', '>= a', 'in [a, b]' with a < b"
        )

    def allows(self, value: float) -> bool:
        if self.strict:
            return self.low < value < self.high
        return self.low <= value <= self.high

    def verdict(self, low: float, high: float) -> str:
        """Judge an interval: inside the rule, outside it, or straddling its edge."""
        if self.allows(low) and self.allows(high):
            return REPRODUCED
        misses = high <= self.low or low >= self.high if self.strict else None
        if misses is None:
            misses = high < self.low or low > self.high
        return NOT_REPRODUCED if misses else INCONCLUSIVE

    def worst(self, values: list[float]) -> float:
        """The value that satisfies the rule least: the one closest to, or furthest past, an end."""
        return min(values, key=lambda value: min(value - self.low, self.high - value))


def combine(verdicts: list[str]) -> str:
    """Verdict of a claim with several tests: all must hold, one clear failure sinks it."""
    if all(verdict == REPRODUCED for verdict in verdicts):
        return REPRODUCED
    if NOT_REPRODUCED in verdicts:
        return NOT_REPRODUCED
    return INCONCLUSIVE

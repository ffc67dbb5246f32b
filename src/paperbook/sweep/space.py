"""Which points a sweep visits: grids, and random or quasi-random samples of ranges."""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from scipy.stats import qmc

from paperbook.errors import PaperbookError
from paperbook.parameters import Parameter, check_values
from paperbook.project import unknown

METHODS = ("random", "lhs", "sobol")
MOST_POINTS = 100_000


@dataclass(frozen=True)
class Range:
    """Values of one parameter from ``low`` to ``high``, on a linear or a logarithmic scale."""

    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise PaperbookError(f"a range needs low < high, got {self.low}:{self.high}")
        if self.log and self.low <= 0:
            raise PaperbookError(f"a logarithmic range needs low > 0, got {self.low}")

    def at(self, unit: float, integer: bool) -> float | int:
        """The value at position ``unit`` in [0, 1)."""
        if integer:
            return self._integer_at(unit)
        if self.log:
            return float(self.low * (self.high / self.low) ** unit)
        return float(self.low + (self.high - self.low) * unit)

    def _integer_at(self, unit: float) -> int:
        low, high = math.ceil(self.low), math.floor(self.high)
        if self.log:
            # Half a unit beyond each end, so that the end values get their share.
            a, b = math.log(low - 0.5), math.log(high + 0.5)
            return min(max(round(math.exp(a + (b - a) * unit)), low), high)
        return min(low + math.floor((high - low + 1) * unit), high)


@dataclass(frozen=True)
class Space:
    """A grid, crossed with a sample of ranges where there are any."""

    grid: Mapping[str, list[Any]]
    ranges: Mapping[str, Range]
    sample: int = 0
    method: str = "sobol"
    seed: int = 0

    def points(self, declared: Mapping[str, Parameter], where: str) -> list[dict[str, Any]]:
        """All points as checked parameter values, in a fixed order, without repetitions.

        Raises:
            PaperbookError: an unknown parameter, a wrong type, an empty grid, a bad range.
        """
        self._check(declared, where)
        columns = [
            [(name, value) for value in _checked(declared, name, values, where)]
            for name, values in self.grid.items()
        ]
        crossed = [dict(combination) for combination in itertools.product(*columns)]
        sampled = self._sampled(declared)
        points = [cell | extra for cell in crossed for extra in sampled]
        unique = {repr(sorted(point.items())): point for point in points}
        return list(unique.values())

    def _check(self, declared: Mapping[str, Parameter], where: str) -> None:
        if not self.grid and not self.ranges:
            raise PaperbookError(f"{where}: no parameters to sweep: give -p, --space or --from")
        for name, values in self.grid.items():
            if name in self.ranges:
                raise PaperbookError(f"{where}: parameter {name!r} is in the grid and in the space")
            if not values:
                raise PaperbookError(f"{where}: parameter {name!r} has no values")
        for name in self.ranges:
            if name not in declared:
                raise PaperbookError(f"{where}: {unknown('parameter', name, declared)}")
            if declared[name].type not in ("int", "float"):
                raise PaperbookError(f"{where}: parameter {name!r} is no number: it has no range")
        if bool(self.ranges) != bool(self.sample):
            raise PaperbookError(f"{where}: --space and --sample go together")
        if self.sample < 0 or self.size > MOST_POINTS:
            raise PaperbookError(f"{where}: a sweep has 1 to {MOST_POINTS} points, got {self.size}")
        if self.method not in METHODS:
            raise PaperbookError(f"{where}: {unknown('sampling method', self.method, METHODS)}")

    @property
    def size(self) -> int:
        return math.prod(len(values) for values in self.grid.values()) * max(self.sample, 1)

    def _sampled(self, declared: Mapping[str, Parameter]) -> list[dict[str, Any]]:
        if not self.ranges:
            return [{}]
        names = list(self.ranges)
        return [
            {
                name: self.ranges[name].at(float(unit), declared[name].type == "int")
                for name, unit in zip(names, row, strict=True)
            }
            for row in self._units(len(names))
        ]

    def _units(self, dimension: int) -> np.ndarray:
        """Sample (sample, dimension) of the unit cube."""
        rng = np.random.default_rng(self.seed)
        if self.method == "random":
            return rng.random((self.sample, dimension))
        if self.method == "lhs":
            return qmc.LatinHypercube(dimension, rng=rng).random(self.sample)
        power = max(math.ceil(math.log2(self.sample)), 0)
        return qmc.Sobol(dimension, rng=rng).random_base2(power)[: self.sample]


def _checked(declared: Mapping[str, Parameter], name: str, values: list, where: str) -> list:
    return [check_values(declared, {name: value}, where)[name] for value in values]


def parse_grid(declared: Mapping[str, Parameter], texts: list[str], where: str) -> dict[str, list]:
    """Turn ``["a=1,2,4", "seed=0:5"]`` into lists of checked values.

    ``low:high`` and ``low:high:step`` are ranges of integers that leave ``high`` out, as in Python.
    A parameter of type list takes a YAML list of lists.
    """
    grid: dict[str, list] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        if not equals:
            raise PaperbookError(f"{where}: expected name=values, got {text!r}")
        if name not in declared:
            raise PaperbookError(f"{where}: {unknown('parameter', name, declared)}")
        if name in grid:
            raise PaperbookError(f"{where}: parameter {name!r} is given twice")
        try:
            grid[name] = _values(declared[name], values)
        except (PaperbookError, yaml.YAMLError, ValueError) as error:
            raise PaperbookError(f"{where}: {error}") from None
    return grid


def _values(parameter: Parameter, text: str) -> list:
    if not text.strip():
        raise PaperbookError(f"parameter {parameter.name!r} has no values")
    if parameter.type == "list":
        return [parameter.check(value) for value in yaml.safe_load(text)]
    if parameter.type == "int" and ":" in text:
        bounds = [int(bound) for bound in text.split(":")]
        values = list(range(*bounds))
        if not values:
            raise PaperbookError(f"parameter {parameter.name!r}: the range {text} is empty")
        return values
    return [parameter.parse(value.strip()) for value in text.split(",")]


def parse_ranges(texts: list[str], where: str) -> dict[str, Range]:
    """Turn ``["lr=1e-4:1e-1:log"]`` into ranges."""
    ranges: dict[str, Range] = {}
    for text in texts:
        name, _, values = text.partition("=")
        low, *rest = values.split(":")
        if len(rest) not in (1, 2) or rest[1:] not in ([], ["log"]):
            raise PaperbookError(f"{where}: expected name=low:high or name=low:high:log: {text!r}")
        try:
            ranges[name] = Range(float(low), float(rest[0]), log=len(rest) == 2)
        except PaperbookError as error:
            raise PaperbookError(f"{where}: parameter {name!r}: {error}") from None
        except ValueError:
            raise PaperbookError(f"{where}: {text!r}: ends of a range are numbers") from None
    return ranges


FILE_FIELDS = {"profile", "grid", "space", "sample", "method", "seed"}


def read_space(path: Path) -> tuple[Space, str]:
    """A space and a profile from a YAML file.

    The file has the fields ``grid`` (name: list of values), ``space`` (name: [low, high] or
    [low, high, log]), ``sample``, ``method``, ``seed`` and ``profile``; all may be left out.
    """
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise PaperbookError(f"{path.name}: not readable: {error}") from None
    if not isinstance(data, dict):
        raise PaperbookError(f"{path.name}: expected a mapping of fields")
    for field in data:
        if field not in FILE_FIELDS:
            raise PaperbookError(f"{path.name}: {unknown('field', str(field), FILE_FIELDS)}")
    texts = [
        f"{name}={':'.join(str(end) for end in ends)}"
        for name, ends in (data.get("space") or {}).items()
    ]
    grid = data.get("grid") or {}
    if not all(isinstance(values, list) for values in grid.values()):
        raise PaperbookError(f"{path.name}: grid: each parameter takes a list of values")
    space = Space(
        grid,
        parse_ranges(texts, path.name),
        int(data.get("sample", 0)),
        data.get("method", "sobol"),
        int(data.get("seed", 0)),
    )
    return space, data.get("profile", "book")

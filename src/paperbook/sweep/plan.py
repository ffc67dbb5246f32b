"""What a sweep has to do: all its points, the finished, the failed, the missing."""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from paperbook import project
from paperbook.building import expected_seconds
from paperbook.execution import resolve_parameters
from paperbook.fingerprint import fingerprint
from paperbook.parameters import declared_parameters
from paperbook.sweep.space import Space
from paperbook.sweep.store import Point, Store, read_run


@dataclass(frozen=True)
class Plan:
    """Points of a sweep by what is to be done with them."""

    points: list[Point]
    done: list[Point]
    failed: list[Point]
    missing: list[Point]

    def todo(self, retry_failed: bool) -> list[Point]:
        return self.missing + (self.failed if retry_failed else [])


def all_points(slug: str, space: Space, profile: str) -> list[Point]:
    """Points of ``space`` over the chapter's ``profile``.

    Raises:
        PaperbookError: unknown chapter, profile or parameter, wrong type, empty grid.
    """
    project.require_slug(slug)
    declared = declared_parameters(project.notebook_path(slug))
    defaults = {name: parameter.default for name, parameter in declared.items()}
    base = defaults | resolve_parameters(slug, profile)
    code = fingerprint(slug)
    return [Point(slug, code, base | values) for values in space.points(declared, slug)]


def make_plan(points: list[Point], store: Store) -> Plan:
    """Sort ``points`` by their state in ``store``."""
    done = [point for point in points if store.is_done(point)]
    finished = {point.key for point in done}
    rest = [point for point in points if point.key not in finished]
    failed = [point for point in rest if store.failure(point) is not None]
    broken = {point.key for point in failed}
    return Plan(points, done, failed, [point for point in rest if point.key not in broken])


def seconds_per_point(slug: str, store: Store, profile: str) -> float | None:
    """Expected wall seconds of one run: from this folder's runs, else from the last book run."""
    runs = [run for path in store.finished() if (run := read_run(path))]
    times = [run.seconds for run in runs if run.seconds]
    if times:
        return median(times)
    return expected_seconds(slug) if profile == "book" else None


def varied(points: list[Point]) -> dict[str, list[Any]]:
    """Parameters that differ between ``points``, with their values in order of appearance."""
    if not points:
        return {}
    names = points[0].parameters
    columns: Mapping[str, list[Any]] = {
        name: list({repr(p.parameters[name]): p.parameters[name] for p in points}.values())
        for name in names
    }
    return {name: values for name, values in columns.items() if len(values) > 1}

"""``paperbook sweep`` and ``paperbook results``."""

import time
from dataclasses import dataclass
from pathlib import Path

from paperbook import console, project
from paperbook.card import load_card
from paperbook.errors import PaperbookError, RunError
from paperbook.parameters import declared_parameters
from paperbook.sweep.children import Limits
from paperbook.sweep.engine import Done, run_locally
from paperbook.sweep.plan import Plan, all_points, make_plan, seconds_per_point, varied
from paperbook.sweep.space import Space, parse_grid, parse_ranges, read_space
from paperbook.sweep.store import Store


@dataclass(frozen=True)
class Options:
    """What the command line asked for, beyond the space."""

    workers: int
    dask: str
    preload: bool
    timeout: float
    memory: float
    retries: int
    retry_failed: bool


def make_space(
    slug: str,
    grid: list[str],
    ranges: list[str],
    sample: int,
    method: str,
    sample_seed: int,
    file: Path | None,
) -> tuple[Space, str]:
    """The space of a sweep and its file's profile: options, a file, or the card's own default."""
    project.require_slug(slug)
    if file is not None:
        if grid or ranges or sample:
            raise PaperbookError("--from takes the place of -p, --space and --sample")
        return read_space(file)
    declared = declared_parameters(project.notebook_path(slug))
    if not grid and not ranges:
        return Space(load_card(slug).sweep, {}), ""
    parsed = parse_grid(declared, grid, slug)
    return Space(parsed, parse_ranges(ranges, slug), sample, method, sample_seed), ""


def show_plan(slug: str, store: Store, plan: Plan, profile: str, workers: int) -> None:
    """A dry run: how many points, and about how long."""
    for name, values in varied(plan.points).items():
        shown = ", ".join(str(value) for value in values[:8]) + (", ..." if values[8:] else "")
        console.out.print(f"{name}: {shown} ({len(values)} values)", markup=False)
    console.out.print(_counts(plan))
    seconds = seconds_per_point(slug, store, profile)
    if seconds is None:
        console.out.print("no past run of this profile: no estimate of time")
    else:
        total = seconds * len(plan.missing) / max(workers, 1)
        console.out.print(f"about {console.duration(total)} with {workers} workers")


def _counts(plan: Plan) -> str:
    return (
        f"{len(plan.points)} points: {len(plan.done)} done, {len(plan.failed)} failed, "
        f"{len(plan.missing)} left"
    )


def sweep(slug: str, space: Space, profile: str, folder: Path, options: Options, dry: bool) -> None:
    """Run what is missing of a sweep into ``folder``.

    Raises:
        PaperbookError: bad input, or another sweep at work in the folder.
        RunError: some points failed.
    """
    points = all_points(slug, space, profile)
    store = Store(folder)
    if dry:
        show_plan(slug, store, make_plan(points, store), profile, options.workers)
        return
    with store.locked():
        store.clear_leftovers()
        store.put_aside_stale(points)
        plan = make_plan(points, store)
        todo = plan.todo(options.retry_failed)
        console.out.print(_counts(plan))
        try:
            _run(store, todo, options)
        finally:
            after = make_plan(points, store)
            if after.done:
                _write_results(store)
            console.out.print(_counts(after))
    if after.failed:
        first = store.failure(after.failed[0])
        raise RunError(
            f"{len(after.failed)} points failed (--retry-failed runs them again); "
            f"the first: {first.error if first else 'unknown'}"
        )


def _run(store: Store, todo: list, options: Options) -> None:
    limits = Limits(options.timeout, options.memory)
    with console.counting(len(todo)) as advance:
        start = time.monotonic()

        def report(done: Done) -> None:
            advance(done.failure is not None, time.monotonic() - start)

        if options.dask:
            from paperbook.sweep.remote import run_on_dask

            run_on_dask(
                store, todo, options.dask, limits=limits, retries=options.retries, report=report
            )
        else:
            run_locally(
                store,
                todo,
                workers=options.workers,
                limits=limits,
                retries=options.retries,
                preload=options.preload,
                report=report,
            )


def _write_results(store: Store) -> None:
    from paperbook.sweep.plotting import save_figure, summary_figure
    from paperbook.sweep.results import collect, save

    table = collect(store)
    save(table, store.folder)
    save_figure(summary_figure(table), store.folder)


def results(folder: Path, statistics: list[str], by: list[str], keep: bool = False) -> None:
    """Rebuild table and figure of a sweep's folder and print the table's summary.

    With ``keep``, also put the table (the ``statistics`` alone, if named) into the book.
    """
    from paperbook.sweep import stored
    from paperbook.sweep.plotting import save_figure, summary_figure
    from paperbook.sweep.results import choose, collect, save, summarise, varied_columns

    if not folder.is_dir():
        raise PaperbookError(f"{folder}: no such folder")
    store = Store(folder)
    table = collect(store)
    save(table, store.folder)
    figure = save_figure(summary_figure(table, statistics=statistics, by=by), store.folder)
    columns = by or varied_columns(table)[:2]
    for name in choose(table, statistics):
        console.out.print(f"\n{name}", style="bold")
        if columns:
            shown = summarise(table, name, columns).to_string(index=False, float_format="%.4g")
        else:
            shown = f"{table.loc[table['statistic'] == name, 'mean'].mean():.4g}"
        console.out.print(shown, markup=False)
    points = table["key"].nunique()
    console.out.print(f"\n{points} points in results.parquet; figure: {figure.name}")
    if keep:
        chosen = table[table["statistic"].isin(statistics)] if statistics else table
        console.out.print(f"stored as {stored.write(chosen).relative_to(project.root())}")

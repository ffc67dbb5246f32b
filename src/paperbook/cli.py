"""The command line: ``paperbook list | run | sweep | results | build | evidence | check | new``."""

import csv
import io
import json
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from paperbook import console, project
from paperbook.errors import PaperbookError, RunError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Run, judge and build the chapters of paperbook.",
)
BAD_INPUT, FAILED, INTERRUPTED = 2, 1, 130


@contextmanager
def _one_line_errors():
    try:
        yield
    except PaperbookError as error:
        console.err.print(f"paperbook: {error}", markup=False)
        raise typer.Exit(BAD_INPUT) from None
    except RunError as error:
        console.err.print(f"paperbook: {error}", markup=False)
        raise typer.Exit(FAILED) from None
    except KeyboardInterrupt:
        console.err.print("paperbook: interrupted; what was finished is kept")
        raise typer.Exit(INTERRUPTED) from None


Slugs = Annotated[list[str], typer.Argument(help="chapters, by slug")]
Jobs = Annotated[int, typer.Option("--jobs", "-j", help="chapters run at the same time")]


@app.command("list")
def list_chapters() -> None:
    """List the chapters with their state and the cost of their last run."""
    from paperbook.building import expected_seconds
    from paperbook.card import load_card
    from paperbook.execution import is_stale

    with _one_line_errors():
        for slug in project.slugs():
            seconds = expected_seconds(slug)
            cost = "never run" if seconds is None else f"{seconds:.0f} CPU s"
            state = "stale" if is_stale(slug) else "up to date"
            console.out.print(f"{slug:<18} {state:<11} {cost:<11} {load_card(slug).title}")


@app.command()
def run(
    slugs: Slugs,
    profile: Annotated[str, typer.Option(help="smoke, book or paper")] = "book",
    parameter: Annotated[
        list[str] | None, typer.Option("--parameter", "-p", help="name=value, may be repeated")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="executed notebook (one chapter)")
    ] = None,
    in_place: Annotated[
        bool, typer.Option("--in-place", help="store the outputs in the chapter itself")
    ] = False,
) -> None:
    """Run chapters through papermill; executed notebooks go to runs/ unless told otherwise."""
    with _one_line_errors():
        assignments = parameter or []
        if output is not None and len(slugs) > 1:
            raise PaperbookError("--output takes one chapter; leave it out to run several")
        if in_place and (output is not None or assignments or profile != "book"):
            raise PaperbookError("--in-place stores the book profile: no -o, -p or --profile")
        plans = [_plan(slug, profile, assignments) for slug in slugs]
        failed = 0
        for slug, overrides in plans:
            target = project.notebook_path(slug) if in_place else output
            try:
                _run_one(slug, target or _default_output(slug, profile), profile, overrides)
            except RunError as error:
                failed += 1
                console.err.print(f"paperbook: {error}", markup=False)
        if failed:
            raise RunError(f"{failed} of {len(plans)} chapters failed")


def _plan(slug: str, profile: str, assignments: list[str]) -> tuple[str, dict]:
    """Check everything about one run, before any kernel starts."""
    from paperbook.execution import resolve_parameters
    from paperbook.parameters import declared_parameters, parse_assignments

    project.require_slug(slug)
    declared = declared_parameters(project.notebook_path(slug))
    overrides = parse_assignments(declared, assignments, slug)
    resolve_parameters(slug, profile, overrides)
    return slug, overrides


def _default_output(slug: str, profile: str) -> Path:
    return project.root() / "runs" / f"{slug}-{profile}.ipynb"


def _run_one(slug: str, target: Path, profile: str, overrides: dict) -> None:
    from paperbook.execution import run as run_chapter

    if not console.out.is_terminal:
        console.out.print(f"{slug}: running ({profile})")
    with console.progress_bar(slug, 1) as advance:
        record = run_chapter(slug, target, profile=profile, overrides=overrides, progress=advance)
    console.out.print(
        f"{slug}: {_count_verdicts(record)}, {record['cpu_seconds']:.0f} CPU s, {_shown(target)}"
    )


def _count_verdicts(record: dict) -> str:
    verdicts = [claim["verdict"] for claim in record["claims"]]
    return ", ".join(f"{verdicts.count(v)} {v}" for v in dict.fromkeys(sorted(verdicts)))


def _shown(path: Path) -> str:
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


@app.command()
def sweep(
    slug: Annotated[str, typer.Argument(help="chapter, by slug")],
    output: Annotated[Path, typer.Option("--output", "-o", help="the sweep's folder")],
    parameter: Annotated[
        list[str] | None,
        typer.Option("--parameter", "-p", help="grid: a=1,2,4 or seed=0:5; may be repeated"),
    ] = None,
    space: Annotated[
        list[str] | None,
        typer.Option(help="range to sample: a=0:1 or lr=1e-4:1e-1:log; may be repeated"),
    ] = None,
    sample: Annotated[int, typer.Option(help="points to sample from --space")] = 0,
    method: Annotated[str, typer.Option(help="random, lhs or sobol")] = "sobol",
    sample_seed: Annotated[int, typer.Option(help="seed of the sample")] = 0,
    file: Annotated[Path | None, typer.Option("--from", help="YAML file with the space")] = None,
    profile: Annotated[str, typer.Option(help="smoke, book or paper [default: book]")] = "",
    workers: Annotated[int, typer.Option(help="runs at the same time")] = 2,
    dask: Annotated[str, typer.Option(help="address of a Dask scheduler")] = "",
    preload: Annotated[bool, typer.Option(help="fork runs from a preloaded process")] = False,
    timeout: Annotated[float, typer.Option(help="seconds a run may take, 0: any")] = 0.0,
    memory: Annotated[float, typer.Option(help="megabytes a run may use, 0: any")] = 0.0,
    retries: Annotated[int, typer.Option(help="more tries after a killed kernel or time-out")] = 0,
    retry_failed: Annotated[bool, typer.Option(help="run failed points again")] = False,
    dry_run: Annotated[bool, typer.Option(help="show points and time, run nothing")] = False,
) -> None:
    """Run a chapter over many parameter values; the same command again runs what is missing."""
    from paperbook.sweep import commands

    with _one_line_errors():
        chosen, their_profile = commands.make_space(
            slug, parameter or [], space or [], sample, method, sample_seed, file
        )
        options = commands.Options(workers, dask, preload, timeout, memory, retries, retry_failed)
        commands.sweep(slug, chosen, profile or their_profile or "book", output, options, dry_run)


@app.command()
def results(
    folder: Annotated[Path, typer.Argument(help="a sweep's folder")],
    statistic: Annotated[
        list[str] | None, typer.Option("--statistic", "-s", help="what to draw; may be repeated")
    ] = None,
    by: Annotated[list[str] | None, typer.Option(help="parameter to draw over; one or two")] = None,
    store: Annotated[
        bool, typer.Option("--store", help="keep the table in the book, for the chapter's figure")
    ] = False,
) -> None:
    """Rebuild a sweep's table and figure from its notebooks, and print it."""
    from paperbook.sweep import commands

    with _one_line_errors():
        commands.results(folder, statistic or [], by or [], store)


@app.command()
def build(
    rerun: Annotated[str, typer.Option(help="which chapters to run: all, stale or none")] = "stale",
    jobs: Jobs = 2,
    html: Annotated[bool, typer.Option(help="build the HTML after the runs")] = True,
) -> None:
    """Bring stale chapters up to date, then build the book's HTML with warnings as errors."""
    from paperbook.building import build_html, chapters_to_run

    with _one_line_errors():
        chapters = chapters_to_run(rerun, project.slugs())
        failed = _run_several(chapters, jobs)
        if failed:
            raise RunError(f"{len(failed)} of {len(chapters)} chapters failed")
        if html:
            console.out.print("building the HTML ...")
            page = build_html()
            console.out.print(f"the book is at {page}")


def _run_several(chapters: list[str], jobs: int) -> list[str]:
    from paperbook.building import expected_seconds, run_chapters

    if not chapters:
        console.out.print("all chapters are up to date")
        return []
    costs = {slug: expected_seconds(slug) or 60.0 for slug in chapters}
    console.out.print(f"running {', '.join(chapters)} (about {sum(costs.values()):.0f} CPU s)")
    failed, done = [], 0.0
    with console.progress_bar("chapters", sum(costs.values())) as advance:

        def report(outcome) -> None:
            nonlocal done
            done += costs[outcome.slug]
            advance(done, sum(costs.values()))
            if outcome.error:
                failed.append(outcome.slug)
                console.err.print(outcome.error, markup=False)
            else:
                console.out.print(f"{outcome.slug}: done in {outcome.seconds:.0f} s")

        run_chapters(chapters, jobs, report)
    return failed


@app.command()
def evidence(
    format: Annotated[str, typer.Option("--format", help="table, csv or json")] = "table",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="file to write (csv, json)")
    ] = None,
) -> None:
    """Print the matrix of chapters and claims with verdicts, from the committed outputs."""
    from paperbook.matrix import matrix_rows

    with _one_line_errors():
        if format not in ("table", "csv", "json"):
            raise PaperbookError(f"--format must be table, csv or json, got {format!r}")
        if format == "table" and output is not None:
            raise PaperbookError("--output goes with --format csv or json")
        rows = matrix_rows()
        if format == "table":
            _print_matrix(rows)
            return
        text = json.dumps(rows, indent=1) + "\n" if format == "json" else _csv(rows)
        if output is None:
            sys.stdout.write(text)
        else:
            output.write_text(text, encoding="utf-8")


def _print_matrix(rows: list[dict]) -> None:
    if not console.out.is_terminal:
        for row in rows:
            console.out.print(
                f"{row['claim']:<28} {row['test']:<12} {row['verdict']:<15} {row['measured']}",
                markup=False,
            )
        return
    columns = ("claim", "test", "rule", "measured", "verdict")
    table = Table(*columns)
    for row in rows:
        table.add_row(*(row[key] for key in columns))
    console.out.print(table)


def _csv(rows: list[dict]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


@app.command()
def check(slugs: Annotated[list[str] | None, typer.Argument(help="default: all")] = None) -> None:
    """Check cards, theorems, method maps and committed outputs; list all that is wrong."""
    from paperbook.checks import chapter_problems

    with _one_line_errors():
        chapters = [project.require_slug(slug) for slug in slugs or project.slugs()]
        problems = [problem for slug in chapters for problem in chapter_problems(slug)]
        for problem in problems:
            console.out.print(problem, markup=False)
        if problems:
            raise RunError(f"{len(problems)} problems in {len(chapters)} chapters")
        console.out.print(f"{len(chapters)} chapters are in order")


@app.command()
def new(
    slug: Annotated[str, typer.Argument(help="name of the new chapter: a-z, 0-9, _")],
    execute: Annotated[bool, typer.Option(help="run the new notebook at once")] = True,
) -> None:
    """Write notebook, card, package and tests of a new chapter that passes the suite."""
    from paperbook.execution import run_in_place
    from paperbook.scaffold import create_chapter

    with _one_line_errors():
        for path in create_chapter(slug):
            console.out.print(_shown(path))
        if execute:
            run_in_place(slug)
            console.out.print(f"{slug}: executed; next: CONTRIBUTING.md, step 2")

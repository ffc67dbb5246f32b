"""Sweeps that the book keeps: one small table a chapter, drawn in its Sweep section."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from paperbook import figures, project
from paperbook.errors import PaperbookError
from paperbook.project import unknown
from paperbook.sweep.plotting import summary_figure
from paperbook.sweep.results import REPLICATES, choose, parameter_columns, summarise
from paperbook.sweep.store import write_atomically

MEASURED = ["statistic", "kind", "mean", "low", "high", "samples", "verdict"]


def write(table: pd.DataFrame) -> Path:
    """Store the tidy table of ``results.collect``, without what all its points share.

    The shared parameters and the code's fingerprint go to the file's first lines.

    Raises:
        PaperbookError: points of several chapters or of several states of the code.
    """
    for column in ("slug", "fingerprint"):
        if table[column].nunique() != 1:
            raise PaperbookError(f"a stored sweep has one {column}, this one has several")
    slug = table["slug"].iloc[0]
    names = parameter_columns(table)
    varied = [n for n in names if table[n].nunique() > 1 or n == REPLICATES]
    fixed = {n: _plain(table[n].iloc[0]) for n in names if n not in varied}
    head = {"fingerprint": table["fingerprint"].iloc[0], "fixed": fixed}
    lines = "".join(f"# {key}: {json.dumps(value)}\n" for key, value in head.items())
    rows = table[["slug", *varied, *MEASURED]].sort_values([*varied, "statistic"])
    target = project.sweep_path(slug)
    target.parent.mkdir(exist_ok=True)
    text = lines + rows.to_csv(index=False, float_format="%.6g")
    write_atomically(target, text.encode())
    return target


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def load(slug: str) -> pd.DataFrame:
    """The stored sweep: one row a point and statistic; no rows where none was stored yet.

    Columns: ``slug``, the parameters that vary, ``statistic``, ``kind``, ``mean``, ``low``,
    ``high``, ``samples``, ``verdict``.
    """
    if not project.sweep_path(slug).is_file():
        return pd.DataFrame(columns=["slug", REPLICATES, *MEASURED])
    return pd.read_csv(project.sweep_path(slug), comment="#")


def header(slug: str) -> dict[str, Any]:
    """``fingerprint`` and ``fixed`` parameters under which the sweep was run."""
    lines = project.sweep_path(slug).read_text(encoding="utf-8").splitlines()
    pairs = (line[2:].split(": ", 1) for line in lines if line.startswith("# "))
    return {key: json.loads(value) for key, value in pairs}


def cells(slug: str, statistic: str, by: list[str]) -> pd.DataFrame:
    """Means over all but the parameters ``by``; no rows where no sweep was stored yet.

    Columns: ``by``, ``mean``, ``low``, ``high`` (95 % interval), ``runs``.

    Raises:
        PaperbookError: a parameter or statistic that the stored sweep lacks.
    """
    table = load(slug)
    if table.empty:
        return pd.DataFrame(columns=[*by, "mean", "low", "high", "runs"])
    for name in by:
        if name not in parameter_columns(table):
            raise PaperbookError(unknown("parameter", name, parameter_columns(table)))
    (name,) = choose(table, [statistic])
    return summarise(table, name, by)


def figure(
    slug: str, *, by: list[str] | None = None, statistics: list[str] | None = None
) -> Figure:
    """Lines over one parameter or heat maps over two, one panel a statistic.

    Raises:
        PaperbookError: unknown names.
    """
    table = load(slug)
    if len(table):
        return summary_figure(table, statistics=statistics, by=by)
    empty = Figure(figsize=(figures.WIDTH, 1.0))
    empty.text(0.5, 0.5, f"no stored sweep of {slug} yet", ha="center", va="center")
    return empty

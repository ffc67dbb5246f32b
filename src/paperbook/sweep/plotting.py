"""The summary figure of a sweep: lines over one parameter, heat maps over two."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from paperbook.errors import PaperbookError
from paperbook.figures import color
from paperbook.project import unknown
from paperbook.sweep.results import choose, parameter_columns, summarise, varied_columns

MOST_NUMBERS = 6  # columns of a heat map that have room for numbers


def summary_figure(
    table: pd.DataFrame, *, statistics: list[str] | None = None, by: list[str] | None = None
) -> Figure:
    """One panel a statistic: a line with interval over one parameter, a heat map over two.

    Args:
        table: the tidy table of ``results.collect``.
        statistics: names to draw; the varying ones when left out.
        by: one or two parameters; the first two that vary when left out.

    Raises:
        PaperbookError: unknown names, or nothing that varies.
    """
    axes_names = by or varied_columns(table)[:2] or [_fallback(table)]
    for name in axes_names:
        if name not in parameter_columns(table):
            raise PaperbookError(unknown("parameter", name, parameter_columns(table)))
    if len(axes_names) > 2:
        raise PaperbookError(f"a figure has one or two parameters, got {len(axes_names)}")
    names = choose(table, statistics or [])
    rows = math.ceil(len(names) / 2)
    figure = Figure(figsize=(8, 3.2 * rows), layout="constrained")
    panels = np.atleast_1d(figure.subplots(rows, min(len(names), 2), squeeze=False)).ravel()
    for panel, name in zip(panels, names, strict=False):
        cells = summarise(table, name, axes_names)
        (_line if len(axes_names) == 1 else _heat_map)(panel, cells, axes_names)
        panel.set_title(name, fontsize=10)
    for panel in panels[len(names) :]:
        panel.remove()
    return figure


def _fallback(table: pd.DataFrame) -> str:
    for name in parameter_columns(table):
        if table[name].nunique() > 1:
            return name
    return parameter_columns(table)[0]


def _line(panel: Axes, cells: pd.DataFrame, names: list[str]) -> None:
    (name,) = names
    numeric = pd.api.types.is_numeric_dtype(cells[name]) and cells[name].dtype != bool
    x = cells[name].to_numpy(float) if numeric else np.arange(len(cells))
    panel.plot(x, cells["mean"], marker="o", color=color(0))
    low, high = (cells[end].to_numpy(float) for end in ("low", "high"))
    known = np.isfinite(low) & np.isfinite(high)
    panel.fill_between(x[known], low[known], high[known], color=color(0), alpha=0.2, linewidth=0)
    panel.set_xlabel(name)
    if not numeric:
        panel.set_xticks(x, [str(value) for value in cells[name]])
    elif _looks_geometric(x):
        panel.set_xscale("log")


def _looks_geometric(x: np.ndarray) -> bool:
    return len(x) > 2 and x.min() > 0 and x.max() / x.min() > 20


def _heat_map(panel: Axes, cells: pd.DataFrame, names: list[str]) -> None:
    grid = cells.pivot(index=names[1], columns=names[0], values="mean")
    values = grid.to_numpy(float)
    norm = LogNorm() if _looks_geometric(values[np.isfinite(values)]) else None
    image = panel.imshow(values, aspect="auto", origin="lower", cmap="cividis", norm=norm)
    panel.grid(False)
    panel.set_xticks(range(grid.shape[1]), [_label(value) for value in grid.columns])
    panel.set_yticks(range(grid.shape[0]), [_label(value) for value in grid.index])
    panel.set(xlabel=names[0], ylabel=names[1])
    panel.figure.colorbar(image, ax=panel)
    if grid.shape[1] <= MOST_NUMBERS:
        for (row, column), value in np.ndenumerate(values):
            ink = "white" if image.norm(value) < 0.5 else "black"
            text = f"{value:.3g}"
            panel.text(column, row, text, ha="center", va="center", fontsize=9, color=ink)


def _label(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def save_figure(figure: Figure, folder: Path) -> Path:
    """Write ``summary.png`` so that a reader never sees half of it."""
    target, part = folder / "summary.png", folder / ".summary.part.png"
    figure.savefig(part, dpi=120)
    part.replace(target)
    return target

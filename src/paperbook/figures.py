"""One figure style for the whole book: legible in light and dark, colour-blind safe.

Figures keep a white ground, since the dark theme puts a plate behind them and dims them; colours
are Okabe and Ito's, which survive that filter and the common kinds of colour blindness.
"""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from cycler import cycler
from matplotlib.axes import Axes

from paperbook.evidence.intervals import interval

COLORS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D1F"]
MARKERS = ["o", "s", "^", "D", "v", "P", "X", "*"]
WIDTH = 7.0  # inches: the text column of the rendered book


def color(index: int) -> str:
    """Colour number ``index`` of the cycle."""
    return COLORS[index % len(COLORS)]


def marker(index: int) -> str:
    """Marker number ``index`` of the cycle, so that colour is never the only difference."""
    return MARKERS[index % len(MARKERS)]


def use_style() -> None:
    """Set matplotlib's defaults for all figures of a chapter."""
    plt.rcParams.update(
        {
            "figure.figsize": (WIDTH, 3.4),
            "figure.dpi": 110,
            "figure.facecolor": "white",
            "figure.constrained_layout.use": True,
            "font.size": 10,
            "axes.titlesize": 10.5,
            "axes.labelsize": 10,
            "xtick.labelsize": 9,
            "ytick.labelsize": 9,
            "legend.fontsize": 9,
            "legend.frameon": False,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.color": "#DDDDDD",
            "grid.linewidth": 0.6,
            "axes.axisbelow": True,
            "lines.linewidth": 1.8,
            "lines.markersize": 5,
            "axes.prop_cycle": cycler(color=COLORS),
            "image.cmap": "cividis",
            "savefig.facecolor": "white",
        }
    )


def line_with_samples(
    ax: Axes, x: Sequence[float], samples: np.ndarray, *, index: int, label: str
) -> None:
    """Draw the mean over seeds as a line, every sample as a dot and the 95 % interval as a band.

    Args:
        ax: where to draw.
        x: positions (n,).
        samples: values (seeds, n), one row a seed.
        index: number of the series: decides colour and marker.
        label: text of the legend.

    Raises:
        ValueError: ``samples`` is not of shape (seeds, len(x)).
    """
    samples = np.asarray(samples, dtype=float)
    if samples.ndim != 2 or samples.shape[1] != len(x):
        raise ValueError(f"samples must have shape (seeds, {len(x)}), got {samples.shape}")
    shade = color(index)
    ax.plot(x, samples.mean(0), color=shade, marker=marker(index), label=label)
    for row in samples:
        ax.plot(x, row, linestyle="", marker=".", color=shade, alpha=0.5, markersize=4)
    if len(samples) > 1:
        low, high = zip(*(interval(column, "t") for column in samples.T), strict=True)
        ax.fill_between(x, low, high, color=shade, alpha=0.15, linewidth=0)

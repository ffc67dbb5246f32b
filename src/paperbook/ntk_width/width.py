"""The smallest width at which a criterion holds, and the two criteria of the chapter."""

from collections.abc import Callable, Sequence
from math import ceil, exp, log

import numpy as np
import torch

from paperbook.ntk_width import _checks as check
from paperbook.ntk_width.kernels import empirical_ntk
from paperbook.ntk_width.network import Params, forward
from paperbook.ntk_width.task import Task
from paperbook.ntk_width.training import train

ROOT2 = 2**0.5


def width_grid(start: int, factor: float, limit: int) -> list[int]:
    """round(start·factor^j) up to ``limit``, each width once.

    Raises:
        ValueError: ``start`` < 1, ``factor`` <= 1 or ``limit`` < ``start``.
    """
    check.sizes(start=start)
    if not factor > 1:
        raise ValueError(f"factor must be > 1, got {factor!r}")
    if limit < start:
        raise ValueError(f"limit must be >= start, got {limit} < {start}")
    count = int(log(limit / start) / log(factor)) + 2
    widths = dict.fromkeys(round(start * factor**j) for j in range(count))
    return [width for width in widths if width <= limit]


def minimum_width(
    criterion: Callable[[int], bool],
    *,
    start: int = 4,
    factor: float = ROOT2,
    limit: int = 20000,
) -> int | None:
    """First width of the grid round(start·factor^j) <= limit at which ``criterion`` holds.

    Widths are tried in increasing order; None if none passes.

    Raises:
        ValueError: as in ``width_grid``.
    """
    return next((m for m in width_grid(start, factor, limit) if criterion(m)), None)


def crossing_width(
    quality: Callable[[int], float],
    *,
    level: float,
    start: int = 4,
    factor: float = ROOT2,
    limit: int = 20000,
) -> float | None:
    """Width at which ``quality`` first reaches ``level``, log-linear between two grid widths.

    Returns None if no width of the grid reaches it, and ``start`` if the first one does.

    Raises:
        ValueError: as in ``width_grid``.
    """
    below = None
    for width in width_grid(start, factor, limit):
        value = quality(width)
        if value >= level:
            if below is None:
                return float(width)
            m, q = below
            part = (level - q) / (value - q)
            return exp((1 - part) * log(m) + part * log(width))
        below = width, value
    return None


def initial_quality(task: Task, width: int, seed: int) -> float:
    """λ_min(K(0))/Λ; for a sketched start both are taken on the responses' subspace."""
    params = task.start(width, seed)
    if task.sketched:
        params = task.on_subspace(params)
    hidden, output = empirical_ntk(params, task.X)
    smallest = torch.linalg.eigvalsh(hidden + output)[0]
    return float(smallest) / task.spectrum.smallest


def rate_holds(task: Task, width: int, seed: int) -> bool:
    """Whether gradient descent keeps ‖R_t‖ <= (1 - ηΛ/2)^t ‖R_0‖ for t <= 2 ln(100)/(ηΛ).

    The form of theorem thm-ntk_width-converge's conclusion, for descent in place of the flow.
    """
    step_size = task.spectrum.step_size()
    pace = step_size * task.spectrum.smallest
    start = task.start(width, seed)
    first = float(0.5 * (forward(start, task.X) - task.Y).square().sum())

    def crossed(step: int, loss: float, params: Params) -> bool:
        # Rounding alone may lift the loss above an envelope that it touches, as at step 0.
        return loss > (1 + 1e-9) * (1 - pace / 2) ** (2 * step) * first

    steps = ceil(2 * log(100) / pace)
    run = train(start, task.X, task.Y, step_size=step_size, steps=steps, callback=crossed)
    last = len(run.loss) - 1
    return last == steps and not crossed(last, float(run.loss[-1]), run.params)


def init_width_of(task: Task, seeds: Sequence[int], *, limit: int) -> float | None:
    """``init`` width: the median of λ_min(K(0))/Λ over the starts crosses 1/2.

    Raises:
        ValueError: no seeds.
    """
    _require(seeds)

    def quality(width: int) -> float:
        return float(np.median([initial_quality(task, width, seed) for seed in seeds]))

    return crossing_width(quality, level=0.5, limit=limit)


def rate_width_of(task: Task, seeds: Sequence[int], *, limit: int) -> int | None:
    """``rate`` width: smallest grid width at which ``rate_holds`` for all starts.

    Raises:
        ValueError: no seeds.
    """
    _require(seeds)
    return minimum_width(lambda m: all(rate_holds(task, m, seed) for seed in seeds), limit=limit)


def _require(seeds: Sequence[int]) -> None:
    if len(seeds) == 0:
        raise ValueError("seeds must not be empty")

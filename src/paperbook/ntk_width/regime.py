"""One training run seen from the kernel's side: share, drift, flips, iterations."""

from dataclasses import dataclass

import torch
from torch import Tensor

from paperbook.ntk_width.drift import Drift, flip_fraction_bound, flip_fractions, kernel_drift
from paperbook.ntk_width.kernels import empirical_ntk, hidden_share
from paperbook.ntk_width.network import Params
from paperbook.ntk_width.task import Task
from paperbook.ntk_width.training import Trajectory, first_below, nesterov_momentum, train


@dataclass(frozen=True)
class RegimeRun:
    """What one run of gradient descent did to the kernel; norms are in units of Λ.

    Attributes:
        drift: parts of K(T) - K(0), divided by Λ (flip fraction as it is).
        share_start: tr K_W/tr K at the start.
        share_min: its minimum over all steps.
        smallest_end: λ_min(K(T))/Λ.
        iterations: steps until the loss reached the tolerance; the cap if it never did, be it
            for want of steps or because the run diverged.
        flip_worst: largest share of flipped neurons of a sample at the end.
        flip_bound: the lemma's bound on it for the distance ‖W_T - W_0‖_F, same sample.
        loss: the loss curve (T+1,).
    """

    drift: Drift
    share_start: float
    share_min: float
    smallest_end: float
    iterations: int
    flip_worst: float
    flip_bound: float
    loss: Tensor


def train_regime(task: Task, width: int, seed: int, *, tol: float, max_steps: int) -> RegimeRun:
    """Train by gradient descent with η = 0.5/λ_max until the loss falls by ``tol``.

    Args:
        task: data, scales and start.
        width: m.
        seed: decides the start.
        tol: fraction of the first loss at which to stop.
        max_steps: cap on the number of steps.

    Raises:
        ValueError: arguments out of range.
    """
    start = task.start(width, seed)
    shares: list[float] = []
    run = train(
        start,
        task.X,
        task.Y,
        step_size=task.spectrum.step_size(),
        steps=max_steps,
        tol=tol,
        callback=lambda step, loss, params: shares.append(hidden_share(params, task.X)),
    )
    flips = flip_fractions(start, run.params, task.X)
    distance = float((run.params.W - start.W).norm())
    worst = int(flips.argmax())
    reached = run.first_below(tol)
    return RegimeRun(
        drift=_relative(kernel_drift(start, run.params, task.X), task.spectrum.smallest),
        share_start=shares[0],
        share_min=min(shares),
        smallest_end=_smallest(run.params, task) / task.spectrum.smallest,
        iterations=max_steps if reached is None else reached,
        flip_worst=float(flips[worst]),
        flip_bound=float(flip_fraction_bound(start, task.X, distance)[worst]),
        loss=run.loss,
    )


def _relative(drift: Drift, unit: float) -> Drift:
    return Drift(
        drift.total / unit,
        drift.flips / unit,
        drift.output_weights / unit,
        drift.conjugate / unit,
        drift.flip_fraction,
    )


def _smallest(params: Params, task: Task) -> float:
    if task.sketched:
        params = task.on_subspace(params)
    hidden, output = empirical_ntk(params, task.X)
    return float(torch.linalg.eigvalsh(hidden + output)[0])


def train_both(
    task: Task, width: int, seed: int, *, tol: float, max_steps: int
) -> tuple[Trajectory, Trajectory]:
    """Gradient descent and Nesterov's method from one start, same step size, momentum by rule.

    The momentum is that of theorem thm-ntk_width-nag for κ = 1/(ηΛ), with Λ of the limiting
    kernel; nothing is tuned.

    Raises:
        ValueError: arguments out of range.
    """
    spectrum = task.spectrum
    step_size = spectrum.step_size()
    momentum = nesterov_momentum(1 / (step_size * spectrum.smallest))
    start = task.start(width, seed)
    common = {"step_size": step_size, "steps": max_steps, "tol": tol}
    descent = train(start, task.X, task.Y, **common)
    nesterov = train(start, task.X, task.Y, method="nag", momentum=momentum, **common)
    return descent, nesterov


def window_steps(loss: Tensor, high: float, low: float) -> int | None:
    """Steps that ``loss`` (T+1,) takes from ``high`` to ``low`` of its start, or None.

    Raises:
        ValueError: unless 0 < ``low`` < ``high`` <= 1.
    """
    if not 0 < low < high <= 1:
        raise ValueError(f"low and high must satisfy 0 < low < high <= 1, got {low}, {high}")
    first, last = first_below(loss, high), first_below(loss, low)
    return None if last is None else last - first


def loglog_slope(x, y) -> float:
    """Least-squares slope of log y against log x.

    Args:
        x: positive numbers (k,), k >= 2 different ones.
        y: positive numbers (k,).

    Raises:
        ValueError: fewer than two points, lengths that differ, numbers that are not positive.
    """
    a = torch.as_tensor(x, dtype=torch.float64)
    b = torch.as_tensor(y, dtype=torch.float64)
    if a.ndim != 1 or a.shape != b.shape or len(a) < 2:
        raise ValueError("x and y must be sequences of one length >= 2")
    if not bool((a > 0).all() and (b > 0).all()):
        raise ValueError("x and y must be positive")
    a, b = a.log() - a.log().mean(), b.log() - b.log().mean()
    if not bool(a.square().sum() > 0):
        raise ValueError("x must hold two different numbers")
    return float((a * b).sum() / a.square().sum())

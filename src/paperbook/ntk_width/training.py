"""Full-batch gradient descent and Nesterov's method, and their linearised references."""

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite, sqrt

import torch
from torch import Tensor

from paperbook.ntk_width import _checks as check
from paperbook.ntk_width.network import Params, check_data, gradients, residuals

METHODS = ("gd", "nag")
DIVERGED = 1e6  # a loss this many times the first one will not come back


@dataclass(frozen=True)
class Trajectory:
    """A training run.

    Attributes:
        loss: ½‖F - Y‖² at the start and after each step (T+1,).
        params: final weights.
        path_length: sum of the lengths of all steps in (W, V).
        diverged: whether the loss left the finite range or grew a millionfold.
    """

    loss: Tensor
    params: Params
    path_length: float
    diverged: bool

    def first_below(self, fraction: float) -> int | None:
        """Number of steps until the loss is at most ``fraction`` of its start, None if never."""
        return first_below(self.loss, fraction)


def first_below(loss: Tensor, fraction: float) -> int | None:
    """First index at which the curve ``loss`` (T+1,) is at most ``fraction`` of its start."""
    hits = torch.nonzero(loss <= fraction * loss[0])
    return int(hits[0]) if len(hits) else None


def nesterov_momentum(kappa: float) -> float:
    """μ = (√κ - 1)/(√κ + 1), the momentum of theorem thm-ntk_width-nag.

    Args:
        kappa: 1/(η λ_min), which is the condition number for η = 1/λ_max.

    Raises:
        ValueError: ``kappa`` < 1 or not finite.
    """
    if not (isfinite(kappa) and kappa >= 1):
        raise ValueError(f"kappa must be >= 1 and finite, got {kappa!r}")
    return (sqrt(kappa) - 1) / (sqrt(kappa) + 1)


def train(
    params: Params,
    X: Tensor,
    Y: Tensor,
    *,
    step_size: float,
    steps: int,
    method: str = "gd",
    momentum: float | None = None,
    tol: float = 0.0,
    callback: Callable[[int, float, Params], bool | None] | None = None,
) -> Trajectory:
    """Train both layers on L = ½‖F - Y‖² from ``params``.

    ``gd``: θ ← θ - η∇L(θ). ``nag``: φ = θ + μ(θ - θ_previous), θ ← φ - η∇L(φ).

    Args:
        params: the start.
        X: inputs (N, d).
        Y: responses (N, n).
        step_size: η.
        steps: largest number of steps.
        method: ``gd`` or ``nag``.
        momentum: μ in [0, 1), for ``nag`` only.
        tol: stop once the loss is at most ``tol`` times its start.
        callback: called with (t, loss, weights) at the start and after each step; training stops
            where it returns True.

    Raises:
        ValueError: unknown method, ``step_size`` <= 0, ``steps`` < 0, momentum missing, out of
            range or given to ``gd``, ``tol`` < 0, shapes or devices that do not fit.
    """
    check_data(params, X, Y)
    mu = _momentum(method, momentum)
    check.positive(step_size=step_size)
    check.nonnegative(tol=tol)
    if steps < 0:
        raise ValueError(f"steps must be >= 0, got {steps}")
    W, V = params.W, params.V
    previous = W, V
    velocity_W, velocity_V = torch.zeros_like(W), torch.zeros_like(V)
    hidden, residual = residuals(W, V, X, Y)
    losses = [_half_square(residual)]
    path = torch.zeros((), dtype=W.dtype, device=W.device)
    stopped = callback is not None and callback(0, losses[0], params)
    for step in range(1, steps + 1):
        if stopped or losses[-1] <= tol * losses[0] or _hopeless(losses):
            break
        look_V = V
        if mu > 0:
            look_V = V + mu * velocity_V
            hidden, residual = residuals(W + mu * velocity_W, look_V, X, Y)
        grad_W, grad_V = gradients(look_V, X, hidden, residual)
        velocity_W = mu * velocity_W - step_size * grad_W if mu > 0 else -step_size * grad_W
        velocity_V = mu * velocity_V - step_size * grad_V if mu > 0 else -step_size * grad_V
        previous = W, V
        W, V = W + velocity_W, V + velocity_V
        path += torch.hypot(velocity_W.norm(), velocity_V.norm())
        hidden, residual = residuals(W, V, X, Y)
        losses.append(_half_square(residual))
        if callback is not None and isfinite(losses[-1]):
            stopped = callback(step, losses[-1], Params.trusted(W, V))
    # Weights that are not finite are of no use to anyone: keep the last ones that were.
    final = Params(W, V) if isfinite(losses[-1]) else Params(*previous)
    loss = torch.tensor(losses, dtype=torch.float64)
    return Trajectory(loss, final, float(path), _hopeless(losses))


def _momentum(method: str, momentum: float | None) -> float:
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    if method == "gd":
        if momentum is not None:
            raise ValueError("momentum goes with method 'nag'; 'gd' takes none")
        return 0.0
    if momentum is None or not 0 <= momentum < 1:
        raise ValueError(f"momentum must lie in [0, 1) for method 'nag', got {momentum!r}")
    return momentum


def _half_square(residual: Tensor) -> float:
    return float(0.5 * residual.square().sum())


def _hopeless(losses: list[float]) -> bool:
    return not isfinite(losses[-1]) or losses[-1] > DIVERGED * losses[0] > 0


def linearised_loss(
    kernel: Tensor, R0: Tensor, *, step_size: float, steps: int, momentum: float = 0.0
) -> Tensor:
    """Loss of the linear model R_{t+1} = (I - ηK)(R_t + μ(R_t - R_{t-1})), R_{-1} = R_0.

    Args:
        kernel: limiting kernel (N, N), acting on every output alike.
        R0: residual at the start (N, n).
        step_size: η.
        steps: T.
        momentum: μ in [0, 1); 0 is gradient descent.

    Returns:
        ½‖R_t‖² for t = 0..T, shape (T+1,).

    Raises:
        ValueError: shapes that do not fit, ``step_size`` <= 0, ``steps`` < 0, μ outside [0, 1).
    """
    check.same_device(kernel=kernel, R0=R0)
    check.matrix("kernel", kernel)
    check.matrix("R0", R0)
    check.positive(step_size=step_size)
    if kernel.shape != (len(R0), len(R0)):
        raise ValueError(f"kernel must have shape {(len(R0), len(R0))}, got {tuple(kernel.shape)}")
    if steps < 0 or not 0 <= momentum < 1:
        raise ValueError(f"steps must be >= 0 and momentum in [0, 1), got {steps}, {momentum}")
    values, vectors = torch.linalg.eigh(kernel)
    shrink = (1 - step_size * values)[:, None]
    now = before = vectors.T @ R0
    losses = [0.5 * now.square().sum()]
    for _ in range(steps):
        now, before = shrink * (now + momentum * (now - before)), now
        losses.append(0.5 * now.square().sum())
    return torch.stack(losses)

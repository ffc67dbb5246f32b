"""How far the kernel moves in training, split by cause, and how many activations may flip."""

from dataclasses import dataclass
from math import pi, sqrt

import torch
from torch import Tensor

from paperbook.ntk_width import _checks as check
from paperbook.ntk_width.kernels import empirical_ntk
from paperbook.ntk_width.network import Params, check_data


@dataclass(frozen=True)
class Drift:
    """Operator norms of K(end) - K(start) and of the three parts that sum to it.

    Attributes:
        total: the whole change.
        flips: K_W(W_T, V_0) - K_W(W_0, V_0), activations that flipped.
        output_weights: K_W(W_T, V_T) - K_W(W_T, V_0).
        conjugate: K_V(W_T) - K_V(W_0).
        flip_fraction: share of the m·N activations that differ.
    """

    total: float
    flips: float
    output_weights: float
    conjugate: float
    flip_fraction: float


def operator_norm(symmetric: Tensor) -> float:
    """Largest absolute eigenvalue of a symmetric matrix."""
    return float(torch.linalg.eigvalsh(symmetric).abs().max())


def kernel_drift(start: Params, end: Params, X: Tensor) -> Drift:
    """Change of the empirical kernel between two weight settings.

    The three parts telescope to the total as matrices; their norms only bound its norm.

    Args:
        start: weights before.
        end: weights after, of the same shapes.
        X: inputs (N, d).

    Raises:
        ValueError: shapes that do not fit.
    """
    _check_pair(start, end)
    hidden_0, output_0 = empirical_ntk(start, X)
    hidden_mixed, _ = empirical_ntk(Params(end.W, start.V), X)
    hidden_T, output_T = empirical_ntk(end, X)
    return Drift(
        total=operator_norm(hidden_T + output_T - hidden_0 - output_0),
        flips=operator_norm(hidden_mixed - hidden_0),
        output_weights=operator_norm(hidden_T - hidden_mixed),
        conjugate=operator_norm(output_T - output_0),
        flip_fraction=float(flip_fractions(start, end, X).mean()),
    )


def flip_fractions(start: Params, end: Params, X: Tensor) -> Tensor:
    """Share of neurons whose activation differs, for each sample (N,).

    Raises:
        ValueError: shapes that do not fit.
    """
    _check_pair(start, end)
    check_data(start, X)
    changed = (X @ start.W.T > 0) != (X @ end.W.T > 0)
    return changed.to(X.dtype).mean(1)


def flip_fraction_bound(start: Params, X: Tensor, displacement: float) -> Tensor:
    """Largest share of flipped neurons that ‖W - W_0‖_F <= ``displacement`` allows, a bound.

    Lemma lem-ntk_width-flips: inf over s > 0 of p̂(s) + τ²/(m s²), p̂ the share of |w_rᵀx| <= s,
    in its closed form min{1, min_j (j - 1 + τ²/z_(j)²)/m} with z_(j) the sorted |w_rᵀx|. For
    inputs that are not of unit norm τ is ``displacement``·‖x_i‖ here.

    Args:
        start: weights at the start.
        X: inputs (N, d).
        displacement: radius of the ball around W_0.

    Returns:
        Bound for each sample (N,).

    Raises:
        ValueError: ``displacement`` < 0, or ``X`` does not fit.
    """
    check.nonnegative(displacement=displacement)
    check_data(start, X)
    if displacement == 0:
        return X.new_zeros(len(X))
    margins = (X @ start.W.T).abs().sort(dim=1).values
    reach = (displacement * X.norm(dim=1, keepdim=True) / margins).square()
    rank = torch.arange(start.width, dtype=X.dtype, device=X.device)
    return ((rank + reach) / start.width).amin(1).clamp(max=1)


def _check_pair(start: Params, end: Params) -> None:
    if start.W.shape != end.W.shape or start.V.shape != end.V.shape:
        raise ValueError("end must have the shapes of start")
    check.same_device(start=start.W, end=end.W)


def typical_flip_fraction(displacement: float, *, alpha: float, width: int) -> float:
    """(3/2)(4/π)^{1/3} (τ/(α√m))^{2/3}: the flip bound with p̂ replaced by √(2/π) s/α.

    The second form of lemma lem-ntk_width-flips, for unit-norm inputs and w_r ~ N(0, α² I).

    Raises:
        ValueError: ``displacement`` < 0, ``alpha`` <= 0 or ``width`` < 1.
    """
    check.nonnegative(displacement=displacement)
    check.positive(alpha=alpha)
    check.sizes(width=width)
    return 1.5 * (4 / pi) ** (1 / 3) * (displacement / (alpha * sqrt(width))) ** (2 / 3)


def jacobian_change_bound(start: Params, X: Tensor, radius: float) -> float:
    """Bound on ‖J(θ) - J(θ_0)‖ for all ‖θ - θ_0‖ <= ``radius`` and unit-norm inputs.

    Proposition prop-ntk_width-drift with both layers moving by up to the radius and every neuron
    counted as flipped that such a move can flip.

    Args:
        start: weights θ_0.
        X: inputs (N, d) of unit norm.
        radius: of the ball.

    Raises:
        ValueError: ``radius`` < 0, inputs that do not fit or are not of unit norm.
    """
    check.nonnegative(radius=radius)
    check_data(start, X)
    check.unit_norm(X)
    reachable = ((X @ start.W.T).abs() <= radius).to(X.dtype).sum(0)
    flips = float(reachable @ start.V.square().sum(0))
    conjugate = float(torch.linalg.matrix_norm(X, ord=2)) * radius / sqrt(start.width)
    return conjugate + sqrt(2 * (len(X) * radius**2 + flips) / start.width)


@dataclass(frozen=True)
class JacobianChange:
    """Both sides of proposition prop-ntk_width-drift for two weight settings.

    Attributes:
        conjugate: ‖J_V(end) - J_V(start)‖.
        conjugate_bound: ‖X‖ τ_W/√m.
        hidden: ‖J_W(end) - J_W(start)‖_F.
        hidden_bound: the root of (2/m)(N τ_V² + Σ ‖v_r‖² over the flips).
    """

    conjugate: float
    conjugate_bound: float
    hidden: float
    hidden_bound: float


def jacobian_change(start: Params, end: Params, X: Tensor) -> JacobianChange:
    """How far the Jacobian moved between two weight settings, and how far it may have.

    Args:
        start: weights before.
        end: weights after, of the same shapes.
        X: inputs (N, d) of unit norm.

    Raises:
        ValueError: shapes that do not fit, or inputs that are not of unit norm.
    """
    _check_pair(start, end)
    check_data(start, X)
    check.unit_norm(X)
    pre_0, pre_T = X @ start.W.T, X @ end.W.T
    on_0, on_T = (pre_0 > 0).to(X.dtype), (pre_T > 0).to(X.dtype)
    # Σ_{r,i} ‖v_r A_ri - v_0r A⁰_ri‖², by the cases: both on, only the end, only the start.
    both = (on_0 * on_T).sum(0) @ (end.V - start.V).square().sum(0)
    gained = ((1 - on_0) * on_T).sum(0) @ end.V.square().sum(0)
    lost = (on_0 * (1 - on_T)).sum(0) @ start.V.square().sum(0)
    flips = (on_0 != on_T).to(X.dtype).sum(0) @ start.V.square().sum(0)
    moved_W, moved_V = (end.W - start.W).norm(), (end.V - start.V).norm()
    features = torch.relu(pre_T) - torch.relu(pre_0)
    root = sqrt(start.width)
    return JacobianChange(
        conjugate=float(torch.linalg.matrix_norm(features, ord=2)) / root,
        conjugate_bound=float(torch.linalg.matrix_norm(X, ord=2) * moved_W) / root,
        hidden=float((both + gained + lost).sqrt()) / root,
        hidden_bound=float((2 * (len(X) * moved_V.square() + flips)).sqrt()) / root,
    )


def cheapest_flips(start: Params, x: Tensor, displacement: float) -> Tensor:
    """Hidden weights (m, d) that flip as many neurons on ``x`` (d,) as a displacement can.

    It is spent on the neurons with the smallest margins, a hair more on each than its margin: the
    adversary of lemma lem-ntk_width-flips.

    Raises:
        ValueError: ``displacement`` < 0, or ``x`` is no vector that fits.
    """
    check.nonnegative(displacement=displacement)
    if x.ndim != 1:
        raise ValueError(f"x must be a vector, got shape {tuple(x.shape)}")
    check_data(start, x[None])
    direction = x / x.norm()
    margin = start.W @ direction
    overshoot = 1 + 1e-7
    order = margin.abs().argsort()
    cost = (overshoot * margin[order]).square().cumsum(0)
    chosen = order[: int((cost < displacement**2).sum())]
    moved = start.W.clone()
    moved[chosen] -= overshoot * margin[chosen, None] * direction
    return moved

"""The constants of the chapter's theorems as functions, so that they can be tested and plotted."""

from dataclasses import dataclass
from math import ceil, isfinite, log, sqrt

import torch
from torch import Tensor

from paperbook.ntk_width import _checks as check
from paperbook.ntk_width.kernels import arc_cosine_kernels

RADIUS = 1.65  # of the ball in theorem thm-ntk_width-converge, in units of ‖R_0‖/√Λ_0
RATE = 1 / 3  # of that theorem, in units of Λ_0


def norm_bound(output_dim: int, level: float) -> float:
    """B = n + 2√(nℓ) + 2ℓ: a chi-square variable with n degrees exceeds it with p <= e^{-ℓ}.

    Raises:
        ValueError: ``output_dim`` < 1 or ``level`` < 0.
    """
    check.sizes(output_dim=output_dim)
    check.nonnegative(level=level)
    return output_dim + 2 * sqrt(output_dim * level) + 2 * level


def init_width(X: Tensor, output_dim: int, *, delta: float) -> int:
    """Smallest width that theorem thm-ntk_width-init asks for.

    The bound B holds log m, so the condition is a fixed point; iterating it from below converges
    to the smallest solution, and every larger width satisfies it too.

    Args:
        X: inputs (N, d).
        output_dim: n (or the rank r, for a sketched start).
        delta: probability of failure in (0, 1).

    Raises:
        ValueError: arguments out of range, or inputs whose hidden kernel is singular.
    """
    check.sizes(output_dim=output_dim)
    check.probability("delta", delta)
    smallest = smallest_eigenvalue(arc_cosine_kernels(X)[0])
    gram = float(torch.linalg.matrix_norm(X, ord=2)) ** 2
    factor = 53 * gram / smallest * log(2 * output_dim * len(X) / delta)
    width = 1
    while True:
        needed = ceil(max(factor * norm_bound(output_dim, log(4 * width / delta)), 300 * delta))
        if needed <= width:
            return width
        width = needed


def smallest_eigenvalue(kernel: Tensor) -> float:
    """λ_min of a limiting kernel that must be positive definite.

    Raises:
        ValueError: the kernel is singular to rounding, as for two collinear inputs.
    """
    check.matrix("kernel", kernel)
    values = torch.linalg.eigvalsh(kernel)
    if values[0] <= 1e-12 * values[-1]:
        raise ValueError("X must have no two collinear rows: the limiting kernel is singular")
    return float(values[0])


def zero_output_scale(X: Tensor, Y: Tensor, *, width: int, ratio: float, delta: float) -> float:
    """s* of corollary cor-ntk_width-zero-output: from this αβ on no activation flips.

    Args:
        X: unit-norm inputs (N, d).
        Y: responses (N, n).
        width: m.
        ratio: ρ = β/α.
        delta: probability of failure in (0, 1).

    Raises:
        ValueError: inputs that are not of unit norm, or arguments out of range.
    """
    check.inputs(X)
    check.matrix("Y", Y)
    check.sizes(width=width)
    check.positive(ratio=ratio)
    check.probability("delta", delta)
    check.unit_norm(X)
    smallest = smallest_eigenvalue(arc_cosine_kernels(X)[0])
    size = float(Y.norm())
    no_flips = 0.66 * width * len(X) * size / (delta * sqrt(smallest))
    small_change = 13.2 * size * sqrt(len(X) / width) / (ratio * smallest)
    return max(no_flips, small_change)


def gd_envelope(kappa: float, steps: int) -> Tensor:
    """(1 - 1/κ)^t for t = 0..``steps``: bound of ‖R_t‖/‖R_0‖ for linearised gradient descent.

    Raises:
        ValueError: ``kappa`` < 1 or not finite, ``steps`` < 0.
    """
    _check_envelope(kappa, steps)
    return (1 - 1 / kappa) ** torch.arange(steps + 1, dtype=torch.float64)


def nag_envelope(kappa: float, steps: int) -> Tensor:
    """(1 + t/√κ)(1 - 1/√κ)^t for t = 0..``steps``: the bound for Nesterov's method.

    Raises:
        ValueError: ``kappa`` < 1 or not finite, ``steps`` < 0.
    """
    _check_envelope(kappa, steps)
    t = torch.arange(steps + 1, dtype=torch.float64)
    return (1 + t / sqrt(kappa)) * (1 - 1 / sqrt(kappa)) ** t


def _check_envelope(kappa: float, steps: int) -> None:
    if not (isfinite(kappa) and kappa >= 1):
        raise ValueError(f"kappa must be >= 1 and finite, got {kappa!r}")
    if steps < 0:
        raise ValueError(f"steps must be >= 0, got {steps!r}")


@dataclass(frozen=True)
class Spectrum:
    """Extreme eigenvalues of a limiting kernel and what step size and momentum follow from them."""

    largest: float
    smallest: float

    @classmethod
    def of(cls, kernel: Tensor) -> "Spectrum":
        """Spectrum of a symmetric positive definite ``kernel`` (N, N).

        Raises:
            ValueError: no finite matrix, or singular to rounding.
        """
        smallest = smallest_eigenvalue(kernel)
        return cls(float(torch.linalg.eigvalsh(kernel)[-1]), smallest)

    @property
    def condition(self) -> float:
        return self.largest / self.smallest

    def step_size(self, safety: float = 0.5) -> float:
        """η = c/λ_max. At finite width λ_max exceeds its limit, and c = 1 can diverge."""
        check.positive(safety=safety)
        return safety / self.largest

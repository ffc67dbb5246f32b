"""Gaussian mixtures with diagonal covariances: the lifted coreset is one."""

import math

import torch
from torch import Tensor

from paperbook.ccvfm import checks


class GaussianMixture:
    r"""The law $\sum_k w_k\,\mathcal N(y_k, \mathrm{diag}(S_k))$ on $\mathbb R^d$.

    Args:
        weights: (K,), non-negative, summing to one; a component of weight zero is allowed.
        means: (K, d).
        variances: (K, d), positive.

    Raises:
        ValueError: other shapes, values or mixed dtypes.
    """

    def __init__(self, weights: Tensor, means: Tensor, variances: Tensor) -> None:
        self.means = checks.points("means", means)
        self.variances = checks.points("variances", variances, columns=means.shape[1])
        if weights.shape != means.shape[:1] or variances.shape != means.shape:
            raise ValueError(
                f"weights (K,), means (K, d), variances (K, d) must agree, got "
                f"{tuple(weights.shape)}, {tuple(means.shape)}, {tuple(variances.shape)}"
            )
        checks.same_place("weights", weights, means)
        checks.same_place("variances", variances, means)
        # Written so that NaN fails too.
        if not (weights >= 0).all() or not abs(weights.sum().item() - 1) < 1e-4:
            raise ValueError("weights must be non-negative and sum to 1")
        if not (variances > 0).all():
            raise ValueError("variances must be > 0")
        self.weights = weights

    @property
    def dim(self) -> int:
        return self.means.shape[1]

    def sample(self, n: int, *, generator: torch.Generator | None = None) -> Tensor:
        """``n`` independent draws (n, d)."""
        checks.at_least("n", n, 1)
        k = torch.multinomial(self.weights, n, replacement=True, generator=generator)
        noise = torch.randn(
            n, self.dim, generator=generator, dtype=self.means.dtype, device=self.means.device
        )
        return self.means[k] + self.variances[k].sqrt() * noise

    def log_prob(self, x: Tensor) -> Tensor:
        """Log-density (B,) at ``x`` (B, d)."""
        checks.points("x", x, columns=self.dim)
        quadratic = ((x[:, None] - self.means).square() / self.variances).sum(-1)
        log_det = (2 * math.pi * self.variances).log().sum(-1)
        return torch.logsumexp(self.weights.log() - 0.5 * (quadratic + log_det), -1)

    def mean(self) -> Tensor:
        """Mean (d,)."""
        return self.weights @ self.means

    def variance(self) -> Tensor:
        """Marginal variances (d,), by the law of total variance."""
        return self.weights @ (self.variances + (self.means - self.mean()).square())

"""Exact references for mixtures: the optimum of stage III, and velocity moments by quadrature."""

import torch
from torch import Tensor

from paperbook.ccvfm.mixture import GaussianMixture
from paperbook.ccvfm.velocity import ConditionalVelocity


class ExactCorrection:
    r"""$a^*(x,t,v,\tau)=\mathbb E[v_1-v_0\,|\,(1-\tau)v_0+\tau v_1=v]$ in closed form.

    ``source`` is the law of $v_0$ and ``target`` that of $v_1$ given $(x,t)$; they are coupled
    independently. Given both components the pair is Gaussian, so the regression is linear in
    each of the pairs and the pairs are weighted by their posterior. Called like a network:
    ``(x (B, d), t (B,), v (B, d), tau (B,)) -> (B, d)``.
    """

    def __init__(self, source: ConditionalVelocity, target: ConditionalVelocity) -> None:
        self.source, self.target = source, target

    def __call__(self, x: Tensor, t: Tensor, v: Tensor, tau: Tensor) -> Tensor:
        r0, m0, c0 = self.source.components(x, t)
        r1, m1, c1 = self.target.components(x, t)
        tau = tau[:, None, None, None]
        m0, c0 = m0[:, :, None], c0[:, :, None]
        m1, c1 = m1[:, None], c1[:, None]
        variance = (1 - tau) ** 2 * c0 + tau**2 * c1
        residual = v[:, None, None] - (1 - tau) * m0 - tau * m1
        log_pair = r0.log()[:, :, None] + r1.log()[:, None]
        log_pair = log_pair - 0.5 * (residual.square() / variance + variance.log()).sum(-1)
        posterior = torch.softmax(log_pair.flatten(1), 1).view_as(log_pair)
        regression = m1 - m0 + (tau * c1 - (1 - tau) * c0) / variance * residual
        return (posterior[..., None] * regression).sum((1, 2))


def quadrature_moments(mixture: GaussianMixture, x: float, t: float) -> tuple[float, float]:
    """Mean and variance of the velocity given x_t = x on the line, by numerical integration.

    The map from (x_0, x_1) to (x_t, V) has Jacobian 1, with x_1 = x + (1-t) V and x_0 = x - t V, so
    the joint density of noise and data, seen along V, is the density of V up to a constant. Meant
    for a ``mixture`` in one dimension whose mass lies within about 20 of the origin.

    Raises:
        ValueError: a mixture of another dimension.
    """
    if mixture.dim != 1:
        raise ValueError(f"mixture must have dimension 1, got {mixture.dim}")
    v = torch.linspace(-40, 40, 40_001, dtype=mixture.means.dtype)
    log_density = mixture.log_prob((x + (1 - t) * v)[:, None]) - 0.5 * (x - t * v).square()
    density = torch.softmax(log_density, 0)
    mean = (density * v).sum()
    return mean.item(), (density * (v - mean).square()).sum().item()

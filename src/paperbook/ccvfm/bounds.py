"""Transport costs, their bounds and second moments: what the theorems of the chapter compute."""

import math

import ot
import torch
from torch import Tensor

from paperbook.ccvfm import checks
from paperbook.ccvfm.mixture import GaussianMixture


def noise_cost_lower_bound(X: Tensor) -> float:
    r"""$d+\|\bar x\|^2$ for data ``X`` (N, d): lower bound on the transport cost of a noise source.

    Source: thm-ccvfm-gap.
    """
    checks.points("X", X)
    return X.shape[1] + X.mean(0).square().sum().item()


def noise_cost_gelbrich_bound(X: Tensor) -> float:
    r"""$d+\|\bar x\|^2+\mathrm{tr}(I+\Sigma-2\Sigma^{1/2})$ for data ``X`` (N, d), N >= 2.

    Exact when the data law is Gaussian. Source: thm-ccvfm-gap.
    """
    checks.at_least("the number of rows of X", len(checks.points("X", X)), 2)
    roots = _covariance_eigenvalues(X).sqrt()
    return noise_cost_lower_bound(X) + (roots - 1).square().sum().item()


def unconditional_noise_bound(X: Tensor) -> float:
    r"""$\|\bar x\|^2+\sum_i(\sqrt{1+\lambda_i}-1)^2\le W_2^2(\mathcal N(0,I),\mathrm{Law}(V))$.

    ``X`` is (N, d), N >= 2. Source: cor-ccvfm-plan.
    """
    checks.at_least("the number of rows of X", len(checks.points("X", X)), 2)
    eigenvalues = _covariance_eigenvalues(X)
    return (X.mean(0).square().sum() + ((1 + eigenvalues).sqrt() - 1).square().sum()).item()


def _covariance_eigenvalues(X: Tensor) -> Tensor:
    centred = X - X.mean(0)
    return torch.linalg.eigvalsh(centred.T @ centred / len(X)).clamp_min(0)


def plan_coupling_cost(mixture: GaussianMixture) -> float:
    r"""$2\sum_kw_k\mathrm{tr}S_k\ge W_2^2(\mu_N,\hat\mu)$. Source: cor-ccvfm-plan."""
    return 2 * (mixture.weights @ mixture.variances.sum(1)).item()


def squared_w2(a: Tensor, b: Tensor) -> float:
    """Exact squared 2-Wasserstein distance between equally weighted points ``a``, ``b``.

    Shapes (n, d) and (m, d). An estimate from samples is biased upwards.
    """
    checks.points("a", a)
    checks.points("b", b, columns=a.shape[1])
    a, b = a.double(), b.double()
    cost = (a[:, None] - b).square().sum(-1) if len(a) * b.numel() < 1e6 else _expanded(a, b)
    return float(ot.emd2([], [], cost.cpu().numpy(), numItermax=2_000_000))


def _expanded(a: Tensor, b: Tensor) -> Tensor:
    square = a.square().sum(1, keepdim=True) + b.square().sum(1) - 2 * a @ b.T
    return square.clamp_min(0)


def target_second_moment(
    mean_source: Tensor, trace_source: Tensor, mean_target: Tensor, trace_target: Tensor
) -> Tensor:
    r"""$\mathbb E\|v_1-v_0\|^2=\|m_1-m_0\|^2+\mathrm{tr}\Sigma_0+\mathrm{tr}\Sigma_1$, batched.

    Means are (..., d), traces (...). Source: thm-ccvfm-second-moment.

    Raises:
        ValueError: shapes that do not agree, or a negative trace.
    """
    if mean_source.shape != mean_target.shape:
        raise ValueError(
            f"mean_source and mean_target must have the same shape, got "
            f"{tuple(mean_source.shape)} and {tuple(mean_target.shape)}"
        )
    for name, trace in (("trace_source", trace_source), ("trace_target", trace_target)):
        if trace.shape != mean_source.shape[:-1]:
            raise ValueError(
                f"{name} must have shape {tuple(mean_source.shape[:-1])}, got {tuple(trace.shape)}"
            )
        if not (trace >= 0).all():
            raise ValueError(f"{name} must be >= 0")
    return (mean_target - mean_source).square().sum(-1) + trace_source + trace_target


def second_moment_excess(
    mean_source: Tensor, trace_source: Tensor, mean_target: Tensor, trace_target: Tensor
) -> Tensor:
    r"""$e=\|m_1-m_0\|^2+\mathrm{tr}\Sigma_0-\mathrm{tr}\Sigma_1$: excess over the ideal source."""
    moment = target_second_moment(mean_source, trace_source, mean_target, trace_target)
    return moment - 2 * trace_target


def euler_contraction(steps: int) -> float:
    """Factor by which ``steps`` inner Euler steps scale deviations from the mean.

    For source = target, Gaussian, coupled independently. Source: thm-ccvfm-one-euler.
    """
    checks.at_least("steps", steps, 1)
    times = [j / steps for j in range(steps)]
    return math.prod(1 + (2 * u - 1) / ((1 - u) ** 2 + u**2) / steps for u in times)

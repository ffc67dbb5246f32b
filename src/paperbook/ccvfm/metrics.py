"""Distances between sets of samples: Fréchet, sliced Wasserstein, precision and recall."""

import ot
import torch
from torch import Tensor

from paperbook.ccvfm import checks


def frechet_distance(a: Tensor, b: Tensor) -> float:
    """Squared Fréchet distance of the Gaussians fitted to features ``a`` (n, p), ``b`` (m, p).

    Raises:
        ValueError: fewer than two rows, different columns, or values that are not finite.
    """
    _sets(a, b, 2)
    a, b = a.double(), b.double()
    cov_a, cov_b = torch.cov(a.T).reshape(a.shape[1], -1), torch.cov(b.T).reshape(a.shape[1], -1)
    root = _square_root(cov_a)
    cross = torch.linalg.eigvalsh(root @ cov_b @ root).clamp_min(0).sqrt().sum()
    distance = (a.mean(0) - b.mean(0)).square().sum() + cov_a.trace() + cov_b.trace() - 2 * cross
    return max(distance.item(), 0.0)


def _square_root(matrix: Tensor) -> Tensor:
    values, vectors = torch.linalg.eigh(matrix)
    return vectors * values.clamp_min(0).sqrt() @ vectors.T


def sliced_w2(a: Tensor, b: Tensor, *, projections: int = 200, seed: int = 0) -> float:
    """Squared sliced 2-Wasserstein distance of ``a`` (n, d) and ``b`` (m, d).

    Raises:
        ValueError: different columns, values that are not finite, or projections < 1.
    """
    _sets(a, b, 1)
    checks.at_least("projections", projections, 1)
    directions = ot.sliced.get_random_projections(a.shape[1], projections, seed)
    directions = torch.as_tensor(directions, device=a.device)
    a, b = (directions.T @ points.double().T for points in (a, b))
    if a.shape == b.shape:
        # On a line the optimal plan of equally many points pairs them in order; this is POT's
        # value in a third of its time.
        return (a.sort(1).values - b.sort(1).values).square().mean().item()
    return ot.wasserstein_1d(a.T, b.T, p=2).mean().item()


def precision_recall(real: Tensor, fake: Tensor, *, k: int = 5) -> tuple[float, float]:
    """Share of ``fake`` (m, p) inside the k-nearest-neighbour balls of ``real`` (n, p), and back.

    Source: Kynkäänniemi et al. 2019.

    Raises:
        ValueError: sets of at most k points, different columns, or k < 1.
    """
    checks.at_least("k", k, 1)
    _sets(real, fake, k + 1)
    between = torch.cdist(real, fake)
    real_radius = torch.cdist(real, real).kthvalue(k + 1, dim=1).values
    fake_radius = torch.cdist(fake, fake).kthvalue(k + 1, dim=1).values
    precision = (between <= real_radius[:, None]).any(0)
    recall = (between <= fake_radius).any(1)
    return precision.double().mean().item(), recall.double().mean().item()


def _sets(a: Tensor, b: Tensor, rows: int) -> None:
    checks.points("the first set", a)
    checks.points("the second set", b, columns=a.shape[1])
    if min(len(a), len(b)) < rows:
        raise ValueError(f"both sets need at least {rows} rows, got {len(a)} and {len(b)}")

"""Data of the chapter: digits as points in a scaled PCA space, and two pictures in the plane."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor

from paperbook.ccvfm import checks
from paperbook.ccvfm.mixture import GaussianMixture
from paperbook.datasets import mnist10k

DATASETS = ("mnist10k", "digits")
SPLIT_SEED = 0
TEST_SHARE = 0.2


@dataclass(frozen=True, eq=False)
class ImageData:
    """Images in PCA coordinates, scaled so that the training set has total variance d.

    ``train`` (n, d), ``test`` (m, d) with labels; ``explained`` is the share of variance kept.
    """

    train: Tensor
    test: Tensor
    train_labels: Tensor
    test_labels: Tensor
    explained: float
    side: int
    _basis: Tensor
    _centre: Tensor

    def decode(self, z: Tensor) -> Tensor:
        """Images (B, 1, side, side), values around [-1, 1], from coordinates ``z`` (B, d)."""
        checks.points("z", z, columns=self.train.shape[1])
        return (z @ self._basis + self._centre).view(-1, 1, self.side, self.side)


def load_images(
    dataset: str = "mnist10k", *, pca_dim: int = 64, pool: int = 2, device: str = "cpu"
) -> ImageData:
    """Digits as points of dimension ``pca_dim``: a fixed split, PCA fitted on the training part.

    Args:
        dataset: ``"mnist10k"`` (28x28) or ``"digits"`` (8x8, scikit-learn).
        pca_dim: d, from 1 to the number of pixels after pooling.
        pool: side of the mean-pooling window of MNIST: 1, 2 or 4; the 8x8 digits are not pooled.
        device: where the tensors go.

    Raises:
        ValueError: an argument outside what is said above.
    """
    checks.one_of("dataset", dataset, DATASETS)
    if pool not in (1, 2, 4):
        raise ValueError(f"pool must be 1, 2 or 4, got {pool!r}")
    images, labels = _pixels(dataset, pool)
    side, pixels = images.shape[-1], images[0].size
    if not isinstance(pca_dim, int) or not 1 <= pca_dim <= pixels:
        raise ValueError(f"pca_dim must be in [1, {pixels}], got {pca_dim!r}")
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(SPLIT_SEED))
    flat = torch.tensor(images).flatten(1)[order].double()
    labels = torch.tensor(labels).long()[order].to(device)
    cut = round(len(flat) * (1 - TEST_SHARE))

    centre = flat[:cut].mean(0)
    values, vectors = torch.linalg.eigh(torch.cov((flat[:cut] - centre).T, correction=0))
    kept = vectors.flip(1)[:, :pca_dim]
    variance = values.flip(0)[:pca_dim].sum()
    scale = (pca_dim / variance).sqrt()
    z = ((flat - centre) @ kept * scale).float().to(device)
    basis, centre = (kept.T / scale).float().to(device), centre.float().to(device)
    explained = (variance / values.sum()).item()
    return ImageData(z[:cut], z[cut:], labels[:cut], labels[cut:], explained, side, basis, centre)


def _pixels(dataset: str, pool: int) -> tuple[np.ndarray, np.ndarray]:
    """Images (N, side, side) with values in [-1, 1], and labels."""
    if dataset == "digits":
        digits = load_digits()
        return digits.images / 8 - 1, digits.target
    data = mnist10k.load()
    side = 28 // pool
    pooled = data.images.reshape(-1, side, pool, side, pool).mean((2, 4))
    return pooled / 127.5 - 1, data.labels


def eight_gaussians(*, dtype: torch.dtype = torch.float64) -> GaussianMixture:
    """Eight round Gaussians of standard deviation 0.2 on a circle of radius 2."""
    angles = 2 * math.pi * torch.arange(8, dtype=dtype) / 8
    means = 2 * torch.stack((angles.cos(), angles.sin()), 1)
    return GaussianMixture(torch.full_like(angles, 1 / 8), means, torch.full_like(means, 0.04))


def random_mixture(
    dim: int, components: int, *, seed: int, dtype: torch.dtype = torch.float64
) -> GaussianMixture:
    """A mixture of total variance about ``dim``: spread 0.9 between components, 0.1 within."""
    generator = torch.Generator().manual_seed(seed)
    means = math.sqrt(0.9) * torch.randn(components, dim, generator=generator, dtype=dtype)
    weights = torch.full_like(means[:, 0], 1 / components)
    return GaussianMixture(weights, means, torch.full_like(means, 0.1))


def two_moons(n: int, *, noise: float = 0.05, generator: torch.Generator) -> Tensor:
    """``n`` points (n, 2) on two interleaved half circles, centred, with Gaussian noise."""
    checks.at_least("n", n, 1)
    angle = math.pi * torch.rand(n, generator=generator)
    upper = torch.rand(n, generator=generator) < 0.5
    sign = torch.where(upper, 1.0, -1.0)
    x = sign * angle.cos() + torch.where(upper, -0.5, 0.5)
    y = sign * (angle.sin() - 0.25)
    return torch.stack((x, y), 1) + noise * torch.randn(n, 2, generator=generator)

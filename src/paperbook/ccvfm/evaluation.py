"""Scoring samples of images: features of a small classifier, and the grid of samplers."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from paperbook.ccvfm import checks
from paperbook.ccvfm.data import ImageData
from paperbook.ccvfm.metrics import frechet_distance, precision_recall, sliced_w2
from paperbook.ccvfm.network import initialise

NEIGHBOUR_POINTS = 1000


class FeatureNet(nn.Module):
    """A small convolutional classifier of digits; its 64-dimensional layer gives the features."""

    def __init__(self, side: int) -> None:
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        )  # fmt: skip
        self.embed = nn.Linear(32 * (side // 4) ** 2, 64)
        self.classify = nn.Linear(64, 10)

    def features(self, images: Tensor) -> Tensor:
        """Features (B, 64) of ``images`` (B, 1, side, side)."""
        return self.embed(self.convolutions(images))

    def forward(self, images: Tensor) -> Tensor:
        return self.classify(torch.relu(self.features(images)))


def train_features(
    data: ImageData, *, epochs: int = 4, noise: float = 0.1, seed: int = 0
) -> FeatureNet:
    """Train the classifier on the decoded training images with Gaussian pixel noise."""
    checks.at_least("epochs", epochs, 1)
    images, labels = data.decode(data.train), data.train_labels
    generator = torch.Generator(images.device).manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = FeatureNet(data.side).to(images)
    initialise(net, generator)
    optimiser = torch.optim.Adam(net.parameters(), lr=2e-3, fused=True)
    for _ in range(epochs):
        order = torch.randperm(len(images), generator=generator, device=images.device)
        for rows in order.split(128):
            clean = images[rows]
            jitter = torch.randn(
                clean.shape, generator=generator, dtype=clean.dtype, device=clean.device
            )
            loss = nn.functional.cross_entropy(net(clean + noise * jitter), labels[rows])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return net.requires_grad_(False)


@dataclass(frozen=True)
class Scores:
    """Fréchet distance ``fd`` and squared sliced W2 ``sliced`` (small is good), and coverage."""

    fd: float
    sliced: float
    precision: float
    recall: float


class Scorer:
    """Compares samples (n, d) with the test set of ``data``, in features and in coordinates.

    Args:
        data: images.
        num_samples: how many test points are used, at most.
        seed: of the classifier and of the sliced projections.
    """

    def __init__(self, data: ImageData, *, num_samples: int = 2000, seed: int = 0) -> None:
        checks.at_least("num_samples", num_samples, 2)
        self.data, self.seed = data, seed
        self.net = train_features(data, seed=seed)
        self.test = data.test[:num_samples]
        self._test_features = self.features(self.test)

    def features(self, z: Tensor) -> Tensor:
        """Classifier features (n, 64) of coordinates ``z`` (n, d)."""
        # In parts that fit the processor's cache.
        return torch.cat([self.net.features(self.data.decode(part)) for part in z.split(500)])

    def accuracy(self) -> float:
        """Share of test images that the classifier reads correctly."""
        guess = self.net(self.data.decode(self.data.test)).argmax(1)
        return (guess == self.data.test_labels).double().mean().item()

    def score(self, samples: Tensor) -> Scores:
        """Scores of ``samples`` (n, d) against the test set."""
        features = self.features(samples)
        near = features[:NEIGHBOUR_POINTS], self._test_features[:NEIGHBOUR_POINTS]
        precision, recall = precision_recall(near[1], near[0])
        return Scores(
            fd=frechet_distance(features, self._test_features),
            sliced=sliced_w2(samples, self.test, seed=self.seed),
            precision=precision,
            recall=recall,
        )


@dataclass(frozen=True)
class Steps:
    """How a hierarchical flow is sampled: L outer steps, J inner steps and the inner solver."""

    outer: int
    inner: int
    solver: str

    @property
    def nfe(self) -> int:
        """Network evaluations a sample."""
        if self.solver == "surrogate_midpoint":
            return self.outer
        return self.outer * self.inner * (2 if self.solver == "midpoint" else 1)

    def __str__(self) -> str:
        return f"{self.solver.replace('_', '-')} {self.outer}x{self.inner}"


def all_steps(nfe: int, *, max_outer: int, surrogate: bool) -> list[Steps]:
    """Every way to spend exactly ``nfe`` evaluations with at most ``max_outer`` outer steps.

    ``surrogate`` adds the surrogate midpoint, which needs a surrogate source.
    """
    checks.at_least("nfe", nfe, 1)
    found = [
        Steps(outer, inner, solver)
        for solver in ("euler", "midpoint")
        for outer in range(1, min(nfe, max_outer) + 1)
        for inner in range(1, nfe + 1)
        if Steps(outer, inner, solver).nfe == nfe
    ]
    if surrogate and nfe <= max_outer:
        found.append(Steps(nfe, 1, "surrogate_midpoint"))
    return found

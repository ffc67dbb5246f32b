"""Stage III and its baselines: one training loop for all of them."""

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from paperbook.ccvfm import checks
from paperbook.ccvfm.coreset import Coreset
from paperbook.ccvfm.mixture import GaussianMixture
from paperbook.ccvfm.network import VelocityNet, initialise
from paperbook.ccvfm.velocity import ConditionalVelocity

METHODS = ("rf", "hrf", "ccvfm", "mixture")
COUPLINGS = ("independent", "plan")
TIMES_PER_BATCH = 16
EMA_DECAY = 0.998


@dataclass(frozen=True)
class TrainedFlow:
    """The averaged network and the training loss of each iteration (mean over coordinates)."""

    net: nn.Module
    losses: list[float]


@dataclass(frozen=True)
class Batch:
    """Network inputs ``x`` (B, d), ``t`` (B,), ``v`` (B, d), ``tau`` (B,); ``target`` (B, d)."""

    x: Tensor
    t: Tensor
    v: Tensor
    tau: Tensor
    target: Tensor


Draw = Callable[[torch.Generator], Batch]


def train(
    method: str,
    X: Tensor,
    *,
    mixture: GaussianMixture | None = None,
    coreset: Coreset | None = None,
    coupling: str = "independent",
    start_fraction: float = 0.25,
    iterations: int,
    batch_size: int = 128,
    hidden: int = 256,
    depth: int = 3,
    learning_rate: float = 1e-3,
    seed: int = 0,
) -> TrainedFlow:
    """Train a flow on data ``X`` (N, d); the same seed gives the same losses.

    Args:
        method: ``"rf"`` rectified flow; ``"hrf"`` hierarchical flow from Gaussian noise;
            ``"ccvfm"`` hierarchical flow from the surrogate of ``mixture``; ``"mixture"`` plain
            flow matching in data space from ``mixture``.
        X: data (N, d).
        mixture: the lifted coreset, for ``"ccvfm"`` and ``"mixture"``.
        coreset: the coreset of ``X``, for the plan coupling.
        coupling: of source and target velocity: ``"independent"`` given the position, or
            ``"plan"`` (always at t = 0; ``"ccvfm"`` only).
        start_fraction: share of each batch at t = 0, in [0, 1]; the rest is uniform. Not used by
            ``"rf"`` and ``"mixture"``.
        iterations, batch_size, hidden, depth: integers >= 1.
        learning_rate: of Adam, falling to 0 along a cosine.
        seed: of weights and batches.

    Raises:
        ValueError: an argument outside what is said above.
    """
    checks.points("X", X)
    checks.one_of("method", method, METHODS)
    checks.one_of("coupling", coupling, COUPLINGS)
    if not 0 <= start_fraction <= 1:
        raise ValueError(f"start_fraction must be in [0, 1], got {start_fraction!r}")
    checks.at_least("iterations", iterations, 1)
    checks.at_least("batch_size", batch_size, 1)
    checks.positive("learning_rate", learning_rate)
    draw = _drawer(method, X, mixture, coreset, coupling, start_fraction, batch_size)
    generator = torch.Generator(X.device).manual_seed(seed)
    with torch.random.fork_rng(devices=[]):  # building layers must not touch the global state
        net = VelocityNet(X.shape[1], hidden=hidden, depth=depth).to(X)
    initialise(net, generator)
    return _fit(net, draw, iterations, learning_rate, generator)


def _fit(
    net: nn.Module, draw: Draw, iterations: int, learning_rate: float, generator: torch.Generator
) -> TrainedFlow:
    optimiser = torch.optim.Adam(net.parameters(), lr=learning_rate, fused=True)
    average = copy.deepcopy(net).requires_grad_(False)
    weights, averaged = list(net.parameters()), list(average.parameters())
    losses = []
    for i in range(iterations):
        optimiser.param_groups[0]["lr"] = (
            learning_rate * (1 + math.cos(math.pi * i / iterations)) / 2
        )
        batch = draw(generator)
        loss = (net(batch.x, batch.t, batch.v, batch.tau) - batch.target).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        # A short memory first, so that the average forgets the random start.
        decay = min(EMA_DECAY, (1 + i) / (10 + i))
        with torch.no_grad():
            torch._foreach_lerp_(averaged, weights, 1 - decay)
        losses.append(loss.detach())
    return TrainedFlow(average, torch.stack(losses).tolist())


def _drawer(
    method: str,
    X: Tensor,
    mixture: GaussianMixture | None,
    coreset: Coreset | None,
    coupling: str,
    start_fraction: float,
    batch_size: int,
) -> Draw:
    """The function that draws a batch for ``method``."""
    if method == "rf":
        return partial(_rectified, X, batch_size)
    if method == "hrf":
        return partial(_hierarchical, X, batch_size, batch_size, start_fraction, None)
    if mixture is None:
        raise ValueError(f"mixture must be given for method {method!r}")
    checks.points("the means of mixture", mixture.means, columns=X.shape[1])
    checks.same_place("the means of mixture", mixture.means, X)
    if method == "mixture":
        return partial(_data_space, X, batch_size, mixture)
    if coupling == "plan":
        if coreset is None or len(coreset.plan) != len(X):
            raise ValueError("coreset must be given, and made from X, for coupling 'plan'")
        return partial(_planned, X, batch_size, mixture, coreset.plan)
    # Few distinct times a batch make the surrogate's responsibilities batched matrix products.
    most = 1 if start_fraction == 1 else TIMES_PER_BATCH
    groups = max(g for g in range(1, most + 1) if batch_size % g == 0)
    surrogate = ConditionalVelocity(mixture)
    return partial(_hierarchical, X, batch_size, groups, start_fraction, surrogate)


def _rectified(X: Tensor, size: int, generator: torch.Generator) -> Batch:
    """Flow matching: regress the velocity on position and time alone."""
    x1, x0 = _pair(X, size, generator)
    t = _uniform(size, X, generator)
    x = torch.lerp(x0, x1, t[:, None])
    return Batch(x, t, torch.zeros_like(x), torch.zeros_like(t), x1 - x0)


def _hierarchical(
    X: Tensor,
    size: int,
    groups: int,
    start_fraction: float,
    surrogate: ConditionalVelocity | None,
    generator: torch.Generator,
) -> Batch:
    """Inner flow from noise or surrogate to the velocity, coupled independently given (x, t)."""
    x1, x0 = _pair(X, size, generator)
    times = _uniform(groups, X, generator)
    times[: round(start_fraction * groups)] = 0
    t = times.repeat_interleave(size // groups)
    x = torch.lerp(x0, x1, t[:, None])
    if surrogate is None:
        v0 = _normal(x, generator)
    else:
        v0 = surrogate.sample(x.view(groups, -1, x.shape[1]), times, generator=generator)
    return _inner(x, t, v0.view_as(x), x1 - x0, generator)


def _planned(
    X: Tensor, size: int, mixture: GaussianMixture, plan: Tensor, generator: torch.Generator
) -> Batch:
    """Source and target share an atom of the coreset's plan; always at t = 0."""
    rows = torch.randint(len(X), (size,), generator=generator, device=X.device)
    x0 = _normal(X[rows], generator)
    k = torch.multinomial(plan[rows], 1, generator=generator).squeeze(1)
    cell = mixture.means[k] + mixture.variances[k].sqrt() * _normal(x0, generator)
    return _inner(x0, torch.zeros_like(x0[:, 0]), cell - x0, X[rows] - x0, generator)


def _data_space(
    X: Tensor, size: int, mixture: GaussianMixture, generator: torch.Generator
) -> Batch:
    """Flow matching from the mixture straight to the data: no position, no outer time."""
    rows = torch.randint(len(X), (size,), generator=generator, device=X.device)
    origin = torch.zeros_like(X[rows])
    start = mixture.sample(size, generator=generator)
    return _inner(origin, torch.zeros_like(origin[:, 0]), start, X[rows], generator)


def _inner(x: Tensor, t: Tensor, v0: Tensor, v1: Tensor, generator: torch.Generator) -> Batch:
    tau = _uniform(len(x), x, generator)
    return Batch(x, t, torch.lerp(v0, v1, tau[:, None]), tau, v1 - v0)


def _pair(X: Tensor, size: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    rows = torch.randint(len(X), (size,), generator=generator, device=X.device)
    return X[rows], _normal(X[rows], generator)


def _normal(like: Tensor, generator: torch.Generator) -> Tensor:
    return torch.randn(like.shape, generator=generator, dtype=like.dtype, device=like.device)


def _uniform(size: int, like: Tensor, generator: torch.Generator) -> Tensor:
    return torch.rand(size, generator=generator, dtype=like.dtype, device=like.device)

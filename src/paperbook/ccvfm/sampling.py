"""Samplers: outer steps through space, inner steps through velocity space."""

from collections.abc import Callable

import torch
from torch import Tensor

from paperbook.ccvfm import checks
from paperbook.ccvfm.mixture import GaussianMixture
from paperbook.ccvfm.velocity import ConditionalVelocity

SOLVERS = ("euler", "midpoint", "surrogate_midpoint")
Net = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


@torch.no_grad()
def sample_rectified(
    net: Net,
    num_samples: int,
    dim: int,
    *,
    steps: int,
    solver: str = "euler",
    generator: torch.Generator,
) -> Tensor:
    """Integrate the mean velocity from noise in ``steps`` steps; samples (num_samples, dim).

    ``solver`` is ``"euler"`` (``steps`` calls of ``net``) or ``"midpoint"`` (twice as many).

    Raises:
        ValueError: a count below 1 or an unknown solver.
    """
    checks.at_least("steps", steps, 1)
    checks.one_of("solver", solver, ("euler", "midpoint"))
    x = _noise(num_samples, dim, generator)

    def velocity(x: Tensor, t: float) -> Tensor:
        return net(x, _time(x, t), torch.zeros_like(x), _time(x, 0.0))

    return _integrate(velocity, x, steps, solver)


@torch.no_grad()
def sample_hierarchical(
    net: Net,
    num_samples: int,
    dim: int,
    *,
    source: ConditionalVelocity | None = None,
    outer_steps: int = 1,
    inner_steps: int = 1,
    solver: str = "euler",
    generator: torch.Generator,
) -> Tensor:
    """Outer Euler steps whose velocity is drawn by an inner flow; samples (num_samples, dim).

    Args:
        net: ``(x (B, d), t (B,), v (B, d), tau (B,)) -> (B, d)``.
        num_samples, dim: n and d, >= 1.
        source: law that the inner flow starts from; ``None`` for standard noise.
        outer_steps, inner_steps: L and J, >= 1.
        solver: ``"euler"`` (L J calls), ``"midpoint"`` (2 L J calls) or
            ``"surrogate_midpoint"`` (L calls: one midpoint step whose predictor is the source's
            own mean, prop-ccvfm-midpoint).
        generator: draws x first, then v in each outer step.

    Raises:
        ValueError: steps below 1, an unknown solver, or the surrogate midpoint without a source.
    """
    checks.at_least("outer_steps", outer_steps, 1)
    checks.at_least("inner_steps", inner_steps, 1)
    checks.one_of("solver", solver, SOLVERS)
    if solver == "surrogate_midpoint" and source is None:
        raise ValueError("source must be given for solver 'surrogate_midpoint'")
    x = _noise(num_samples, dim, generator)
    for step in range(outer_steps):
        t = step / outer_steps
        if source is None:
            v = _noise(num_samples, dim, generator)
        else:
            v = source.sample(x, t, generator=generator)

        def inner(v: Tensor, tau: float, x: Tensor = x, t: float = t) -> Tensor:
            return net(x, _time(x, t), v, _time(x, tau))

        if solver == "surrogate_midpoint":
            v = v + inner((v + source.mean(x, t)) / 2, 0.5)
        else:
            v = _integrate(inner, v, inner_steps, solver)
        x = x + v / outer_steps
    return x


@torch.no_grad()
def sample_surrogate(
    source: ConditionalVelocity, num_samples: int, *, outer_steps: int, generator: torch.Generator
) -> Tensor:
    """Outer Euler steps with velocities drawn from the surrogate itself: no network at all."""
    return sample_hierarchical(
        lambda x, t, v, tau: torch.zeros_like(v),
        num_samples,
        source.mixture.dim,
        source=source,
        outer_steps=outer_steps,
        generator=generator,
    )


@torch.no_grad()
def sample_data_flow(
    net: Net,
    mixture: GaussianMixture,
    num_samples: int,
    *,
    steps: int,
    solver: str = "euler",
    generator: torch.Generator,
) -> Tensor:
    """Integrate a flow in data space from draws of ``mixture``; samples (num_samples, d).

    Raises:
        ValueError: a count below 1 or an unknown solver.
    """
    checks.at_least("steps", steps, 1)
    checks.one_of("solver", solver, ("euler", "midpoint"))
    start = mixture.sample(num_samples, generator=generator)
    origin = torch.zeros_like(start)

    def velocity(v: Tensor, tau: float) -> Tensor:
        return net(origin, _time(origin, 0.0), v, _time(origin, tau))

    return _integrate(velocity, start, steps, solver)


def _integrate(
    field: Callable[[Tensor, float], Tensor], state: Tensor, steps: int, solver: str
) -> Tensor:
    """Integrate ``field`` over [0, 1] by Euler or explicit midpoint steps."""
    h = 1 / steps
    for j in range(steps):
        if solver == "euler":
            state = state + h * field(state, j * h)
        else:
            middle = state + h / 2 * field(state, j * h)
            state = state + h * field(middle, (j + 0.5) * h)
    return state


def _noise(num_samples: int, dim: int, generator: torch.Generator) -> Tensor:
    checks.at_least("num_samples", num_samples, 1)
    checks.at_least("dim", dim, 1)
    return torch.randn(num_samples, dim, generator=generator, device=generator.device)


def _time(like: Tensor, t: float) -> Tensor:
    return torch.full_like(like[:, 0], t)

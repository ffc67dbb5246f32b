"""The chapter's lemmas on instances: measured side over bound, at most 1 where a lemma holds."""

from collections.abc import Sequence
from math import ceil, sqrt

import torch

from paperbook.ntk_width.data import make_generator, sphere
from paperbook.ntk_width.drift import (
    cheapest_flips,
    flip_fraction_bound,
    flip_fractions,
    jacobian_change,
)
from paperbook.ntk_width.initial import gaussian_init
from paperbook.ntk_width.kernels import empirical_ntk
from paperbook.ntk_width.network import Params
from paperbook.ntk_width.task import Task
from paperbook.ntk_width.theory import (
    RADIUS,
    RATE,
    gd_envelope,
    init_width,
    nag_envelope,
    zero_output_scale,
)
from paperbook.ntk_width.training import linearised_loss, nesterov_momentum, train
from paperbook.ntk_width.width import init_width_of

PACE = 0.05  # η λ_max of descent that stands for the gradient flow
DISCRETE = 1.05  # what a step of that size may add to the path


def _smallest(params: Params, X: torch.Tensor) -> float:
    return float(torch.linalg.eigvalsh(sum(empirical_ntk(params, X)))[0])


def init_width_ratio(task: Task, seeds: Sequence[int], *, delta: float, limit: int) -> float:
    """Measured width of a good initial kernel over what theorem thm-ntk_width-init asks for."""
    measured = init_width_of(task, seeds, limit=limit)
    return (
        float("inf")
        if measured is None
        else measured / init_width(task.X, task.Y.shape[1], delta=delta)
    )


def path_ratio(task: Task, width: int, seed: int) -> float:
    """Path length over 1.05 ‖R_0‖/min σ_min(J) (lemma lem-ntk_width-path), for slow descent."""
    start = task.start(width, seed)
    kernel = sum(empirical_ntk(start, task.X))
    values = torch.linalg.eigvalsh(kernel)
    met: list[float] = []
    run = train(
        start,
        task.X,
        task.Y,
        step_size=PACE / float(values[-1]),
        steps=int(4 / PACE * float(values[-1] / values[0])),
        callback=lambda step, loss, params: met.append(_smallest(params, task.X)),
    )
    return run.path_length * sqrt(min(met)) / (DISCRETE * float((2 * run.loss[0]).sqrt()))


def flip_ratio(width: int, displacement: float, seed: int) -> float:
    """Flips made by the cheapest displacement over the bound of lemma lem-ntk_width-flips."""
    generator = make_generator(seed, width)
    X = sphere(1, 8, generator=generator)
    start = gaussian_init(width, 8, 1, alpha=1.0, beta=1.0, generator=generator)
    end = Params(cheapest_flips(start, X[0], displacement), start.V)
    return float(flip_fractions(start, end, X) / flip_fraction_bound(start, X, displacement))


def drift_ratio(task: Task, width: int, seed: int) -> float:
    """Larger of the two Jacobian changes of a trained network over its bound in the proposition."""
    start = task.start(width, seed)
    run = train(start, task.X, task.Y, step_size=task.spectrum.step_size(), steps=2000, tol=1e-4)
    change = jacobian_change(start, run.params, task.X)
    return max(change.conjugate / change.conjugate_bound, change.hidden / change.hidden_bound)


def zero_output_ratios(task: Task, width: int, seed: int, *, delta: float) -> tuple[float, float]:
    """Corollary cor-ntk_width-zero-output at s = s*: ‖R_t‖ over its envelope, path over radius.

    The data and the ratio of ``task`` are kept, its scale and start replaced. The envelope is
    compared from t = 1/Λ_0 on: at t = 0 it is met by definition.
    """
    scale = zero_output_scale(task.X, task.Y, width=width, ratio=task.ratio, delta=delta)
    lazy = Task(task.X, task.Y, task.ratio, scale, zero_output=True)
    level = lazy.scales[1] ** 2 * float(torch.linalg.eigvalsh(lazy.kernels[0])[0])
    step_size = PACE / lazy.spectrum.largest
    steps = int(12 / (step_size * level))
    run = train(lazy.start(width, seed), lazy.X, lazy.Y, step_size=step_size, steps=steps)
    time = step_size * torch.arange(len(run.loss), dtype=torch.float64)
    relative = (run.loss / run.loss[0]).sqrt() * torch.exp(RATE * level * time)
    radius = RADIUS * float(task.Y.norm()) / sqrt(level)
    return float(relative[time >= 1 / level].max()), run.path_length / radius


def linear_rate_ratio(task: Task, seed: int, *, steps: int) -> float:
    """Worst linearised residual of descent and Nesterov over the theorem's envelopes.

    Compared from t = √κ on: at t = 0 the envelopes are met by definition.
    """
    spectrum = task.spectrum
    generator = make_generator(seed, steps)
    R0 = torch.randn(len(task.X), 1, generator=generator, dtype=task.X.dtype).to(task.X.device)
    worst = 0.0
    for envelope, momentum in (
        (gd_envelope(spectrum.condition, steps), 0.0),
        (nag_envelope(spectrum.condition, steps), nesterov_momentum(spectrum.condition)),
    ):
        loss = linearised_loss(
            task.limit, R0, step_size=1 / spectrum.largest, steps=steps, momentum=momentum
        )
        relative = (loss / loss[0]).sqrt().cpu() / envelope
        worst = max(worst, float(relative[ceil(sqrt(spectrum.condition)) :].max()))
    return worst


def subspace_gap(task: Task, width: int, seed: int, *, steps: int) -> float:
    """Largest weight difference between a sketched network and its r-output twin, relative."""
    start = task.start(width, seed)
    common = {"step_size": task.spectrum.step_size(), "steps": steps, "method": "nag"}
    whole = train(start, task.X, task.Y, momentum=0.5, **common).params
    reduced = train(
        task.on_subspace(start), task.X, task.Y @ task.basis, momentum=0.5, **common
    ).params
    gap = (whole.V - task.basis @ reduced.V).norm() + (whole.W - reduced.W).norm()
    return float(gap / (whole.V.norm() + whole.W.norm()))


def sketch_ratio(task: Task, width: int, seed: int) -> float:
    """κ(Y)^{-2} λ_min(K_W^iso) over λ_min(K_W) (proposition prop-ntk_width-sketch)."""
    inside = task.on_subspace(task.start(width, seed))
    singular = torch.linalg.svdvals(task.Y)[: inside.output_dim]
    isotropic = Params(inside.W, inside.V / (singular / singular[0])[:, None])
    sketched, plain = (
        float(torch.linalg.eigvalsh(empirical_ntk(p, task.X)[0])[0]) for p in (inside, isotropic)
    )
    return plain / task.response_condition**2 / sketched

"""Executable checks of the chapter's theorems: random instances, near equality, failing cases."""

from itertools import product
from math import ceil, exp, factorial, log, prod, sqrt

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats
from torch import Tensor

from paperbook.ntk_width import (
    Params,
    Task,
    arc_cosine_kernels,
    cheapest_flips,
    empirical_ntk,
    flip_fraction_bound,
    flip_fractions,
    forward,
    gaussian_init,
    gaussian_responses,
    gd_envelope,
    hidden_share,
    init_width,
    init_width_of,
    jacobian_change,
    jacobian_change_bound,
    kernel_drift,
    limiting_ntk,
    linearised_loss,
    loglog_slope,
    low_rank_responses,
    make_generator,
    nag_envelope,
    nesterov_momentum,
    norm_bound,
    scales,
    sketched_init,
    sphere,
    train,
    typical_flip_fraction,
    zero_output_scale,
)
from paperbook.ntk_width.theory import RADIUS, RATE

quick = settings(deadline=None, max_examples=25)
SEEDS = st.integers(0, 10**6)


def smallest(kernel: Tensor) -> float:
    return float(torch.linalg.eigvalsh(kernel)[0])


def norm(matrix: Tensor) -> float:
    return float(torch.linalg.matrix_norm(matrix, ord=2))


# --- thm-ntk_width-limit ---------------------------------------------------------------------


def pair_at(angle: float) -> Tensor:
    return torch.tensor([[1.0, 0.0], [np.cos(angle), np.sin(angle)]], dtype=torch.float64)


def by_quadrature(angle: float) -> tuple[float, float]:
    """H_12 and G_12 from the definition: an integral over the direction of w."""
    low, high = angle - np.pi / 2, np.pi / 2
    active = integrate.quad(lambda phi: 1.0, low, high)[0] / (2 * np.pi)
    product_ = integrate.quad(lambda phi: np.cos(phi) * np.cos(phi - angle), low, high)[0]
    return np.cos(angle) * active, 2 * product_ / (2 * np.pi)


@pytest.mark.theorem("thm-ntk_width-limit")
@quick
@given(st.floats(0, np.pi))
def test_limit_kernels_equal_the_integrals(angle):
    H, G = arc_cosine_kernels(pair_at(angle))
    expected_H, expected_G = by_quadrature(angle)
    # cos loses half the digits near 0 and π, and arccos cannot bring them back.
    assert H[0, 1] == pytest.approx(expected_H, abs=1e-8)
    assert G[0, 1] == pytest.approx(expected_G, abs=1e-8)
    assert H[0, 0] == pytest.approx(0.5, abs=1e-12)


@pytest.mark.theorem("thm-ntk_width-limit")
def test_empirical_kernel_is_the_jacobian_gram_matrix(small, jacobians):
    params, X, _ = small
    for X_scaled in (X, X * torch.linspace(0.5, 2, 5, dtype=X.dtype)[:, None]):
        hidden, output = empirical_ntk(params, X_scaled)
        J_W, J_V = jacobians(params, X_scaled)
        assert torch.allclose(hidden, J_W @ J_W.T, atol=1e-10, rtol=0)
        assert torch.allclose(output, J_V @ J_V.T, atol=1e-10, rtol=0)


def limit_errors(widths: list[int], draws: int) -> list[float]:
    """Root mean square error of the empirical kernel, inputs of different norms."""
    generator = make_generator(1)
    X = sphere(6, 4, generator=generator) * torch.linspace(0.5, 2, 6, dtype=torch.float64)[:, None]
    mean = torch.kron(limiting_ntk(X, alpha=0.7, beta=1.5), torch.eye(2, dtype=X.dtype))
    errors = []
    for width in widths:
        squares = []
        for _ in range(draws):
            params = gaussian_init(width, 4, 2, alpha=0.7, beta=1.5, generator=generator)
            squares.append((sum(empirical_ntk(params, X)) - mean).square().mean())
        errors.append(float(torch.stack(squares).mean().sqrt()))
    return errors


@pytest.mark.theorem("thm-ntk_width-limit")
def test_empirical_kernel_approaches_the_limit_at_the_monte_carlo_rate():
    widths = [64, 256, 1024, 4096, 16384]
    assert -0.65 <= loglog_slope(widths, limit_errors(widths, draws=12)) <= -0.35


@pytest.mark.theorem("thm-ntk_width-limit")
def test_limit_fails_where_output_weights_depend_on_hidden_ones():
    X = sphere(3, 4, generator=make_generator(2))
    free = gaussian_init(20000, 4, 1, alpha=1, beta=1, generator=make_generator(3))
    # Still E v² = 1, but v is switched on exactly where the first input is active.
    tied = Params(free.W, sqrt(2) * free.V * (X[0] @ free.W.T > 0))
    H = arc_cosine_kernels(X)[0]
    assert empirical_ntk(free, X)[0][0, 0] == pytest.approx(float(H[0, 0]), abs=0.05)
    assert empirical_ntk(tied, X)[0][0, 0] > 1.8 * H[0, 0]


# --- prop-ntk_width-share --------------------------------------------------------------------


@pytest.mark.theorem("prop-ntk_width-share")
@quick
@given(SEEDS, st.floats(1 / 64, 64), st.floats(0.1, 10))
def test_share_of_the_limiting_trace(seed, ratio, output_scale):
    X = sphere(5, 3, generator=make_generator(seed))
    X = X * torch.linspace(0.2, 3, 5, dtype=X.dtype)[:, None]
    alpha, beta = scales(ratio, output_scale)
    H, G = arc_cosine_kernels(X)
    whole = limiting_ntk(X, alpha=alpha, beta=beta)
    share = beta**2 * H.trace() / whole.trace()
    assert float(share) == pytest.approx(ratio**2 / (1 + ratio**2), rel=1e-12)
    assert smallest(whole) >= beta**2 * smallest(H) - 1e-12 * norm(whole)
    assert smallest(G) >= -1e-12


@pytest.mark.theorem("prop-ntk_width-share")
@pytest.mark.parametrize("ratio", [1 / 8, 1.0, 8.0])
def test_measured_share_scatters_around_the_prediction(ratio):
    X = sphere(12, 6, generator=make_generator(4))
    alpha, beta = scales(ratio, 1.0)
    found = [
        hidden_share(
            gaussian_init(4096, 6, 3, alpha=alpha, beta=beta, generator=make_generator(5, k)), X
        )
        for k in range(12)
    ]
    error = np.std(found, ddof=1) / sqrt(len(found))
    assert abs(np.mean(found) - ratio**2 / (1 + ratio**2)) <= 3 * error
    assert error < 0.01


# --- thm-ntk_width-init ----------------------------------------------------------------------


@pytest.mark.theorem("thm-ntk_width-init")
@pytest.mark.parametrize("dim", [1, 2, 10, 40])
@pytest.mark.parametrize("level", [0.5, 1.0, 2.0, 4.0])
def test_chi_square_tail(dim, level):
    tail = stats.chi2.sf(norm_bound(dim, level), dim)
    assert tail <= exp(-level)


def test_chi_square_tail_needs_both_terms():
    """Without 2ℓ it fails in one dimension, with half of 2√(nℓ) in many."""
    assert stats.chi2.sf(norm_bound(1, 4.0) - 8, 1) > exp(-4)
    assert stats.chi2.sf(norm_bound(10**4, 2.0) - sqrt(2e4), 10**4) > exp(-2)


@pytest.mark.theorem("thm-ntk_width-init")
@pytest.mark.parametrize("p", [0.9, 0.5, 0.2, 0.05, 1e-3])
@pytest.mark.parametrize("dim", [1, 2, 10, 40])
def test_truncation_keeps_most_of_the_mean(dim, p):
    bound = stats.chi2.isf(p, dim)
    kept = stats.chi2.cdf(bound, dim + 2)  # E[‖g‖²; ‖g‖² <= B]/n, exactly
    assert kept >= 1 - sqrt(3 * p)
    direct = integrate.quad(lambda x: x * stats.chi2.pdf(x, dim), 0, bound)[0] / dim
    assert kept == pytest.approx(direct, abs=1e-6)


def test_truncation_constant_is_needed():
    """Without the factor 3 (the fourth moment) the bound is false in one dimension."""
    assert stats.chi2.cdf(stats.chi2.isf(0.2, 1), 3) < 1 - sqrt(0.2)


def starved(draws: int, at_most: int) -> float:
    """Exact P(some of 4 equally likely cells gets <= ``at_most`` of ``draws``)."""
    enough = 0.0
    for counts in product(range(at_most + 1, draws + 1), repeat=3):
        last = draws - sum(counts)
        if last > at_most:
            enough += factorial(draws) / prod(factorial(c) for c in (*counts, last)) / 4**draws
    return 1 - enough


@pytest.mark.theorem("thm-ntk_width-init")
@pytest.mark.parametrize(("draws", "at_most"), [(8, 0), (12, 0), (16, 1), (24, 2), (32, 4)])
def test_matrix_chernoff_on_random_coordinate_projections(draws, at_most):
    """Σ of ``draws`` projections e_i e_iᵀ in dimension 4: μ = draws/4, R = 1, λ_min = min count."""
    mu = draws / 4
    eps = 1 - at_most / mu
    probability = starved(draws, at_most)
    sharp = 4 * (exp(-eps) / (1 - eps) ** (1 - eps if eps < 1 else 0)) ** mu
    assert probability <= sharp <= 4 * exp(-(eps**2) * mu / 2)
    assert probability > 0.05 * sharp  # the instances are close enough to tell


@pytest.mark.theorem("thm-ntk_width-init")
def test_matrix_chernoff_on_random_directions():
    dim, draws, eps = 4, 48, 0.6
    allowed = dim * exp(-(eps**2) * (draws / dim) / 2)
    assert 0.05 <= allowed <= 0.5
    u = torch.randn(4000, draws, dim, generator=make_generator(6), dtype=torch.float64)
    u = u / u.norm(dim=2, keepdim=True)
    smallest_values = torch.linalg.eigvalsh(u.mT @ u)[:, 0]
    failures = smallest_values <= (1 - eps) * draws / dim
    assert 0 < failures.double().mean() <= allowed


@pytest.mark.theorem("thm-ntk_width-init")
def test_theorem_at_its_own_width_and_far_below():
    X = sphere(6, 8, generator=make_generator(7))
    H = arc_cosine_kernels(X)[0]
    delta, alpha, beta = 0.1, 0.25, 4.0
    width = init_width(X, 2, delta=delta)
    level = log(4 * width / delta)
    needed = 53 * norm(X) ** 2 * norm_bound(2, level) * log(24 / delta) / smallest(H)
    assert needed <= width <= 1.001 * needed + 1
    assert width >= 300 * delta

    def holds(m: int, seed: int) -> bool:
        start = gaussian_init(m, 8, 2, alpha=alpha, beta=beta, generator=make_generator(seed))
        return smallest(sum(empirical_ntk(start, X))) >= 0.75 * beta**2 * smallest(H)

    assert all(holds(width, seed) for seed in range(10))
    assert not any(holds(4, seed) for seed in range(10))


@pytest.mark.theorem("thm-ntk_width-init")
def test_measured_width_is_never_above_the_bound():
    for seed in range(3):
        generator = make_generator(8, seed)
        X = sphere(8, 8, generator=generator)
        task = Task(X, gaussian_responses(8, 2, generator=generator))
        measured = init_width_of(task, range(3), limit=2000)
        scale = 2 * norm(X) ** 2 / smallest(task.kernels[0])
        assert measured is not None
        assert measured < 10 * scale < init_width(X, 2, delta=0.1)


# --- lem-ntk_width-path ----------------------------------------------------------------------


def followed(task: Task, width: int, *, slowness: float, pace: float, span: float):
    """Descent with η λ_max(K(0)) = ``pace`` and what the path lemma needs of it.

    With ``slowness`` the responses are moved so that R_0 lies along the weakest eigenvector.
    Returns the run, step size, smallest singular value met, and the residual norms.
    """
    start = task.start(width, 0)
    values, vectors = torch.linalg.eigh(sum(empirical_ntk(start, task.X)))
    Y = task.Y
    if slowness:
        Y = forward(start, task.X) - slowness * vectors[:, 0].reshape(Y.shape)
    step_size = pace / float(values[-1])
    steps = ceil(span / (step_size * float(values[0])))
    met = []
    run = train(
        start,
        task.X,
        Y,
        step_size=step_size,
        steps=steps,
        callback=lambda t, loss, p: met.append(smallest(sum(empirical_ntk(p, task.X)))),
    )
    return run, step_size, sqrt(min(met)), (2 * run.loss).sqrt()


@pytest.mark.theorem("lem-ntk_width-path")
@pytest.mark.parametrize("ratio", [1.0, 16.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_path_is_short_and_the_residual_decays(ratio, seed):
    generator = make_generator(9, seed)
    task = Task(
        sphere(6, 8, generator=generator), gaussian_responses(6, 2, generator=generator), ratio
    )
    run, step_size, low, residual = followed(task, 256, slowness=0, pace=0.05, span=4)
    assert run.path_length <= 1.05 * residual[0] / low
    t = step_size * torch.arange(len(residual), dtype=torch.float64)
    assert bool((residual <= 1.0001 * torch.exp(-(low**2) * t) * residual[0]).all())


@pytest.mark.theorem("lem-ntk_width-path")
def test_path_bound_is_met_along_the_weakest_direction():
    """R_0 on the weakest eigenvector, a long run and a wide network: both bounds are equalities."""
    generator = make_generator(10)
    task = Task(
        sphere(6, 8, generator=generator), gaussian_responses(6, 2, generator=generator), 16.0, 64.0
    )
    run, step_size, low, residual = followed(task, 256, slowness=0.1, pace=0.05, span=6)
    bound = float(residual[0]) / low
    assert 0.98 * bound <= run.path_length <= 1.05 * bound
    rate = -log(residual[-1] / residual[0]) / (step_size * (len(residual) - 1))
    assert low**2 <= rate <= 1.03 * low**2


@pytest.mark.theorem("lem-ntk_width-path")
def test_path_bound_fails_for_a_singular_value_that_is_not_met():
    """With σ_min overstated by half the bound is violated: the assumption carries the weight."""
    generator = make_generator(10)
    task = Task(
        sphere(6, 8, generator=generator), gaussian_responses(6, 2, generator=generator), 16.0, 64.0
    )
    run, _, low, residual = followed(task, 256, slowness=0.1, pace=0.05, span=6)
    assert run.path_length > 1.05 * residual[0] / (1.5 * low)


# --- lem-ntk_width-flips ---------------------------------------------------------------------


@pytest.mark.theorem("lem-ntk_width-flips")
@quick
@given(SEEDS, st.integers(1, 60), st.floats(0.01, 20), st.floats(0.3, 3))
def test_flips_stay_below_the_bound(seed, width, budget, size):
    generator = make_generator(12, seed)
    X = size * sphere(4, 5, generator=generator)
    start = gaussian_init(width, 5, 1, alpha=1, beta=1, generator=generator)
    random = torch.randn(width, 5, generator=generator, dtype=X.dtype)
    ends = [start.W + budget * random / random.norm(), cheapest_flips(start, X[0], budget)]
    bound = flip_fraction_bound(start, X, budget)
    for W in ends:
        assert (W - start.W).norm() <= budget * (1 + 1e-9)
        found = flip_fractions(start, Params(W, start.V), X)
        assert bool((found <= bound + 1e-12).all())


@pytest.mark.theorem("lem-ntk_width-flips")
@quick
@given(SEEDS, st.integers(2, 200), st.floats(0.05, 10))
def test_flip_bound_is_within_three_of_what_can_be_done(seed, width, budget):
    generator = make_generator(13, seed)
    X = sphere(1, 5, generator=generator)
    start = gaussian_init(width, 5, 1, alpha=1, beta=1, generator=generator)
    W = cheapest_flips(start, X[0], budget)
    found = float(flip_fractions(start, Params(W, start.V), X)[0])
    spent = (X @ start.W.T).abs()[0].sort().values.square().cumsum(0)
    count = int((spent * (1 + 1e-6) < budget**2).sum())
    assert found == pytest.approx(count / width, abs=1e-12)
    bound = float(flip_fraction_bound(start, X, budget)[0])
    assert bound <= (2 * count + 1) / width + 1e-5
    assert found <= bound
    if count >= 1:
        assert bound <= 3.0001 * found


@pytest.mark.theorem("lem-ntk_width-flips")
@quick
@given(SEEDS, st.floats(0.02, 3))
def test_closed_form_is_the_infimum_over_the_split(seed, budget):
    generator = make_generator(14, seed)
    X = sphere(3, 5, generator=generator)
    start = gaussian_init(40, 5, 1, alpha=1, beta=1, generator=generator)
    margins = (X @ start.W.T).abs()
    bound = flip_fraction_bound(start, X, budget)
    # A fine grid of s together with the points just below each margin, where the infimum lies.
    grid = torch.logspace(-3, 2, 400, dtype=X.dtype)
    for i in range(3):
        s = torch.cat([grid, margins[i] * (1 - 1e-9), torch.tensor([1e9], dtype=X.dtype)])
        value = (margins[i] <= s[:, None]).double().mean(1) + budget**2 / (40 * s**2)
        assert float(value.min()) == pytest.approx(float(bound[i]), rel=1e-6)


@pytest.mark.theorem("lem-ntk_width-flips")
@pytest.mark.parametrize("relative", [0.02, 0.1, 0.3])
def test_flip_bound_of_gaussian_weights(relative):
    """τ = relative·α√m: the two-thirds law, within the uniform fluctuation, and close to it."""
    width, alpha, samples, delta = 20000, 0.3, 8, 1e-3
    generator = make_generator(15)
    X = sphere(samples, 6, generator=generator)
    start = gaussian_init(width, 6, 1, alpha=alpha, beta=1, generator=generator)
    budget = relative * alpha * sqrt(width)
    law = typical_flip_fraction(budget, alpha=alpha, width=width)
    found = flip_fraction_bound(start, X, budget)
    assert float(found.max()) <= law + sqrt(log(2 * samples / delta) / (2 * width))
    assert law == pytest.approx(1.626 * relative ** (2 / 3), rel=1e-3)
    if relative < 0.1:
        assert float(found.mean()) >= 0.95 * law


@pytest.mark.theorem("lem-ntk_width-flips")
@pytest.mark.parametrize("size", [0.01, 5.0])
def test_gaussian_law_of_flips_does_not_know_the_norm_of_the_input(size):
    """The right side of part 3 stays for inputs that are not of unit norm, and must stay."""
    width, delta = 20000, 1e-3
    generator = make_generator(27)
    x = size * sphere(1, 6, generator=generator)
    start = gaussian_init(width, 6, 1, alpha=0.3, beta=1, generator=generator)
    budget = 0.1 * 0.3 * sqrt(width)
    slack = sqrt(log(2 / delta) / (2 * width))
    found = float(flip_fraction_bound(start, x, budget)[0])
    assert found <= typical_flip_fraction(budget, alpha=0.3, width=width) + slack
    if size < 1:
        assert found > typical_flip_fraction(size * budget, alpha=0.3, width=width) + slack


@pytest.mark.theorem("lem-ntk_width-flips")
def test_flip_bound_fails_for_more_displacement_or_longer_inputs():
    generator = make_generator(16)
    X = sphere(1, 5, generator=generator)
    start = gaussian_init(50, 5, 1, alpha=1, beta=1, generator=generator)
    found = flip_fractions(start, Params(cheapest_flips(start, X[0], 4.0), start.V), X)
    assert found > flip_fraction_bound(start, X, 0.5)
    # A three times longer input acts like three times the displacement.
    assert torch.allclose(
        flip_fraction_bound(start, 3 * X, 0.5),
        flip_fraction_bound(Params(3 * start.W, start.V), X, 1.5),
    )


# --- prop-ntk_width-drift --------------------------------------------------------------------


@pytest.mark.theorem("prop-ntk_width-drift")
@settings(deadline=None, max_examples=15)
@given(SEEDS, st.floats(0.01, 2), st.floats(0.01, 2))
def test_jacobian_changes_stay_below_their_bounds(jacobians, seed, step_W, step_V):
    generator = make_generator(17, seed)
    X = sphere(4, 3, generator=generator)
    start = gaussian_init(9, 3, 2, alpha=0.6, beta=1.4, generator=generator)
    noise = gaussian_init(9, 3, 2, alpha=step_W, beta=step_V, generator=generator)
    end = Params(start.W + noise.W, start.V + noise.V)
    (W_0, V_0), (W_1, V_1) = jacobians(start, X), jacobians(end, X)
    change = jacobian_change(start, end, X)
    assert change.conjugate == pytest.approx(norm(V_1 - V_0), rel=1e-9)
    assert change.hidden == pytest.approx(float((W_1 - W_0).norm()), rel=1e-9)
    flipped = ((X @ start.W.T > 0) != (X @ end.W.T > 0)).double().sum(0)
    weights = float(flipped @ start.V.square().sum(0))
    allowed = 2 / 9 * (4 * float(noise.V.square().sum()) + weights)
    assert change.conjugate <= norm(X) * float(noise.W.norm()) / 3 * (1 + 1e-12)
    assert change.hidden**2 <= allowed * (1 + 1e-12)
    assert change.conjugate_bound == pytest.approx(norm(X) * float(noise.W.norm()) / 3)
    assert change.hidden_bound**2 == pytest.approx(allowed)
    radius = float(torch.cat([noise.W.flatten(), noise.V.flatten()]).norm())
    whole = norm(torch.cat([W_1 - W_0, V_1 - V_0], dim=1))
    assert whole <= jacobian_change_bound(start, X, radius)


@pytest.mark.theorem("prop-ntk_width-drift")
def test_jacobian_bounds_are_met():
    """One input, all neurons active and moved along it: (a) is an equality. All neurons switched
    on with Δv_r = v_r: (b) is one."""
    x = torch.tensor([[0.6, 0.8]], dtype=torch.float64)
    V = torch.tensor([[1.0, -2.0, 0.5]], dtype=torch.float64)
    on = Params(torch.ones(3, 1, dtype=torch.float64) * x, V)
    further = Params(1.7 * on.W, V)
    change = jacobian_change(on, further, x)
    assert change.conjugate == pytest.approx(change.conjugate_bound)
    off, doubled = Params(-on.W, V), Params(on.W, 2 * V)
    change = jacobian_change(off, doubled, x)
    assert change.hidden == pytest.approx(change.hidden_bound)


@pytest.mark.theorem("prop-ntk_width-drift")
def test_drift_of_output_weights_and_conjugate_kernel_falls_with_the_ratio():
    ratios = [1.0, 4.0, 16.0, 32.0]
    generator = make_generator(18)
    X = sphere(12, 12, generator=generator)
    Y = gaussian_responses(12, 3, generator=generator)
    parts = []
    for ratio in ratios:
        task = Task(X, Y, ratio)
        start = task.start(512, 0)
        run = train(start, X, Y, step_size=task.spectrum.step_size(), steps=4000, tol=1e-5)
        assert run.loss[-1] <= 1e-5 * run.loss[0]
        drift = kernel_drift(start, run.params, X)
        unit = task.spectrum.smallest
        parts.append((drift.output_weights / unit, drift.conjugate / unit, drift.flips / unit))
    output, conjugate, flips = zip(*parts, strict=True)
    assert loglog_slope(ratios, output) <= -1.2
    assert loglog_slope(ratios, conjugate) <= -1.2
    # The flip part depends on αβ only: it does not fall.
    assert loglog_slope(ratios[1:], flips[1:]) > -0.3


@pytest.mark.theorem("prop-ntk_width-drift")
def test_layers_move_no_further_than_the_flow_allows():
    """Under the hypotheses of thm-ntk_width-converge with Λ_0 = 4/3 λ_min(K(0))."""
    start, X, Y, level = lazy_instance(seed=19, output_scale=3000.0, size=0.5)
    run, radius, residual = lazy_run(start, X, Y, level)
    # The mean of both ends, which is no more than the largest norm met.
    conjugate = sum(norm(empirical_ntk(p, X)[1]) for p in (start, run.params)) / 2
    assert float((run.params.W - start.W).norm()) <= radius
    assert float((run.params.V - start.V).norm()) <= 3 * sqrt(1.01 * conjugate) * residual / level


# --- thm-ntk_width-converge ------------------------------------------------------------------


def lazy_instance(seed: int, output_scale: float, size: float, width: int = 256):
    """A plain Gaussian start whose responses are its outputs plus a perturbation of given size.

    Λ_0 is as large as the first hypothesis allows: λ_min(K(0)) = 3/4 Λ_0.
    """
    generator = make_generator(20, seed)
    X = sphere(4, 8, generator=generator)
    alpha, beta = scales(4.0, output_scale)
    start = gaussian_init(width, 8, 2, alpha=alpha, beta=beta, generator=generator)
    noise = gaussian_responses(4, 2, generator=generator)
    Y = forward(start, X) + size * noise / noise.norm()
    level = 4 / 3 * smallest(sum(empirical_ntk(start, X)))
    return start, X, Y, level


def lazy_run(start: Params, X: Tensor, Y: Tensor, level: float, pace: float = 0.02):
    """Near-continuous descent over the time 12/Λ_0; also the radius and ‖R_0‖."""
    largest = float(torch.linalg.eigvalsh(sum(empirical_ntk(start, X)))[-1])
    step_size = pace / largest
    run = train(start, X, Y, step_size=step_size, steps=ceil(12 / (step_size * level)))
    residual = float((forward(start, X) - Y).norm())
    return run, 1.65 * residual / sqrt(level), residual


def envelope_margin(run, step_size: float, rate: float) -> float:
    """max_t of ‖R_t‖/(e^{-rate·t}‖R_0‖)."""
    t = step_size * torch.arange(len(run.loss), dtype=torch.float64)
    return float(((run.loss / run.loss[0]).sqrt() * torch.exp(rate * t)).max())


@pytest.mark.theorem("thm-ntk_width-converge")
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_convergence_in_the_ball(seed):
    start, X, Y, level = lazy_instance(seed, output_scale=3000.0, size=0.5)
    run, radius, _ = lazy_run(start, X, Y, level)
    # The hypothesis, for every point of the ball: a bound, not a sample.
    assert jacobian_change_bound(start, X, radius) <= sqrt(level) / 4
    largest = float(torch.linalg.eigvalsh(sum(empirical_ntk(start, X)))[-1])
    assert envelope_margin(run, 0.02 / largest, level / 3) <= 1 + 1e-9
    assert run.path_length <= radius


@pytest.mark.theorem("thm-ntk_width-converge")
def test_convergence_constants():
    """0.61 < √(3/4) - 1/4, 0.61² > 1/3 and 1/0.61 < 1.65: none has much room."""
    assert 0.61 <= sqrt(3 / 4) - 1 / 4 <= 0.62
    assert 1 / 3 <= 0.61**2
    assert 1 / 0.61 < 1.65
    assert (RADIUS, RATE) == (1.65, 1 / 3)


@pytest.mark.theorem("thm-ntk_width-converge")
def test_convergence_is_nearly_as_slow_as_the_theorem_allows():
    """On the weakest eigenvector the rate is 3/4 Λ_0 here, the path 1/√(3/4) of ‖R_0‖/√Λ_0: the
    constants 1/3 and 1.65 pay for the allowed change of the Jacobian and not more than twice."""
    start, X, _, level = lazy_instance(0, output_scale=3000.0, size=0.5)
    vectors = torch.linalg.eigh(sum(empirical_ntk(start, X)))[1]
    Y = forward(start, X) - 0.5 * vectors[:, 0].reshape(4, 2)
    run, radius, _ = lazy_run(start, X, Y, level)
    largest = float(torch.linalg.eigvalsh(sum(empirical_ntk(start, X)))[-1])
    assert envelope_margin(run, 0.02 / largest, 0.74 * level) <= 1.001
    assert envelope_margin(run, 0.02 / largest, 0.80 * level) > 1.5
    assert 0.65 * radius <= run.path_length <= radius


@pytest.mark.theorem("thm-ntk_width-converge")
def test_convergence_fails_where_the_jacobian_may_change():
    """Λ_0 fits the start as before, but a narrow network leaves its linear regime in the ball."""
    start, X, Y, level = lazy_instance(2, output_scale=1.0, size=1.0, width=12)
    run, radius, _ = lazy_run(start, X, Y, level)
    largest = float(torch.linalg.eigvalsh(sum(empirical_ntk(start, X)))[-1])
    assert jacobian_change_bound(start, X, radius) > sqrt(level) / 4
    assert envelope_margin(run, 0.02 / largest, level / 3) > 2


# --- cor-ntk_width-zero-output ---------------------------------------------------------------


@pytest.mark.theorem("cor-ntk_width-zero-output")
@pytest.mark.parametrize("seed", range(6))
def test_zero_output_start_never_flips(seed):
    generator = make_generator(21, seed)
    X = sphere(4, 8, generator=generator)
    Y = gaussian_responses(4, 2, generator=generator)
    scale = zero_output_scale(X, Y, width=400, ratio=4.0, delta=0.2)
    task = Task(X, Y, 4.0, scale, zero_output=True)
    level = task.scales[1] ** 2 * smallest(task.kernels[0])
    start = task.start(400, seed)
    assert norm(forward(start, X)) <= 1e-9 * scale
    assert smallest(sum(empirical_ntk(start, X))) >= 0.75 * level
    run, radius, _ = lazy_run(start, X, Y, level)
    assert float(flip_fractions(start, run.params, X).max()) == 0
    largest = float(torch.linalg.eigvalsh(sum(empirical_ntk(start, X)))[-1])
    assert envelope_margin(run, 0.02 / largest, level / 3) <= 1 + 1e-6
    assert 0.2 * radius <= run.path_length <= radius
    assert jacobian_change_bound(start, X, radius) <= sqrt(level) / 4


@pytest.mark.theorem("cor-ntk_width-zero-output")
def test_zero_output_scale_is_what_the_proof_needs():
    """At s* one of the two requirements of the proof is met with equality, up to its rounding."""
    generator = make_generator(22)
    X = sphere(4, 8, generator=generator)
    Y = gaussian_responses(4, 2, generator=generator)
    for width, ratio, delta in ((400, 4.0, 0.2), (8, 1e-4, 0.9)):
        scale = zero_output_scale(X, Y, width=width, ratio=ratio, delta=delta)
        alpha, beta = scales(ratio, scale)
        low = smallest(arc_cosine_kernels(X)[0])
        radius = 1.65 * float(Y.norm()) / (beta * sqrt(low))
        flip_probability = width / 2 * 4 * sqrt(2 / np.pi) * radius / alpha / delta
        change = 2 * sqrt(4 / width) * radius / (beta * sqrt(low) / 4)
        assert 0.99 <= max(flip_probability, change) <= 1 + 1e-9


@pytest.mark.theorem("cor-ntk_width-zero-output")
def test_zero_output_start_flips_far_below_the_scale():
    """A narrow network at a small scale: the hypothesis fails, and so does the conclusion."""
    generator = make_generator(23)
    X = sphere(4, 8, generator=generator)
    Y = gaussian_responses(4, 2, generator=generator)
    task = Task(X, Y, 4.0, 0.05, zero_output=True)
    level = task.scales[1] ** 2 * smallest(task.kernels[0])
    start = task.start(4, 0)
    assert smallest(sum(empirical_ntk(start, X))) < 0.75 * level
    run, _, _ = lazy_run(start, X, Y, level)
    largest = float(torch.linalg.eigvalsh(sum(empirical_ntk(start, X)))[-1])
    assert float(flip_fractions(start, run.params, X).max()) > 0
    assert envelope_margin(run, 0.02 / largest, level / 3) > 1.5


# --- thm-ntk_width-nag -----------------------------------------------------------------------


def spectrum_between(kappa: float, count: int, seed: int) -> np.ndarray:
    """Eigenvalues in [1/κ, 1] that contain both ends."""
    inner = np.random.default_rng(seed).uniform(1 / kappa, 1, count)
    return np.concatenate([[1 / kappa], inner, [1.0]])


def companion_radius(values: np.ndarray, step_size: float, momentum: float) -> float:
    shrink = 1 - step_size * values
    blocks = np.zeros((len(values), 2, 2))
    blocks[:, 0, 0] = (1 + momentum) * shrink
    blocks[:, 0, 1] = -momentum * shrink
    blocks[:, 1, 0] = 1
    return float(np.abs(np.linalg.eigvals(blocks)).max())


@pytest.mark.theorem("thm-ntk_width-nag")
@quick
@given(st.floats(1.01, 1e4), st.floats(0.05, 1), SEEDS)
def test_linearised_rates(kappa, pace, seed):
    """η = pace/λ_max, so that 1/(ηλ_min) = κ/pace."""
    values = spectrum_between(kappa, 20, seed)
    slow = kappa / pace
    momentum = nesterov_momentum(slow)
    assert companion_radius(values, pace, 0.0) == pytest.approx(1 - 1 / slow, abs=1e-12)
    # The root at λ_min is double: a numerical eigenvalue is accurate to √eps only.
    assert companion_radius(values, pace, momentum) == pytest.approx(1 - 1 / sqrt(slow), abs=1e-6)
    assert 4 * momentum / (1 + momentum) ** 2 == pytest.approx(1 - 1 / slow, abs=1e-12)


@pytest.mark.theorem("thm-ntk_width-nag")
@settings(deadline=None, max_examples=15)
@given(st.floats(1.01, 500), SEEDS)
def test_linearised_residuals_stay_below_the_envelopes(kappa, seed):
    values = torch.tensor(spectrum_between(kappa, 6, seed))
    R0 = torch.randn(8, 3, generator=make_generator(seed), dtype=torch.float64)
    momentum = nesterov_momentum(kappa)
    steps = 120
    for mu, envelope in ((0.0, gd_envelope(kappa, steps)), (momentum, nag_envelope(kappa, steps))):
        loss = linearised_loss(torch.diag(values), R0, step_size=1.0, steps=steps, momentum=mu)
        norms = (2 * loss).sqrt()
        assert bool((norms <= envelope * norms[0] * (1 + 1e-9) + 1e-14).all())


@pytest.mark.theorem("thm-ntk_width-nag")
def test_envelopes_are_met_on_the_weakest_eigenvector():
    kappa, steps = 40.0, 200
    kernel = torch.diag(torch.tensor([1 / kappa, 0.3, 1.0], dtype=torch.float64))
    R0 = torch.tensor([[1.0], [0.0], [0.0]], dtype=torch.float64)
    momentum = nesterov_momentum(kappa)
    for mu, envelope in ((0.0, gd_envelope(kappa, steps)), (momentum, nag_envelope(kappa, steps))):
        loss = linearised_loss(kernel, R0, step_size=1.0, steps=steps, momentum=mu)
        assert torch.allclose((2 * loss).sqrt(), envelope, rtol=1e-4, atol=1e-12)


@pytest.mark.theorem("thm-ntk_width-nag")
def test_nesterov_diverges_for_a_step_size_past_the_assumption():
    values = spectrum_between(40.0, 5, 0)
    assert companion_radius(values, 1.5, nesterov_momentum(40 / 1.5)) > 1


# --- thm-ntk_width-subspace ------------------------------------------------------------------


def low_rank_task(seed: int, sketched: bool) -> Task:
    generator = make_generator(24, seed)
    X = sphere(7, 5, generator=generator)
    Y = low_rank_responses(7, 6, 2, condition=3.0, generator=generator)
    return Task(X, Y, 4.0, sketched=sketched)


def off_subspace(task: Task, rows: Tensor) -> float:
    """Part of ``rows`` (k, n) that leaves the responses' space, relative to ``rows``."""
    inside = rows @ task.basis @ task.basis.T
    return float((rows - inside).norm() / rows.norm())


@pytest.mark.theorem("thm-ntk_width-subspace")
@settings(deadline=None, max_examples=10)
@given(SEEDS, st.sampled_from([("gd", None), ("nag", 0.7)]), st.floats(0.002, 0.05))
def test_training_stays_in_the_response_space(seed, method, step_size):
    task = low_rank_task(seed, sketched=True)
    start = task.start(24, seed)
    assert task.basis.shape == (6, 2)
    common = {"step_size": step_size, "steps": 60, "method": method[0], "momentum": method[1]}
    whole = train(start, task.X, task.Y, **common)
    reduced = train(task.on_subspace(start), task.X, task.Y @ task.basis, **common)
    assert torch.allclose(whole.params.W, reduced.params.W, atol=1e-9, rtol=0)
    assert torch.allclose(whole.params.V, task.basis @ reduced.params.V, atol=1e-9, rtol=0)
    assert torch.allclose(whole.loss, reduced.loss, atol=1e-9, rtol=1e-9)
    residual = forward(whole.params, task.X) - task.Y
    assert off_subspace(task, residual) < 1e-12
    assert whole.path_length > 0.01


@pytest.mark.theorem("thm-ntk_width-subspace")
def test_training_leaves_the_response_space_from_a_plain_start():
    task = low_rank_task(0, sketched=False)
    start = task.start(24, 0)
    run = train(start, task.X, task.Y, step_size=0.02, steps=60)
    reduced = train(task.on_subspace(start), task.X, task.Y @ task.basis, step_size=0.02, steps=60)
    assert off_subspace(task, forward(run.params, task.X) - task.Y) > 0.1
    assert float((run.params.W - reduced.params.W).norm()) > 1e-3


# --- prop-ntk_width-sketch -------------------------------------------------------------------


def sketch_parts(seed: int, width: int, condition: float):
    """Sketched start in the responses' coordinates: task, weights (W, U^T V), D and G."""
    generator = make_generator(25, seed)
    X = sphere(5, 6, generator=generator)
    Y = low_rank_responses(5, 7, 3, condition=condition, generator=generator)
    task = Task(X, Y, 4.0, sketched=True)
    start = sketched_init(
        width, 6, Y, alpha=task.scales[0], beta=task.scales[1], generator=make_generator(26, seed)
    )
    inside = task.on_subspace(start)
    singular = torch.linalg.svdvals(Y)[:3]
    D = torch.diag(singular / singular[0])
    return task, inside, D, torch.linalg.inv(D) @ inside.V


@pytest.mark.theorem("prop-ntk_width-sketch")
def test_sketched_weights_are_gaussian_with_the_spectrum_of_the_responses():
    task, _, _, G = sketch_parts(0, 20000, 4.0)
    beta = task.scales[1]
    for row in G:
        assert stats.kstest((row / beta).numpy(), "norm").pvalue > 1e-3
    correlation = G @ G.T / (beta**2 * G.shape[1])
    assert torch.allclose(correlation, torch.eye(3, dtype=G.dtype), atol=0.04)


@pytest.mark.theorem("prop-ntk_width-sketch")
def test_mean_kernel_of_a_sketched_start():
    task, _, D, _ = sketch_parts(1, 2, 3.0)
    H = task.kernels[0]
    mean = sum(
        empirical_ntk(task.on_subspace(task.start(4000, seed)), task.X)[0] for seed in range(10)
    )
    expected = task.scales[1] ** 2 * torch.kron(H, D @ D)
    assert norm(mean / 10 - expected) <= 0.03 * norm(expected)
    low = task.scales[1] ** 2 * smallest(H) / task.response_condition**2
    assert smallest(expected) == pytest.approx(low, rel=1e-9)
    assert task.response_condition == pytest.approx(3.0)


@pytest.mark.theorem("prop-ntk_width-sketch")
@quick
@given(SEEDS, st.integers(20, 80), st.floats(1, 10))
def test_congruence_with_the_isotropic_kernel(seed, width, condition):
    task, inside, D, G = sketch_parts(seed, width, condition)
    hidden = empirical_ntk(inside, task.X)[0]
    isotropic = empirical_ntk(Params(inside.W, G), task.X)[0]
    frame = torch.kron(torch.eye(5, dtype=D.dtype), D)
    assert torch.allclose(hidden, frame @ isotropic @ frame, atol=1e-10 * norm(hidden), rtol=0)
    assert smallest(hidden) >= smallest(isotropic) / condition**2 - 1e-10 * norm(hidden)
    if condition == 1:
        assert smallest(hidden) == pytest.approx(smallest(isotropic), rel=1e-6)


@pytest.mark.theorem("prop-ntk_width-sketch")
def test_width_for_the_rank_serves_a_sketched_start():
    task, _, _, _ = sketch_parts(2, 2, 4.0)
    low = task.scales[1] ** 2 * smallest(task.kernels[0]) / task.response_condition**2
    width = init_width(task.X, 3, delta=0.1)
    for seed in range(2):
        hidden = empirical_ntk(task.on_subspace(task.start(width, seed)), task.X)[0]
        assert smallest(hidden) >= 0.75 * low
    narrow = empirical_ntk(task.on_subspace(task.start(4, 0)), task.X)[0]
    assert smallest(narrow) < 0.75 * low


@pytest.mark.theorem("prop-ntk_width-sketch")
def test_no_kernel_at_all_outside_the_response_space():
    """In all n coordinates the sketched kernel is singular: the restriction is what saves it."""
    task = low_rank_task(3, sketched=True)
    hidden = empirical_ntk(task.start(400, 0), task.X)[0]
    assert smallest(hidden) < 1e-9 * norm(hidden)

"""Executable checks of the theorems of chapter ccvfm, in float64."""

import math

import numpy as np
import ot
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.linalg import sqrtm

from paperbook import ccvfm
from paperbook.ccvfm.training import _drawer

SEEDS = st.integers(0, 10_000)
FEW = settings(deadline=None, max_examples=20)
# Sampling error has tails: a statistical check uses the same examples in every run.
FIXED = settings(deadline=None, max_examples=12, derandomize=True)
DOUBLE = torch.float64


@pytest.fixture(autouse=True)
def double_precision():
    """Samplers draw noise in the default dtype; theorem checks need float64."""
    torch.set_default_dtype(DOUBLE)
    yield
    torch.set_default_dtype(torch.float32)


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def normal(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, generator=generator(seed), dtype=DOUBLE)


def random_mixture(seed: int, components: int, dim: int) -> ccvfm.GaussianMixture:
    g = generator(seed)
    weights = 0.2 + torch.rand(components, generator=g, dtype=DOUBLE)
    means = 2 * torch.randn(components, dim, generator=g, dtype=DOUBLE)
    variances = 0.05 + torch.rand(components, dim, generator=g, dtype=DOUBLE)
    return ccvfm.GaussianMixture(weights / weights.sum(), means, variances)


def within_standard_errors(
    samples: torch.Tensor, expected: torch.Tensor, errors: float = 4
) -> bool:
    """Whether the column means of ``samples`` (n, p) are ``expected`` (p,) up to sampling error."""
    deviation = (samples.mean(0) - expected).abs()
    return bool((deviation <= errors * samples.std(0) / math.sqrt(len(samples))).all())


# --- prop-ccvfm-em -----------------------------------------------------------------------------


@pytest.mark.theorem("prop-ccvfm-em")
@pytest.mark.parametrize("marginal", ["free", "uniform"])
@FEW
@given(seed=SEEDS, atoms=st.integers(1, 6), scale=st.floats(0.05, 4))
def test_em_objective_never_increases(marginal, seed, atoms, scale):
    X = normal(40, 2, seed=seed) ** 3
    coreset = ccvfm.entropic_coreset(
        X, atoms, epsilon=scale, iterations=12, marginal=marginal, seed=seed
    )
    steps = np.diff(coreset.objective)
    assert (steps <= 1e-9 * max(1.0, abs(coreset.objective[0]))).all()


@pytest.mark.theorem("prop-ccvfm-em")
@FEW
@given(seed=SEEDS, epsilon=st.floats(0.05, 5))
def test_em_value_is_a_mixture_likelihood(seed, epsilon):
    """The inner minimum, the objective at the soft plan and the likelihood agree."""
    X, atoms = normal(30, 3, seed=seed), normal(4, 3, seed=seed + 1)
    weights = torch.full((4,), 0.25, dtype=DOUBLE)
    value = ccvfm.entropic_coreset(
        X, 4, epsilon=epsilon, iterations=1, initial_atoms=atoms
    ).objective[0]
    cost = torch.cdist(X, atoms).square()
    plan = torch.softmax(weights.log() - cost / epsilon, 1) / 30
    assert value == pytest.approx(
        ccvfm.transport_objective(cost, plan, weights, epsilon), rel=1e-9, abs=1e-9
    )
    mixture = ccvfm.GaussianMixture(weights, atoms, torch.full_like(atoms, epsilon / 2))
    constant = 1.5 * math.log(math.pi * epsilon)
    likelihood = mixture.log_prob(X).mean().item() + constant
    assert value == pytest.approx(-epsilon * likelihood, rel=1e-9, abs=1e-9)


@pytest.mark.theorem("prop-ccvfm-em")
@FEW
@given(seed=SEEDS, size=st.sampled_from([1e-4, 0.1, 2.0]))
def test_em_each_step_is_a_minimum(seed, size):
    """No other plan with these rows, no other weights and no other atoms do better."""
    X, atoms, g = normal(20, 2, seed=seed), normal(3, 2, seed=seed + 1), generator(seed)
    weights, epsilon = torch.tensor([0.2, 0.3, 0.5], dtype=DOUBLE), 0.7
    cost = torch.cdist(X, atoms).square()
    logits = weights.log() - cost / epsilon

    def value(cost, plan, weights):
        return ccvfm.transport_objective(cost, plan, weights, epsilon)

    plan = torch.softmax(logits, 1) / 20
    other = torch.softmax(logits + size * torch.randn(20, 3, generator=g, dtype=DOUBLE), 1) / 20
    assert value(cost, other, weights) >= value(cost, plan, weights) - 1e-12
    # The value of the weights is a divergence: column sums are the minimum, with equality.
    mass = plan.sum(0)
    divergence = (mass * (mass / weights).log()).sum().item()
    gain = value(cost, plan, weights) - value(cost, plan, mass)
    assert gain == pytest.approx(epsilon * divergence, abs=1e-10)
    centres = plan.T @ X / mass[:, None]
    moved = centres + size * torch.randn(3, 2, generator=g, dtype=DOUBLE)
    best = value(torch.cdist(X, centres).square(), plan, mass)
    assert value(torch.cdist(X, moved).square(), plan, mass) >= best - 1e-12


@pytest.mark.theorem("prop-ccvfm-em")
def test_em_with_optimal_weights_balances_itself():
    """At its own column sums the soft plan *is* the balanced plan; at other weights it is not."""
    X = normal(60, 2, seed=5)
    coreset = ccvfm.entropic_coreset(X, 4, epsilon=1.5, iterations=3000)
    cost = torch.cdist(X, coreset.atoms).square()
    rows = torch.full((60,), 1 / 60, dtype=DOUBLE)
    balanced = ot.sinkhorn(rows, coreset.weights, cost, 1.5, stopThr=1e-14, numItermax=20_000)
    assert torch.allclose(balanced, coreset.plan, atol=1e-8)

    uniform = torch.full((4,), 0.25, dtype=DOUBLE)
    soft = torch.softmax(uniform.log() - cost / 1.5, 1) / 60
    balanced = ot.sinkhorn(rows, uniform, cost, 1.5, stopThr=1e-14, numItermax=20_000)
    free_value = ccvfm.transport_objective(cost, soft, uniform, 1.5)
    assert ccvfm.transport_objective(cost, balanced, uniform, 1.5) > free_value + 1e-4


@pytest.mark.theorem("prop-ccvfm-em")
def test_em_uniform_branch_keeps_its_marginal():
    coreset = ccvfm.entropic_coreset(normal(50, 3, seed=2), 5, marginal="uniform")
    assert (coreset.plan.sum(0) - 0.2).abs().max() < 1e-6


# --- prop-ccvfm-collapse -----------------------------------------------------------------------


def top_variance(X: torch.Tensor) -> float:
    return torch.linalg.eigvalsh(torch.cov(X.T, correction=0).reshape(X.shape[1], -1))[-1].item()


def spread(atoms: torch.Tensor) -> float:
    return (atoms - atoms.mean(0)).norm(dim=1).max().item()


def near_collapse(X: torch.Tensor, atoms: int, size: float, seed: int) -> torch.Tensor:
    return X.mean(0) + size * normal(atoms, X.shape[1], seed=seed)


@pytest.mark.theorem("prop-ccvfm-collapse")
@FEW
@given(seed=SEEDS, atoms=st.integers(2, 5), ratio=st.floats(0.5, 4))
def test_collapse_is_a_fixed_point_with_this_linearisation(seed, atoms, ratio):
    X = normal(50, 3, seed=seed) ** 3
    epsilon = ratio * top_variance(X)
    mean = X.mean(0).expand(atoms, 3)

    def iterate(start):  # one iteration and the closing update: the map applied twice
        return ccvfm.entropic_coreset(
            X, atoms, epsilon=epsilon, iterations=1, initial_atoms=start.contiguous()
        ).atoms

    scale = X.std().item()
    assert torch.allclose(iterate(mean), mean, atol=1e-12 * scale)
    delta = 1e-5 * scale * normal(atoms, 3, seed=seed + 1)
    jacobian = 2 / epsilon * torch.cov(X.T, correction=0)
    linear = (delta - delta.mean(0)) @ jacobian @ jacobian
    error = (iterate(mean + delta) - mean - linear).norm()
    assert error < 1e-2 * (delta.norm() + linear.norm())


@pytest.mark.theorem("prop-ccvfm-collapse")
@settings(deadline=None, max_examples=6)
@given(seed=SEEDS, atoms=st.integers(2, 4), power=st.sampled_from([1, 3]))
def test_collapse_attracts_above_and_repels_below_the_critical_entropy(seed, atoms, power):
    X = normal(80, 2, seed=seed) ** power
    start = near_collapse(X, atoms, 1e-5 * X.std().item(), seed + 1)
    critical = 2 * top_variance(X)
    above = ccvfm.entropic_coreset(
        X, atoms, epsilon=1.1 * critical, iterations=250, initial_atoms=start
    )
    below = ccvfm.entropic_coreset(
        X, atoms, epsilon=0.9 * critical, iterations=250, initial_atoms=start
    )
    assert spread(above.atoms) < 1e-3 * spread(start)
    assert spread(below.atoms) > 1e2 * spread(start)
    # Along the unstable direction the objective is lower than at the collapse.
    collapsed = (X - X.mean(0)).square().sum(1).mean().item()
    assert below.objective[-1] < collapsed


@pytest.mark.theorem("prop-ccvfm-collapse")
def test_collapse_of_light_tailed_data_from_any_start():
    X = normal(300, 2, seed=1)
    critical = 2 * top_variance(X)
    kept = ccvfm.entropic_coreset(X, 4, epsilon=0.9 * critical, iterations=3000)
    lost = ccvfm.entropic_coreset(X, 4, epsilon=1.1 * critical, iterations=3000)
    assert spread(kept.atoms) > 0.1
    assert spread(lost.atoms) < 1e-10


@pytest.mark.theorem("prop-ccvfm-collapse")
def test_collapse_is_only_local():
    """A far minority keeps two atoms apart at twice the critical entropy, at a lower objective."""
    X = 0.1 * normal(1000, 1, seed=3) + normal(1000, 1, seed=4)
    X[:10] += 12
    epsilon = 4 * top_variance(X)
    apart = torch.tensor([[0.0], [12.0]], dtype=DOUBLE)
    far = ccvfm.entropic_coreset(X, 2, epsilon=epsilon, iterations=300, initial_atoms=apart)
    near = ccvfm.entropic_coreset(
        X, 2, epsilon=epsilon, iterations=300, initial_atoms=near_collapse(X, 2, 1e-2, 0)
    )
    assert spread(near.atoms) < 1e-6
    assert spread(far.atoms) > 1
    assert far.objective[-1] < near.objective[-1] - 0.1


# --- prop-ccvfm-moments ------------------------------------------------------------------------


@pytest.mark.theorem("prop-ccvfm-moments")
@pytest.mark.parametrize("marginal", ["free", "uniform"])
@FEW
@given(seed=SEEDS, atoms=st.integers(1, 8), scale=st.floats(0.05, 20), offset=st.floats(-50, 50))
def test_lift_restores_mean_and_variances(marginal, seed, atoms, scale, offset):
    X = normal(40, 3, seed=seed) + offset
    coreset = ccvfm.entropic_coreset(X, atoms, epsilon=scale, iterations=4, marginal=marginal)
    for covariance in ("diagonal", "tied"):
        mixture = ccvfm.lift(X, coreset, covariance=covariance, floor=1e-14)
        assert torch.allclose(mixture.mean(), X.mean(0), rtol=0, atol=1e-10)
        assert torch.allclose(mixture.variance(), X.var(0, correction=0), rtol=0, atol=1e-10)
    round_cells = ccvfm.lift(X, coreset, covariance="isotropic", floor=1e-14)
    total = X.var(0, correction=0).sum()
    assert torch.allclose(round_cells.variance().sum(), total, rtol=0, atol=1e-10)


@pytest.mark.theorem("prop-ccvfm-moments")
@FEW
@given(seed=SEEDS, atoms=st.integers(1, 8), scale=st.floats(0.05, 20))
def test_full_cell_covariances_restore_the_covariance(seed, atoms, scale):
    X = normal(40, 3, seed=seed) @ normal(3, 3, seed=seed + 1)
    coreset = ccvfm.entropic_coreset(X, atoms, epsilon=scale, iterations=4)
    offsets = X[:, None] - coreset.atoms
    within = torch.einsum("ik,ikd,ike->de", coreset.plan, offsets, offsets)
    between = torch.einsum("k,kd,ke->de", coreset.weights, coreset.atoms, coreset.atoms)
    mean = X.mean(0)
    total = within + between - mean.outer(mean)
    assert torch.allclose(total, torch.cov(X.T, correction=0), rtol=0, atol=1e-10)


@pytest.mark.theorem("prop-ccvfm-moments")
def test_moments_need_a_plan_that_fits_its_atoms():
    """With atoms that are not the plan's barycentres the mean is wrong."""
    X = normal(40, 3, seed=0)
    good = ccvfm.entropic_coreset(X, 4, iterations=3)
    stale = ccvfm.Coreset(good.weights, good.atoms + 0.1, good.plan, good.objective, good.epsilon)
    assert (ccvfm.lift(X, stale).mean() - X.mean(0)).abs().min() > 0.05


# --- thm-ccvfm-law -----------------------------------------------------------------------------


def velocity_on_grid(mixture: ccvfm.GaussianMixture, x: float, t: float, correlation: float = 0.0):
    """Density of V given x_t = x in one dimension, from the joint density of (x_0, x_1).

    The map from (x_0, x_1) to (x_t, V) has Jacobian 1, with x_1 = x + (1-t) V and x_0 = x - t V.
    """
    v = torch.linspace(-25, 25, 200_001, dtype=DOUBLE)
    x1, x0 = x + (1 - t) * v, x - t * v
    noise_scale = math.sqrt(1 - correlation**2)
    log_noise = -0.5 * ((x0 - correlation * x1) / noise_scale) ** 2
    density = (mixture.log_prob(x1[:, None]) + log_noise).exp()
    return v, density / torch.trapezoid(density, v)


def closed_moments(mixture: ccvfm.GaussianMixture, x: float, t: float) -> tuple[float, float]:
    law = ccvfm.ConditionalVelocity(mixture)
    point = torch.tensor([[x]], dtype=DOUBLE)
    return law.mean(point, t).item(), law.covariance_trace(point, t).item()


@pytest.mark.theorem("thm-ccvfm-law")
@FEW
@given(seed=SEEDS, x=st.floats(-2, 2), t=st.sampled_from([0.0, 0.3, 0.6, 0.9, 1.0]))
def test_law_equals_quadrature(seed, x, t):
    mixture = random_mixture(seed, 3, 1)
    v, density = velocity_on_grid(mixture, x, t)
    mean = torch.trapezoid(v * density, v).item()
    variance = torch.trapezoid((v - mean) ** 2 * density, v).item()
    assert closed_moments(mixture, x, t) == pytest.approx((mean, variance), abs=1e-5)

    law = ccvfm.ConditionalVelocity(mixture)
    r, means, variances = law.components(torch.tensor([[x]], dtype=DOUBLE), t)
    induced = ccvfm.GaussianMixture(r[0], means[0], variances[0])
    assert torch.allclose(induced.log_prob(v[:, None]).exp(), density, atol=1e-5)


@pytest.mark.theorem("thm-ccvfm-law")
@FIXED
@given(seed=SEEDS, t=st.floats(0, 1))
def test_law_forms_agree_and_average_to_the_mean_velocity(seed, t):
    """Matrix form = component form; averaged over x_t the mean velocity is the mean of x_1."""
    mixture = random_mixture(seed, 4, 3)
    law = ccvfm.ConditionalVelocity(mixture)
    g = generator(seed)
    x1 = mixture.sample(4000, generator=g)
    x = (1 - t) * torch.randn(4000, 3, generator=g, dtype=DOUBLE) + t * x1
    r, means, variances = law.components(x[:50], t)
    expected = (r[..., None] * means).sum(1)
    assert torch.allclose(law.mean(x[:50], t), expected, atol=1e-9)
    moment = (r[..., None] * (variances + means**2)).sum((1, 2))
    trace = moment - expected.square().sum(1)
    assert torch.allclose(law.covariance_trace(x[:50], t), trace, atol=1e-8)
    assert within_standard_errors(law.mean(x, t), mixture.mean(), errors=5)


@pytest.mark.theorem("thm-ccvfm-law")
@pytest.mark.parametrize("t", [0.0, 0.5, 1.0])
def test_law_is_what_the_sampler_draws(t):
    mixture = random_mixture(3, 3, 2)
    law = ccvfm.ConditionalVelocity(mixture)
    x = torch.tensor([[0.3, -0.8]], dtype=DOUBLE)
    r, means, variances = (part[0] for part in law.components(x, t))
    draws = law.sample(x.expand(40_000, 2), t, generator=generator(1))
    assert torch.isfinite(draws).all()
    mean = r @ means
    assert within_standard_errors(draws, mean)
    second = r @ (variances + (means - mean) ** 2)
    assert within_standard_errors((draws - mean) ** 2, second)
    cross = r @ ((means - mean)[:, 0] * (means - mean)[:, 1])
    assert within_standard_errors((draws - mean).prod(1, keepdim=True), cross[None])


@pytest.mark.theorem("thm-ccvfm-law")
def test_law_needs_independent_noise():
    mixture = random_mixture(1, 2, 1)
    v, density = velocity_on_grid(mixture, 0.4, 0.5, correlation=0.6)
    mean = torch.trapezoid(v * density, v).item()
    assert abs(closed_moments(mixture, 0.4, 0.5)[0] - mean) > 0.05


# --- thm-ccvfm-outer ---------------------------------------------------------------------------


def moments(x: torch.Tensor) -> torch.Tensor:
    """Coordinates and products of two coordinates (n, d + d(d+1)/2)."""
    i, j = torch.triu_indices(x.shape[1], x.shape[1])
    return torch.cat((x, x[:, i] * x[:, j]), 1)


def expected_moments(mixture: ccvfm.GaussianMixture, t: float = 1.0) -> torch.Tensor:
    """The same moments of x_t = (1-t) x_0 + t x_1 with x_1 from ``mixture``."""
    w, y = mixture.weights, mixture.means
    second = torch.einsum("k,kd,ke->de", w, y, y) + torch.diag(w @ mixture.variances)
    second = t**2 * second + (1 - t) ** 2 * torch.eye(mixture.dim, dtype=DOUBLE)
    i, j = torch.triu_indices(mixture.dim, mixture.dim)
    return torch.cat((t * mixture.mean(), second[i, j]))


@pytest.mark.theorem("thm-ccvfm-outer")
@pytest.mark.parametrize("outer_steps", [1, 3, 10])
def test_outer_euler_with_velocity_draws_is_exact(outer_steps):
    mixture = random_mixture(7, 3, 2)
    law = ccvfm.ConditionalVelocity(mixture)
    x = ccvfm.sample_surrogate(law, 40_000, outer_steps=outer_steps, generator=generator(0))
    assert within_standard_errors(moments(x), expected_moments(mixture))


@pytest.mark.theorem("thm-ccvfm-outer")
@FIXED
@given(seed=SEEDS, t=st.floats(0, 1), share=st.floats(0, 1))
def test_outer_step_of_any_size_is_exact(seed, t, share):
    mixture, g, h = random_mixture(seed, 3, 2), generator(seed), share * (1 - t)
    x0 = torch.randn(20_000, 2, generator=g, dtype=DOUBLE)
    x = (1 - t) * x0 + t * mixture.sample(20_000, generator=g)
    moved = x + h * ccvfm.ConditionalVelocity(mixture).sample(x, t, generator=g)
    assert within_standard_errors(moments(moved), expected_moments(mixture, t + h), errors=5)


@pytest.mark.theorem("thm-ccvfm-outer")
def test_outer_step_needs_the_law_not_its_mean_and_the_right_start():
    mixture = random_mixture(7, 3, 2)
    law = ccvfm.ConditionalVelocity(mixture)
    x = ccvfm.sample_rectified(
        lambda x, t, v, tau: law.mean(x, t), 40_000, 2, steps=1, generator=generator(0)
    )
    assert not within_standard_errors(moments(x), expected_moments(mixture), errors=20)
    wrong = 2 * normal(40_000, 2, seed=1)  # not the law of x_t at t = 0.3
    moved = wrong + 0.7 * law.sample(wrong, 0.3, generator=generator(2))
    assert not within_standard_errors(moments(moved), expected_moments(mixture), errors=20)


# --- thm-ccvfm-gap -----------------------------------------------------------------------------


def bures(a: np.ndarray, b: np.ndarray) -> float:
    """Squared Bures distance of two covariance matrices; ``b`` must be regular."""
    root = sqrtm(b)
    cross = np.sqrt(np.clip(np.linalg.eigvalsh(root @ a @ root), 0, None)).sum()
    return float(np.trace(a + b) - 2 * cross)


@pytest.mark.theorem("thm-ccvfm-gap")
@settings(deadline=None, max_examples=8)
@given(seed=SEEDS)
def test_gap_surrogate_cost_is_the_wasserstein_gap(seed):
    """At t = 0 source and target are translates of the mixture and of the data."""
    X = normal(60, 2, seed=seed) ** 2
    mixture = ccvfm.lift(X, ccvfm.entropic_coreset(X, 4, seed=seed))
    law = ccvfm.ConditionalVelocity(mixture)
    gap = ccvfm.squared_w2(
        law.sample(torch.zeros(80, 2, dtype=DOUBLE), 0.0, generator=generator(seed)), X
    )
    for x0 in 3 * normal(4, 2, seed=seed + 1):
        weights, means, variances = law.components(x0[None], 0.0)
        assert torch.allclose(weights[0], mixture.weights, rtol=0, atol=1e-12)
        assert torch.allclose(means[0], mixture.means - x0, rtol=0, atol=1e-12)
        assert torch.allclose(variances[0], mixture.variances, rtol=0, atol=1e-12)
        v0 = law.sample(x0.expand(80, 2), 0.0, generator=generator(seed))
        assert ccvfm.squared_w2(v0, X - x0) == pytest.approx(gap, abs=1e-10)


@pytest.mark.theorem("thm-ccvfm-gap")
def test_gap_equality_is_a_statement_at_the_start():
    """At t > 0 the cost depends on x: it is not the gap."""
    X = normal(60, 1, seed=0)
    mixture = ccvfm.lift(X, ccvfm.entropic_coreset(X, 2))
    law = ccvfm.ConditionalVelocity(mixture)
    costs = []
    for x in (-0.5, 1.0):
        point = torch.full((400, 1), x, dtype=DOUBLE)
        at = (point[0, 0] - 0.8 * X[:, 0]) / 0.2
        posterior = torch.softmax(-0.5 * at**2, 0)  # of each data point given x_t = x
        v1 = X[torch.multinomial(posterior, 400, replacement=True, generator=generator(0))]
        v0 = law.sample(point, 0.8, generator=generator(1))
        costs.append(ccvfm.squared_w2(v0, (v1 - x) / 0.2))
    assert abs(costs[0] - costs[1]) > 0.05


@pytest.mark.theorem("thm-ccvfm-gap")
@FEW
@given(seed=SEEDS, dim=st.integers(1, 4), scale=st.floats(0.01, 5))
def test_gap_noise_bounds_are_the_gaussian_closed_form(seed, dim, scale):
    """The Gelbrich bound is the Bures value, and both bounds stand in the proved order."""
    X = scale * normal(30, dim, seed=seed) @ normal(dim, dim, seed=seed + 1) + 1
    covariance = torch.cov(X.T, correction=0).reshape(dim, dim).numpy()
    plain = dim + X.mean(0).square().sum().item()
    assert ccvfm.noise_cost_lower_bound(X) == pytest.approx(plain, rel=1e-12)
    gelbrich = ccvfm.noise_cost_gelbrich_bound(X)
    assert gelbrich == pytest.approx(plain + bures(covariance, np.eye(dim)), rel=1e-6, abs=1e-6)
    assert gelbrich >= plain


@pytest.mark.theorem("thm-ccvfm-gap")
@pytest.mark.parametrize("scale", [1.0, 0.3, 3.0])
def test_gap_noise_cost_in_one_dimension_is_exact(scale):
    """Gaussian data: quantiles give W2 exactly, so equality can be seen without sampling error."""
    grid = (np.arange(200_000) + 0.5) / 200_000
    noise = stats.norm.ppf(grid)
    data = 0.7 + scale * noise
    starts = np.linspace(-2, 2, 5)
    for x0 in starts:
        exact = np.mean((noise - (data - x0)) ** 2)
        assert exact == pytest.approx((0.7 - x0) ** 2 + (scale - 1) ** 2, rel=1e-3)
        assert exact >= (0.7 - x0) ** 2 - 1e-9  # the bound; near equality at scale 1


@pytest.mark.theorem("thm-ccvfm-gap")
@settings(deadline=None, max_examples=8)
@given(seed=SEEDS, dim=st.integers(1, 4))
def test_gap_noise_cost_exceeds_its_bound_on_random_data(seed, dim):
    X = normal(150, dim, seed=seed) ** 3
    noise = normal(150, dim, seed=seed + 1)
    starts = normal(3, dim, seed=seed + 2)
    for x0 in starts:
        cost = ccvfm.squared_w2(noise, X - x0)
        shift = (noise.mean(0) - X.mean(0) + x0).square().sum().item()
        assert cost >= shift - 1e-9


@pytest.mark.theorem("thm-ccvfm-gap")
def test_gap_needs_the_compression_assumption():
    """Two far points and one atom: the gap exceeds the cost of the noise source."""
    dim, far = 10, 3.0
    axis = torch.ones(dim, dtype=DOUBLE)
    X = torch.stack((far * axis, -far * axis))
    lifted = ccvfm.lift(X, ccvfm.entropic_coreset(X, 1, epsilon=1.0))
    assert torch.allclose(lifted.variances, torch.full((1, dim), far**2, dtype=DOUBLE))

    def two_point_cost(samples, targets):
        """Semi-discrete transport: exact for these samples, balanced by their mirror images."""
        cost = torch.cdist(samples, targets).square().numpy()
        return ot.emd2([], [0.5, 0.5], cost, numItermax=1_000_000)

    half = normal(4000, dim, seed=0)
    noise = torch.cat((half, -half))
    gap = two_point_cost(far * noise, X)
    shared = math.sqrt(2 * dim / math.pi)
    assert gap == pytest.approx(2 * far**2 * (dim - shared), rel=0.02)
    # E|x_0|^2 = d, and the cross term with x_0 vanishes since the noise is mirrored.
    cost = dim + two_point_cost(noise, X)
    assert cost == pytest.approx(2 * dim + far**2 * dim - 2 * far * shared, rel=0.02)
    assert gap > 1.3 * cost


# --- cor-ccvfm-plan ----------------------------------------------------------------------------


def mixture_quantiles(mixture: ccvfm.GaussianMixture, levels: np.ndarray) -> np.ndarray:
    """Quantiles of a mixture on the line, by bisection."""
    w, y, s = (p.numpy() for p in (mixture.weights, mixture.means[:, 0], mixture.variances[:, 0]))
    low, high = np.full_like(levels, y.min() - 50), np.full_like(levels, y.max() + 50)
    for _ in range(80):
        middle = (low + high) / 2
        below = (w * stats.norm.cdf((middle[:, None] - y) / np.sqrt(s))).sum(1) < levels
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return (low + high) / 2


def line_gap(X: torch.Tensor, mixture: ccvfm.GaussianMixture, per_point: int = 50) -> float:
    """Squared W2 on the line between data X (N, 1) and a mixture, by quantiles."""
    points = np.repeat(np.sort(X[:, 0].numpy()), per_point)
    levels = (np.arange(len(points)) + 0.5) / len(points)
    return float(np.mean((points - mixture_quantiles(mixture, levels)) ** 2))


@pytest.mark.theorem("cor-ccvfm-plan")
@settings(deadline=None, max_examples=10)
@given(seed=SEEDS, atoms=st.integers(1, 6), scale=st.floats(0.05, 10))
def test_plan_bound_holds_on_the_line(seed, atoms, scale):
    X = normal(40, 1, seed=seed) ** 3
    mixture = ccvfm.lift(X, ccvfm.entropic_coreset(X, atoms, epsilon=scale, seed=seed))
    assert line_gap(X, mixture) <= ccvfm.plan_coupling_cost(mixture) + 1e-9


@pytest.mark.theorem("cor-ccvfm-plan")
def test_plan_bound_is_nearly_attained():
    """Mass far out in both tails is nearly uncorrelated with a Gaussian: the factor 2 is needed."""
    X = torch.zeros(20_000, 1, dtype=DOUBLE)
    X[0], X[1] = 1.0, -1.0
    mixture = ccvfm.lift(X, ccvfm.entropic_coreset(X, 1, epsilon=1.0), floor=1e-12)
    ratio = line_gap(X, mixture, per_point=4) / ccvfm.plan_coupling_cost(mixture)
    assert 0.9 < ratio <= 1


@pytest.mark.theorem("cor-ccvfm-plan")
def test_plan_coupling_costs_the_bound_and_keeps_the_mixture():
    X = normal(50, 2, seed=1)
    coreset = ccvfm.entropic_coreset(X, 5)
    mixture = ccvfm.lift(X, coreset)
    size = 60_000
    draw = _drawer("ccvfm", X, mixture, coreset, "plan", 1.0, size)
    batch = draw(generator(0))
    # a = v_1 - v_0 is the displacement of the coupling, x_0 cancels.
    cost = batch.target.square().sum(1, keepdim=True)
    expected = torch.tensor([ccvfm.plan_coupling_cost(mixture)], dtype=DOUBLE)
    assert within_standard_errors(cost, expected)
    start = batch.v - batch.tau[:, None] * batch.target + batch.x
    assert within_standard_errors(moments(start), expected_moments(mixture))
    assert torch.equal(batch.t, torch.zeros(size, dtype=DOUBLE))


@pytest.mark.theorem("cor-ccvfm-plan")
def test_plan_coupling_needs_consistent_weights():
    """A plan whose column sums are not the weights draws another mixture."""
    X = normal(50, 2, seed=1) + 1
    coreset = ccvfm.entropic_coreset(X, 3, epsilon=1.0)
    skewed = coreset.plan * torch.tensor([3.0, 1.0, 0.2], dtype=DOUBLE)
    skewed = skewed / skewed.sum(1, keepdim=True) / 50
    stale = ccvfm.Coreset(coreset.weights, coreset.atoms, skewed, [], coreset.epsilon)
    mixture = ccvfm.lift(X, coreset)
    batch = _drawer("ccvfm", X, mixture, stale, "plan", 1.0, 20_000)(generator(0))
    start = batch.v - batch.tau[:, None] * batch.target + batch.x
    assert not within_standard_errors(moments(start), expected_moments(mixture), errors=10)


@pytest.mark.theorem("cor-ccvfm-plan")
@settings(deadline=None, max_examples=10)
@given(seed=SEEDS, power=st.sampled_from([1, 3]), scale=st.floats(0.1, 4))
def test_unconditional_noise_bound_on_the_line(seed, power, scale):
    """Law(V) on the line is a mixture of N(x_i, 1); quantiles give its distance to noise."""
    X = scale * normal(40, 1, seed=seed) ** power + 0.5
    law = ccvfm.GaussianMixture(torch.full((40,), 1 / 40, dtype=DOUBLE), X, torch.ones_like(X))
    levels = (np.arange(4000) + 0.5) / 4000
    distance = np.mean((stats.norm.ppf(levels) - mixture_quantiles(law, levels)) ** 2)
    assert ccvfm.unconditional_noise_bound(X) <= distance * (1 + 1e-3) + 2e-3


@pytest.mark.theorem("cor-ccvfm-plan")
def test_unconditional_noise_bound_is_the_bures_value():
    X = normal(30, 3, seed=2) @ normal(3, 3, seed=3) + 0.5
    covariance = torch.cov(X.T, correction=0).numpy()
    expected = X.mean(0).square().sum().item() + bures(np.eye(3), np.eye(3) + covariance)
    assert ccvfm.unconditional_noise_bound(X) == pytest.approx(expected, rel=1e-6)


# --- thm-ccvfm-second-moment -------------------------------------------------------------------


def finite_law(seed: int, size: int, dim: int) -> tuple[torch.Tensor, torch.Tensor]:
    weights = 0.1 + torch.rand(size, generator=generator(seed), dtype=DOUBLE)
    return weights / weights.sum(), normal(size, dim, seed=seed + 1)


def mean_and_covariance(weights, points):
    mean = weights @ points
    return mean, (points - mean).T @ ((points - mean) * weights[:, None])


@pytest.mark.theorem("thm-ccvfm-second-moment")
@FEW
@given(seed=SEEDS, sizes=st.tuples(st.integers(1, 5), st.integers(1, 5)))
def test_second_moment_by_enumeration(seed, sizes):
    p, a = finite_law(seed, sizes[0], 3)
    q, b = finite_law(seed + 77, sizes[1], 3)
    differences = b[None] - a[:, None]
    joint = p[:, None] * q
    exact = torch.einsum("ij,ijd,ije->de", joint, differences, differences)
    (m0, c0), (m1, c1) = mean_and_covariance(p, a), mean_and_covariance(q, b)
    assert torch.allclose(exact, (m1 - m0).outer(m1 - m0) + c1 + c0, rtol=0, atol=1e-10)
    closed = ccvfm.target_second_moment(m0, c0.trace(), m1, c1.trace())
    assert closed.item() == pytest.approx(exact.trace().item(), abs=1e-10)
    ideal = 2 * c1.trace().item()
    excess = ccvfm.second_moment_excess(m0, c0.trace(), m1, c1.trace()).item()
    assert excess == pytest.approx(exact.trace().item() - ideal, abs=1e-10)


@pytest.mark.theorem("thm-ccvfm-second-moment")
@pytest.mark.parametrize("t", [0.0, 0.4, 0.9])
def test_second_moment_of_the_training_target(t):
    """Monte Carlo over the package's own laws at one point."""
    source = ccvfm.ConditionalVelocity(random_mixture(0, 3, 2))
    target = ccvfm.ConditionalVelocity(random_mixture(1, 4, 2))
    x = torch.tensor([[0.5, -0.2]], dtype=DOUBLE)
    many = x.expand(60_000, 2)
    v0 = source.sample(many, t, generator=generator(2))
    v1 = target.sample(many, t, generator=generator(3))
    closed = ccvfm.target_second_moment(
        source.mean(x, t), source.covariance_trace(x, t),
        target.mean(x, t), target.covariance_trace(x, t),
    )  # fmt: skip
    assert within_standard_errors((v1 - v0).square().sum(1, keepdim=True), closed)


@pytest.mark.theorem("thm-ccvfm-second-moment")
@settings(deadline=None, max_examples=50)
@given(seed=SEEDS, spread_0=st.floats(0, 3), spread_1=st.floats(0, 3), shift=st.floats(0, 3))
def test_second_moment_excess_is_bounded_by_the_distance(seed, spread_0, spread_1, shift):
    a, b = (normal(3, 3, seed=seed + i).numpy() for i in (0, 1))
    c0, c1 = spread_0 * a @ a.T, spread_1 * b @ b.T + 1e-9 * np.eye(3)
    m0, m1 = np.zeros(3), shift * np.ones(3)
    w2 = math.sqrt(max(3 * shift**2 + bures(c0, c1), 0))
    traces = [torch.tensor(np.trace(c), dtype=DOUBLE) for c in (c0, c1)]
    excess = ccvfm.second_moment_excess(
        torch.tensor(m0), traces[0], torch.tensor(m1), traces[1]
    ).item()
    bound = w2**2 + w2 * (math.sqrt(traces[0]) + math.sqrt(traces[1]))
    assert abs(excess) <= bound + 1e-5 * (1 + bound)


@pytest.mark.theorem("thm-ccvfm-second-moment")
def test_second_moment_bound_is_attained_by_points_and_needs_both_terms():
    zero = torch.tensor(0.0, dtype=DOUBLE)
    m1 = torch.tensor([2.0, 1.0], dtype=DOUBLE)
    points = ccvfm.second_moment_excess(torch.zeros(2, dtype=DOUBLE), zero, m1, zero)
    assert points.item() == pytest.approx(5.0)  # = W^2: equality
    # Nearly equal round Gaussians: e = s0^2 - s1^2 is far above W^2 = (s0 - s1)^2.
    s0, s1 = 1.01, 1.0
    excess = ccvfm.second_moment_excess(
        m1, torch.tensor(2 * s0**2), m1, torch.tensor(2 * s1**2)
    ).item()
    w2 = math.sqrt(2) * (s0 - s1)
    assert excess > 10 * w2**2
    assert excess == pytest.approx(w2 * math.sqrt(2) * (s0 + s1), rel=1e-9)


@pytest.mark.theorem("thm-ccvfm-second-moment")
def test_second_moment_needs_independence_and_noise_excess_may_be_negative():
    p, a = finite_law(0, 4, 3)
    mean, covariance = mean_and_covariance(p, a)
    closed = ccvfm.target_second_moment(mean, covariance.trace(), mean, covariance.trace())
    assert closed.item() > 0.1  # with v_0 = v_1 the true value is 0
    # Unscaled data at t = 0: E|m_1|^2 = d + |mean|^2, so e < 0 when tr Sigma > 2 d + |mean|^2.
    x0 = normal(2000, 2, seed=0)
    e = ccvfm.second_moment_excess(
        torch.zeros_like(x0), torch.full((2000,), 2.0), 1 - x0, torch.full((2000,), 40.0)
    )
    assert e.mean().item() == pytest.approx(2 + (2 + 2) - 40, abs=0.5)


# --- thm-ccvfm-one-euler -----------------------------------------------------------------------


def flow(source_seed: int, target_seed: int, dim: int = 2):
    source = ccvfm.ConditionalVelocity(random_mixture(source_seed, 3, dim))
    target = ccvfm.ConditionalVelocity(random_mixture(target_seed, 2, dim))
    return source, target, ccvfm.ExactCorrection(source, target)


@pytest.mark.theorem("thm-ccvfm-one-euler")
@FEW
@given(seed=SEEDS, t=st.floats(0, 0.95))
def test_one_euler_step_returns_the_mean(seed, t):
    _, target, net = flow(seed, seed + 1)
    x, v = normal(6, 2, seed=seed), 3 * normal(6, 2, seed=seed + 1)
    times = torch.full((6,), t, dtype=DOUBLE)
    stepped = v + net(x, times, v, torch.zeros_like(times))
    assert torch.allclose(stepped, target.mean(x, t), atol=1e-8)


@pytest.mark.theorem("thm-ccvfm-one-euler")
@pytest.mark.parametrize("outer_steps", [1, 3])
def test_one_euler_step_makes_the_sampler_a_rectified_flow(outer_steps):
    source, target, net = flow(1, 2)
    x0 = normal(200, 2, seed=5)
    hierarchical = ccvfm.sample_hierarchical(
        net, 200, 2, source=source, outer_steps=outer_steps, generator=generator(5)
    )
    x = x0
    for step in range(outer_steps):
        x = x + target.mean(x, step / outer_steps) / outer_steps
    assert torch.allclose(hierarchical, x, atol=1e-8)
    two_steps = ccvfm.sample_hierarchical(
        net, 200, 2, source=source, inner_steps=2, generator=generator(5)
    )
    assert (two_steps - x).abs().max() > 0.1


@pytest.mark.theorem("thm-ccvfm-one-euler")
@pytest.mark.parametrize(("steps", "printed"), [(1, 0.0), (2, 0.5), (4, 0.72), (8, 0.85)])
@pytest.mark.parametrize("t", [0.0, 0.7])
def test_euler_contracts_deviations(steps, printed, t):
    """A Gaussian that is both source and target: every deviation shrinks by the same factor."""
    law = ccvfm.ConditionalVelocity(random_mixture(3, 1, 2))
    net = ccvfm.ExactCorrection(law, law)
    x, v = normal(50, 2, seed=0), 2 * normal(50, 2, seed=1)
    times, mean, out = torch.full((50,), t, dtype=DOUBLE), law.mean(x, t), v
    for j in range(steps):
        out = out + net(x, times, out, torch.full_like(times, j / steps)) / steps
    factor = ccvfm.euler_contraction(steps)
    assert torch.allclose(out - mean, factor * (v - mean), atol=1e-10)
    assert factor == pytest.approx(printed, abs=0.005)


@pytest.mark.theorem("thm-ccvfm-one-euler")
def test_one_euler_step_needs_the_independent_coupling():
    """Under the plan coupling v_0 tells about v_1: their correlation given x_0 is not zero."""
    X = torch.cat((normal(50, 1, seed=0) - 4, normal(50, 1, seed=1) + 4))
    coreset = ccvfm.entropic_coreset(X, 2)
    mixture = ccvfm.lift(X, coreset)
    covariance = {}
    for coupling in ("independent", "plan"):
        draw = _drawer("ccvfm", X, mixture, coreset, coupling, 1.0, 16_000)
        batch = draw(generator(0))
        v0 = batch.v - batch.tau[:, None] * batch.target
        start, end = v0 + batch.x, v0 + batch.target + batch.x
        covariance[coupling] = (start * end).mean().item()
    assert abs(covariance["independent"]) < 0.6
    assert covariance["plan"] > 10


# --- prop-ccvfm-midpoint -----------------------------------------------------------------------


@pytest.mark.theorem("prop-ccvfm-midpoint")
@FEW
@given(seed=SEEDS, t=st.floats(0, 0.95))
def test_midpoint_correction_vanishes_when_source_is_target(seed, t):
    law = ccvfm.ConditionalVelocity(random_mixture(seed, 3, 2))
    net = ccvfm.ExactCorrection(law, law)
    x, v = normal(6, 2, seed=seed), 3 * normal(6, 2, seed=seed + 1)
    times = torch.full((6,), t, dtype=DOUBLE)
    assert net(x, times, v, torch.full_like(times, 0.5)).abs().max() < 1e-9
    assert net(x, times, v, torch.full_like(times, 0.4)).abs().max() > 1e-3


@pytest.mark.theorem("prop-ccvfm-midpoint")
@pytest.mark.parametrize("outer_steps", [1, 2])
@pytest.mark.parametrize("solver", ["midpoint", "surrogate_midpoint"])
def test_one_midpoint_step_is_exact(solver, outer_steps):
    law = ccvfm.ConditionalVelocity(random_mixture(4, 3, 2))
    arguments = {"source": law, "outer_steps": outer_steps, "generator": generator(0)}
    net = ccvfm.ExactCorrection(law, law)
    stepped = ccvfm.sample_hierarchical(net, 300, 2, solver=solver, **arguments)
    drawn = ccvfm.sample_surrogate(law, 300, outer_steps=outer_steps, generator=generator(0))
    assert torch.allclose(stepped, drawn, atol=1e-8)


@pytest.mark.theorem("prop-ccvfm-midpoint")
def test_more_midpoint_steps_and_other_targets_lose_exactness():
    law = ccvfm.ConditionalVelocity(random_mixture(4, 3, 2))
    net = ccvfm.ExactCorrection(law, law)
    drawn = ccvfm.sample_surrogate(law, 300, outer_steps=1, generator=generator(0))
    twice = ccvfm.sample_hierarchical(
        net, 300, 2, source=law, inner_steps=2, solver="midpoint", generator=generator(0)
    )
    assert (twice - drawn).abs().mean() > 0.01
    gaussian = ccvfm.ConditionalVelocity(random_mixture(3, 1, 2))
    shrunk = ccvfm.sample_hierarchical(
        ccvfm.ExactCorrection(gaussian, gaussian), 300, 2, source=gaussian, inner_steps=2,
        solver="midpoint", generator=generator(0),
    )  # fmt: skip
    x0 = normal(300, 2, seed=0)
    start = ccvfm.sample_surrogate(gaussian, 300, outer_steps=1, generator=generator(0)) - x0
    mean = gaussian.mean(x0, 0.0)
    assert torch.allclose(shrunk - x0 - mean, 0.98 * (start - mean), atol=1e-10)
    _, _, other = flow(4, 9)
    x = normal(6, 2, seed=0)
    times = torch.zeros(6, dtype=DOUBLE)
    assert other(x, times, x, torch.full_like(times, 0.5)).abs().max() > 0.1


@pytest.mark.theorem("prop-ccvfm-midpoint")
def test_surrogate_predictor_is_the_midpoint_predictor():
    """For equal means the two solvers evaluate the network at the same point."""
    source = ccvfm.ConditionalVelocity(random_mixture(2, 3, 2))
    net = ccvfm.ExactCorrection(source, source)
    seen = []

    def recorded(x, t, v, tau):
        if tau[0] == 0.5:
            seen.append(v.clone())
        return net(x, t, v, tau)

    for solver in ("midpoint", "surrogate_midpoint"):
        ccvfm.sample_hierarchical(
            recorded, 20, 2, source=source, solver=solver, generator=generator(1)
        )
    assert torch.allclose(seen[0], seen[1], atol=1e-10)

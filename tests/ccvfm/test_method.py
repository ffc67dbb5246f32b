"""Tests of the method of chapter ccvfm: coreset, velocity law, training, sampling, metrics."""

import math

import numpy as np
import ot
import pytest
import torch
from scipy.linalg import sqrtm
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture as SklearnMixture

from paperbook import ccvfm
from paperbook.card import load_card
from paperbook.ccvfm import training

DOUBLE = torch.float64


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def normal(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, generator=generator(seed), dtype=dtype)


@pytest.fixture(scope="module")
def moons() -> torch.Tensor:
    return ccvfm.two_moons(400, generator=generator())


@pytest.fixture(scope="module")
def coreset(moons) -> ccvfm.Coreset:
    return ccvfm.entropic_coreset(moons, 6)


@pytest.fixture(scope="module")
def mixture(moons, coreset) -> ccvfm.GaussianMixture:
    return ccvfm.lift(moons, coreset)


@pytest.fixture(scope="module")
def digits() -> ccvfm.ImageData:
    return ccvfm.load_images("digits", pca_dim=20)


@pytest.fixture(scope="module")
def scorer(digits) -> ccvfm.Scorer:
    return ccvfm.Scorer(digits, num_samples=200)


# --- coreset and lift --------------------------------------------------------------------------


@pytest.mark.parametrize("marginal", ["free", "uniform"])
def test_coreset_is_consistent(marginal):
    X = normal(60, 3, dtype=DOUBLE)
    found = ccvfm.entropic_coreset(X, 5, marginal=marginal, iterations=7)
    assert len(found.objective) == 7
    assert found.plan.sum().item() == pytest.approx(1, abs=1e-12)
    assert torch.allclose(found.plan.sum(0), found.weights, atol=1e-12)
    assert torch.allclose(found.plan.sum(1), torch.full((60,), 1 / 60, dtype=DOUBLE), atol=1e-8)
    assert torch.allclose(found.plan.T @ X / found.weights[:, None], found.atoms, atol=1e-12)


def test_small_entropy_is_k_means():
    X = torch.cat([normal(40, 2, seed=i, dtype=DOUBLE) + 8 * i for i in range(3)])
    found = ccvfm.entropic_coreset(X, 3, epsilon=1e-3)
    means = KMeans(3, n_init=5, random_state=0).fit(X.numpy()).cluster_centers_
    assert np.allclose(np.sort(found.atoms.numpy(), 0), np.sort(means, 0), atol=1e-6)


def test_coreset_is_em_of_a_mixture_with_fixed_covariance():
    """One round equals scikit-learn's E-step at the same atoms."""
    X, start = normal(50, 2, dtype=DOUBLE), normal(4, 2, seed=1, dtype=DOUBLE)
    epsilon = 0.8
    peer = SklearnMixture(4, covariance_type="spherical")
    peer.weights_, peer.means_ = np.full(4, 0.25), start.numpy()
    peer.covariances_ = np.full(4, epsilon / 2)
    peer.precisions_cholesky_ = 1 / np.sqrt(peer.covariances_)
    plan = peer.predict_proba(X.numpy()) / 50
    weights = plan.sum(0)
    second = (plan / weights).T @ X.numpy()
    peer.weights_, peer.means_ = weights, second
    expected = peer.predict_proba(X.numpy()) / 50
    found = ccvfm.entropic_coreset(X, 4, epsilon=epsilon, iterations=1, initial_atoms=start)
    assert np.allclose(found.plan.numpy(), expected, atol=1e-12)


def test_default_epsilon_is_a_tenth_of_the_nearest_squared_distance():
    X, start = normal(30, 2, dtype=DOUBLE), normal(3, 2, seed=1, dtype=DOUBLE)
    nearest = torch.cdist(X, start).square().amin(1).mean().item()
    found = ccvfm.entropic_coreset(X, 3, initial_atoms=start)
    assert ccvfm.seed_atoms(X, 3, seed=1).shape == (3, 2)
    assert found.epsilon == pytest.approx(0.1 * nearest)
    assert ccvfm.default_epsilon(X, start, 0.5) == pytest.approx(0.5 * nearest)


def test_default_epsilon_where_every_point_is_an_atom():
    X = normal(5, 2, dtype=DOUBLE)
    spread = (X - X.mean(0)).square().sum(1).mean().item()
    assert ccvfm.entropic_coreset(X, 5).epsilon == pytest.approx(1e-3 * spread)
    same = torch.full((4, 2), 3.0, dtype=DOUBLE)
    constant = ccvfm.entropic_coreset(same, 2, initial_atoms=same[:2])
    assert constant.epsilon == 1.0
    assert torch.allclose(constant.atoms, same[:2])


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf])
def test_default_epsilon_refuses_a_scale(scale):
    X = normal(5, 2)
    with pytest.raises(ValueError, match="scale must be finite and > 0"):
        ccvfm.default_epsilon(X, X[:2], scale)


def test_atom_without_mass_keeps_its_place():
    X = normal(20, 2, dtype=DOUBLE)
    start = torch.tensor([[0.0, 0.0], [1e4, 1e4]], dtype=DOUBLE)
    found = ccvfm.entropic_coreset(X, 2, epsilon=1e-3, initial_atoms=start)
    assert found.weights.tolist() == [1.0, 0.0]
    assert torch.equal(found.atoms[1], start[1])
    lifted = ccvfm.lift(X, found)
    assert torch.allclose(lifted.variances[1], torch.full((2,), 1e-4, dtype=DOUBLE))
    law = ccvfm.ConditionalVelocity(lifted)
    assert torch.isfinite(law.sample(X, 0.5, generator=generator())).all()
    assert torch.isfinite(law.mean(X, 1.0)).all()


def test_coreset_follows_dtype_and_seed(moons):
    assert ccvfm.entropic_coreset(moons.double(), 4).atoms.dtype == DOUBLE
    one, same, other = (ccvfm.entropic_coreset(moons, 4, seed=s).atoms for s in (0, 0, 1))
    assert one.dtype == torch.float32
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": torch.zeros(5)}, "X must be a non-empty 2-D"),
        ({"X": torch.zeros(0, 2)}, "X must be a non-empty 2-D"),
        ({"X": torch.tensor([[1.0, math.nan]])}, "X must be floating-point and finite"),
        ({"X": torch.ones(4, 2, dtype=torch.long)}, "X must be floating-point and finite"),
        ({"num_atoms": 0}, r"num_atoms must be in \[1, 20\]"),
        ({"num_atoms": 21}, r"num_atoms must be in \[1, 20\]"),
        ({"epsilon": 0.0}, "epsilon must be finite and > 0"),
        ({"epsilon": math.nan}, "epsilon must be finite and > 0"),
        ({"iterations": 0}, "iterations must be an integer >= 1"),
        ({"marginal": "other"}, "marginal must be one of free, uniform"),
        ({"initial_atoms": torch.zeros(3, 3)}, "initial_atoms must have shape"),
        (
            {"initial_atoms": torch.zeros(3, 2, dtype=DOUBLE)},
            r"initial_atoms must be torch\.float32",
        ),
    ],
)
def test_coreset_refuses(change, message):
    arguments = {"X": normal(20, 2), "num_atoms": 3} | change
    with pytest.raises(ValueError, match=message):
        ccvfm.entropic_coreset(**arguments)


def test_lift_variants(moons, coreset):
    offsets = moons[:, None] - coreset.atoms
    cells = torch.einsum("ik,ikd->kd", coreset.plan, offsets.square()) / coreset.weights[:, None]
    diagonal = ccvfm.lift(moons, coreset).variances
    assert torch.allclose(diagonal, cells, atol=1e-5)
    isotropic = ccvfm.lift(moons, coreset, covariance="isotropic").variances
    assert torch.allclose(isotropic, cells.mean(1, keepdim=True).expand(-1, 2), atol=1e-5)
    tied = ccvfm.lift(moons, coreset, covariance="tied").variances
    assert torch.allclose(tied, (coreset.weights @ cells).expand(6, 2), atol=1e-5)
    assert ccvfm.lift(moons, coreset, floor=0.5).variances.min() == 0.5


def test_lift_refuses(moons, coreset):
    with pytest.raises(ValueError, match="covariance must be one of"):
        ccvfm.lift(moons, coreset, covariance="full")
    with pytest.raises(ValueError, match="floor must be finite and >= 0"):
        ccvfm.lift(moons, coreset, floor=-1.0)
    with pytest.raises(ValueError, match="X must have the plan's 400 rows"):
        ccvfm.lift(moons[:10], coreset)
    alone = ccvfm.entropic_coreset(moons[:3], 3, epsilon=1e-8)
    with pytest.raises(ValueError, match="variances must be > 0"):
        ccvfm.lift(moons[:3], alone, floor=0.0)


# --- mixture and velocity law ------------------------------------------------------------------


def test_mixture_moments_and_density():
    w = torch.tensor([0.3, 0.7], dtype=DOUBLE)
    y = torch.tensor([[0.0], [2.0]], dtype=DOUBLE)
    s = torch.tensor([[1.0], [0.25]], dtype=DOUBLE)
    mixture = ccvfm.GaussianMixture(w, y, s)
    grid = torch.linspace(-10, 12, 20_001, dtype=DOUBLE)
    density = mixture.log_prob(grid[:, None]).exp()
    mean = torch.trapezoid(grid * density, grid)
    variance = torch.trapezoid((grid - mean) ** 2 * density, grid)
    assert torch.trapezoid(density, grid).item() == pytest.approx(1)
    assert mixture.mean().item() == pytest.approx(mean.item())
    assert mixture.variance().item() == pytest.approx(variance.item())
    draws = mixture.sample(40_000, generator=generator())
    assert draws.mean().item() == pytest.approx(mean.item(), abs=0.03)
    assert draws.var().item() == pytest.approx(variance.item(), abs=0.05)


@pytest.mark.parametrize(
    ("weights", "means", "variances", "message"),
    [
        ([0.5, 0.6], torch.zeros(2, 1), torch.ones(2, 1), "sum to 1"),
        ([-0.5, 1.5], torch.zeros(2, 1), torch.ones(2, 1), "non-negative"),
        ([math.nan, 1.0], torch.zeros(2, 1), torch.ones(2, 1), "weights must"),
        ([1.0], torch.zeros(2, 1), torch.ones(2, 1), "must agree"),
        ([0.5, 0.5], torch.zeros(2, 1), torch.zeros(2, 1), "variances must be > 0"),
        ([0.5, 0.5], torch.zeros(2, 1), torch.ones(2, 2), "variances must have 1 columns"),
        ([0.5, 0.5], torch.zeros(2), torch.ones(2, 1), "means must be a non-empty 2-D"),
        ([0.5, 0.5], torch.zeros(2, 1).double(), torch.ones(2, 1).double(), "weights must be"),
    ],
)
def test_mixture_refuses(weights, means, variances, message):
    with pytest.raises(ValueError, match=message):
        ccvfm.GaussianMixture(torch.tensor(weights), means, variances)


def test_velocity_accepts_times_in_three_forms(mixture):
    """One time, one time a row and one time a group give the same law."""
    law = ccvfm.ConditionalVelocity(mixture)
    x = normal(6, 2)
    for t in (0.0, 0.4, 1.0):
        rows = torch.full((6,), t)
        expected = law.mean(x, t)
        assert torch.allclose(law.mean(x, rows), expected, atol=1e-4)
        grouped = law.mean(x.view(2, 3, 2), torch.full((2,), t))
        assert torch.allclose(grouped.view(6, 2), expected, atol=1e-4)
        by_number, by_row = (law.components(x, time) for time in (t, rows))
        assert all(torch.equal(a, b) for a, b in zip(by_number, by_row, strict=True))
    mixed = torch.tensor([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
    means = torch.cat([law.mean(x[i : i + 1], mixed[i].item()) for i in range(6)])
    assert torch.allclose(law.mean(x, mixed), means, atol=1e-4)


def test_velocity_draws_agree_across_forms(mixture):
    law = ccvfm.ConditionalVelocity(mixture)
    x = normal(6, 2)
    by_number = law.sample(x, 0.3, generator=generator(4))
    by_row = law.sample(x, torch.full((6,), 0.3), generator=generator(4))
    grouped = law.sample(x.view(2, 3, 2), torch.full((2,), 0.3), generator=generator(4))
    assert torch.allclose(by_number, by_row, atol=1e-5)
    assert torch.allclose(by_number, grouped.view(6, 2), atol=1e-5)


def test_velocity_in_single_precision_is_stable_near_the_data():
    """Small variances and t near 1 make huge logits; single and double precision agree."""
    means = normal(8, 16, dtype=DOUBLE)
    weights = torch.full((8,), 1 / 8, dtype=DOUBLE)
    variances = torch.full((8, 16), 1e-4, dtype=DOUBLE)
    double = ccvfm.ConditionalVelocity(ccvfm.GaussianMixture(weights, means, variances))
    single = ccvfm.ConditionalVelocity(
        ccvfm.GaussianMixture(weights.float(), means.float(), variances.float())
    )
    x = means + 0.01 * normal(8, 16, seed=1, dtype=DOUBLE)
    for t in (0.9, 0.999, 1.0):
        assert torch.allclose(single.mean(x.float(), t).double(), double.mean(x, t), atol=2e-3)


@pytest.mark.parametrize("method", ["components", "sample", "mean", "covariance_trace"])
@pytest.mark.parametrize(
    ("x", "t", "message"),
    [
        (torch.zeros(3, 2), -0.1, r"t must be in \[0, 1\]"),
        (torch.zeros(3, 2), 1.1, r"t must be in \[0, 1\]"),
        (torch.zeros(3, 2), math.nan, r"t must be in \[0, 1\]"),
        (torch.zeros(3, 2), torch.zeros(2), "t must be a number or have shape"),
        (torch.zeros(3, 5), 0.5, "x must have"),
        (torch.full((3, 2), math.inf), 0.5, "finite"),
    ],
)
def test_velocity_refuses(mixture, method, x, t, message):
    with pytest.raises(ValueError, match=message):
        getattr(ccvfm.ConditionalVelocity(mixture), method)(x, t)


@pytest.mark.parametrize("method", ["components", "sample", "mean", "covariance_trace"])
def test_velocity_refuses_another_dtype(mixture, method):
    with pytest.raises(ValueError, match=r"x must be torch\.float32"):
        getattr(ccvfm.ConditionalVelocity(mixture), method)(torch.zeros(3, 2, dtype=DOUBLE), 0.5)


def test_exact_correction_is_the_regression_function():
    """At random inner times it beats every perturbed predictor of v_1 - v_0, on average."""
    laws = [ccvfm.ConditionalVelocity(ccvfm.random_mixture(2, 3, seed=s)) for s in (0, 1)]
    net = ccvfm.ExactCorrection(*laws)
    x, n = torch.tensor([[0.4, -0.3]], dtype=DOUBLE).expand(20_000, 2), 20_000
    v0, v1 = (law.sample(x, 0.5, generator=generator(i)) for i, law in enumerate(laws))
    tau = torch.rand(n, generator=generator(2), dtype=DOUBLE)
    t = torch.full((n,), 0.5, dtype=DOUBLE)
    v = torch.lerp(v0, v1, tau[:, None])
    guess, truth = net(x, t, v, tau), v1 - v0
    error = (guess - truth).square().sum(1).mean()
    for factor, shift in ((0.9, 0.0), (1.1, 0.0), (1.0, 0.2), (1.0, -0.2)):
        assert (factor * guess + shift - truth).square().sum(1).mean() > error
    residual = truth - guess
    for feature in (v, tau[:, None], v**2, tau[:, None] * v):
        assert (residual * feature).mean().abs() < 5 * (residual * feature).std() / math.sqrt(2 * n)


@pytest.mark.parametrize("t", [0.0, 0.5, 1.0])
def test_quadrature_of_one_gaussian(t):
    """x_1 ~ N(1, 4): the pair (x_t, V) is Gaussian with known moments."""
    gaussian = ccvfm.GaussianMixture(
        *(torch.tensor(value, dtype=DOUBLE) for value in ([1.0], [[1.0]], [[4.0]]))
    )
    s = 4 * t**2 + (1 - t) ** 2
    slope = (4 * t - (1 - t)) / s
    found = ccvfm.quadrature_moments(gaussian, 0.3, t)
    assert found == pytest.approx((1 + slope * (0.3 - t), 4 / s), abs=1e-6)
    with pytest.raises(ValueError, match="dimension 1"):
        ccvfm.quadrature_moments(ccvfm.eight_gaussians(), 0.0, t)


# --- bounds ------------------------------------------------------------------------------------


def test_bounds_of_known_data():
    X = torch.tensor([[3.0, 0.0], [-1.0, 0.0], [1.0, 2.0], [1.0, -2.0]])  # mean (1, 0), var 2, 2
    assert ccvfm.noise_cost_lower_bound(X) == pytest.approx(3.0)
    root = math.sqrt(2)
    assert ccvfm.noise_cost_gelbrich_bound(X) == pytest.approx(3 + 2 * (root - 1) ** 2, rel=1e-6)
    expected = 1 + 2 * (math.sqrt(3) - 1) ** 2
    assert ccvfm.unconditional_noise_bound(X) == pytest.approx(expected, rel=1e-6)
    mixture = ccvfm.GaussianMixture(
        torch.tensor([0.25, 0.75]), torch.zeros(2, 2), torch.tensor([[1.0, 3.0], [2.0, 2.0]])
    )
    assert ccvfm.plan_coupling_cost(mixture) == pytest.approx(8.0)


def test_squared_w2_small_and_large():
    a, b = normal(30, 2, dtype=DOUBLE), normal(40, 2, seed=1, dtype=DOUBLE)
    shift = torch.tensor([3.0, 4.0], dtype=DOUBLE)
    assert ccvfm.squared_w2(a, a + shift) == pytest.approx(25, abs=1e-9)
    assert ccvfm.squared_w2(a, b) == pytest.approx(ccvfm.squared_w2(b, a), abs=1e-9)
    many = normal(900, 3, dtype=DOUBLE)  # takes the expanded form of the cost
    far = torch.tensor([3.0, 4.0, 0.0], dtype=DOUBLE)
    assert ccvfm.squared_w2(many, many + far) == pytest.approx(25, abs=1e-6)


@pytest.mark.parametrize(
    "function",
    [
        ccvfm.noise_cost_lower_bound,
        ccvfm.noise_cost_gelbrich_bound,
        ccvfm.unconditional_noise_bound,
    ],
)
def test_bounds_refuse(function):
    with pytest.raises(ValueError, match="X must be"):
        function(torch.zeros(3))
    with pytest.raises(ValueError, match="X must be"):
        function(torch.tensor([[math.nan], [0.0]]))


def test_bounds_from_one_point_are_refused():
    for function in (ccvfm.noise_cost_gelbrich_bound, ccvfm.unconditional_noise_bound):
        with pytest.raises(ValueError, match="rows of X must be an integer >= 2"):
            function(torch.zeros(1, 2))


def test_second_moment_is_batched_and_checked():
    m0, m1 = torch.zeros(2, 3), torch.tensor([[1.0, 2.0, 2.0], [0.0, 0.0, 1.0]])
    traces = torch.tensor([1.0, 2.0])
    moment = ccvfm.target_second_moment(m0, traces, m1, 2 * traces)
    assert moment.tolist() == [12.0, 7.0]
    assert ccvfm.second_moment_excess(m0, traces, m1, 2 * traces).tolist() == [8.0, -1.0]
    with pytest.raises(ValueError, match="same shape"):
        ccvfm.target_second_moment(m0, traces, m1[:1], traces)
    with pytest.raises(ValueError, match="trace_source must have shape"):
        ccvfm.target_second_moment(m0, traces[:1], m1, traces)
    with pytest.raises(ValueError, match="trace_target must be >= 0"):
        ccvfm.target_second_moment(m0, traces, m1, -traces)


def test_euler_contraction_values():
    assert [round(ccvfm.euler_contraction(j), 2) for j in (1, 2, 4)] == [0.0, 0.5, 0.72]
    with pytest.raises(ValueError, match="steps"):
        ccvfm.euler_contraction(0)


# --- network and training ----------------------------------------------------------------------


def test_network_uses_every_input():
    net = ccvfm.VelocityNet(2, hidden=16, depth=1)
    inputs = [normal(4, 2), torch.full((4,), 0.3), normal(4, 2, seed=1), torch.full((4,), 0.6)]
    out = net(*inputs)
    assert out.shape == (4, 2)
    for i in range(4):
        moved = [*inputs[:i], inputs[i] + 0.1, *inputs[i + 1 :]]
        assert not torch.allclose(net(*moved), out)
    with pytest.raises(ValueError, match="hidden must be an integer >= 1"):
        ccvfm.VelocityNet(2, hidden=0)


METHODS = [
    ("rf", {}),
    ("hrf", {"start_fraction": 1.0}),
    ("hrf", {"start_fraction": 0.25}),
    ("ccvfm", {"start_fraction": 1.0}),
    ("ccvfm", {"start_fraction": 0.25}),
    ("ccvfm", {"coupling": "plan"}),
    ("mixture", {}),
]


@pytest.mark.parametrize(("method", "options"), METHODS)
def test_training_learns_and_repeats(moons, mixture, coreset, method, options):
    def fit(seed):
        state = torch.get_rng_state()
        flow = ccvfm.train(
            method, moons, mixture=mixture, coreset=coreset, iterations=60, hidden=32, depth=1,
            seed=seed, **options,
        )  # fmt: skip
        assert torch.equal(torch.get_rng_state(), state)  # the global state is left alone
        return flow

    one, same, other = fit(0), fit(0), fit(1)
    assert len(one.losses) == 60
    assert one.losses == same.losses
    assert one.losses != other.losses
    assert np.mean(one.losses[-15:]) < np.mean(one.losses[:5])
    points, times = normal(5, 2), torch.zeros(5)
    assert torch.equal(
        one.net(points, times, points, times), same.net(points, times, points, times)
    )


@pytest.mark.parametrize("fraction", [0.0, 0.25, 1.0])
def test_batches_hold_the_declared_share_at_the_start(moons, mixture, fraction):
    draw = training._drawer("ccvfm", moons, mixture, None, "independent", fraction, 128)
    batch = draw(generator())
    assert (batch.t == 0).double().mean().item() == fraction
    assert len(batch.t.unique()) == 1 + 16 * (1 - fraction) - (fraction == 0)
    for field in (batch.x, batch.v, batch.target):
        assert field.shape == (128, 2)


def test_batches_interpolate_source_and_target(moons, mixture):
    """x_t + (1-t) V is a data point, and v_tau lies between the source and V."""
    draw = training._drawer("ccvfm", moons, mixture, None, "independent", 0.25, 64)
    batch = draw(generator())
    v0 = batch.v - batch.tau[:, None] * batch.target
    v1 = v0 + batch.target
    ends = batch.x + (1 - batch.t[:, None]) * v1
    assert torch.cdist(ends, moons).amin(1).max() < 1e-3
    rectified = training._drawer("rf", moons, None, None, "independent", 0.25, 64)(generator())
    ends = rectified.x + (1 - rectified.t[:, None]) * rectified.target
    assert torch.cdist(ends, moons).amin(1).max() < 1e-3
    assert not rectified.v.any()
    assert not rectified.tau.any()


def test_trained_flow_approaches_the_exact_correction():
    """On Gaussian data the learned correction is near the population optimum."""
    target = ccvfm.GaussianMixture(
        torch.ones(1), torch.tensor([[1.0, -1.0]]), torch.full((1, 2), 0.5)
    )
    source = ccvfm.GaussianMixture(torch.ones(1), torch.zeros(1, 2), torch.ones(1, 2))
    X = target.sample(4000, generator=generator())
    flow = ccvfm.train(
        "ccvfm", X, mixture=source, start_fraction=1.0, iterations=1200, hidden=64, depth=2
    )
    laws = [ccvfm.ConditionalVelocity(m) for m in (source, target)]
    exact = ccvfm.ExactCorrection(*laws)
    x, t, tau = normal(500, 2), torch.zeros(500), torch.rand(500, generator=generator(1))
    v = torch.lerp(
        laws[0].sample(x, 0.0, generator=generator(2)),
        laws[1].sample(x, 0.0, generator=generator(3)),
        tau[:, None],
    )
    error = (flow.net(x, t, v, tau) - exact(x, t, v, tau)).square().sum(1).mean()
    assert error < 0.1 * exact(x, t, v, tau).square().sum(1).mean()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": torch.zeros(3)}, "X must be"),
        ({"method": "gan"}, "method must be one of"),
        ({"coupling": "other"}, "coupling must be one of"),
        ({"mixture": None}, "mixture must be given"),
        ({"coupling": "plan", "coreset": None}, "coreset must be given"),
        ({"start_fraction": 1.5}, r"start_fraction must be in \[0, 1\]"),
        ({"start_fraction": math.nan}, r"start_fraction must be in \[0, 1\]"),
        ({"iterations": 0}, "iterations must be"),
        ({"batch_size": 0}, "batch_size must be"),
        ({"learning_rate": -1.0}, "learning_rate must be"),
        ({"hidden": 0}, "hidden must be"),
        ({"X": torch.zeros(4, 3)}, "the means of mixture must have 3 columns"),
        ({"X": torch.zeros(4, 2, dtype=DOUBLE)}, r"the means of mixture must be torch\.float64"),
    ],
)
def test_training_refuses(moons, mixture, change, message):
    arguments = {"method": "ccvfm", "X": moons, "mixture": mixture, "iterations": 1} | change
    method, X = arguments.pop("method"), arguments.pop("X")
    with pytest.raises(ValueError, match=message):
        ccvfm.train(method, X, **arguments)


# --- sampling ----------------------------------------------------------------------------------


class Counter:
    """A network that counts its calls and records inner times."""

    def __init__(self) -> None:
        self.calls: list[tuple[float, float]] = []

    def __call__(self, x, t, v, tau):
        assert t.shape == tau.shape == x.shape[:1]
        self.calls.append((t[0].item(), tau[0].item()))
        return torch.zeros_like(v)


@pytest.mark.parametrize("steps", ccvfm.all_steps(8, max_outer=8, surrogate=True), ids=str)
def test_sampler_spends_what_it_says(mixture, steps):
    net = Counter()
    samples = ccvfm.sample_hierarchical(
        net, 10, 2, source=ccvfm.ConditionalVelocity(mixture), outer_steps=steps.outer,
        inner_steps=steps.inner, solver=steps.solver, generator=generator(),
    )  # fmt: skip
    assert samples.shape == (10, 2)
    assert len(net.calls) == steps.nfe == 8
    assert sorted({t for t, _ in net.calls}) == [i / steps.outer for i in range(steps.outer)]


def test_all_steps_spend_exactly_the_budget():
    found = ccvfm.all_steps(4, max_outer=2, surrogate=True)
    assert {str(s) for s in found} == {"euler 1x4", "euler 2x2", "midpoint 1x2", "midpoint 2x1"}
    alone = ccvfm.all_steps(1, max_outer=1, surrogate=True)
    assert [str(s) for s in alone] == ["euler 1x1", "surrogate-midpoint 1x1"]


def test_noise_is_drawn_in_the_documented_order():
    """x first, then v in each outer step, with torch.randn."""
    shift = torch.tensor([1.0, -2.0])
    found = ccvfm.sample_hierarchical(
        lambda x, t, v, tau: shift.expand_as(v), 3, 2, outer_steps=2, generator=generator(7)
    )
    g = generator(7)
    x, first, second = (torch.randn(3, 2, generator=g) for _ in range(3))
    assert torch.allclose(found, x + (first + shift) / 2 + (second + shift) / 2)


def test_inner_solvers_have_their_order():
    """On dv/dtau = v, Euler and midpoint give their own growth factors."""

    def growth(solver, steps):
        x = ccvfm.sample_hierarchical(
            lambda x, t, v, tau: v, 4, 1, inner_steps=steps, solver=solver, generator=generator()
        )
        g = generator()
        start, v = (torch.randn(4, 1, generator=g) for _ in range(2))
        return ((x - start) / v).mean().item()

    assert growth("euler", 2) == pytest.approx(1.5**2, rel=1e-4)
    assert growth("midpoint", 2) == pytest.approx((1 + 0.5 + 0.125) ** 2, rel=1e-4)


def test_rectified_and_data_flow_integrate(mixture):
    x = ccvfm.sample_rectified(
        lambda x, t, v, tau: 2 * t[:, None].expand_as(x), 5, 2, steps=4, solver="midpoint",
        generator=generator(),
    )  # fmt: skip
    assert torch.allclose(x, torch.randn(5, 2, generator=generator()) + 1, atol=1e-6)
    moved = ccvfm.sample_data_flow(
        lambda x, t, v, tau: torch.ones_like(v), mixture, 5, steps=3, generator=generator()
    )
    assert torch.allclose(moved, mixture.sample(5, generator=generator()) + 1, atol=1e-6)


def test_surrogate_sampler_draws_the_mixture(mixture):
    law = ccvfm.ConditionalVelocity(mixture)
    samples = ccvfm.sample_surrogate(law, 20_000, outer_steps=3, generator=generator())
    assert torch.allclose(samples.mean(0), mixture.mean(), atol=0.03)
    assert torch.allclose(samples.var(0), mixture.variance(), atol=0.03)


def test_sampling_refuses(mixture):
    net = Counter()
    for name in ("outer_steps", "inner_steps"):
        with pytest.raises(ValueError, match=name):
            ccvfm.sample_hierarchical(net, 3, 2, **{name: 0}, generator=generator())
    with pytest.raises(ValueError, match="solver must be one of"):
        ccvfm.sample_hierarchical(net, 3, 2, solver="heun", generator=generator())
    with pytest.raises(ValueError, match="source must be given"):
        ccvfm.sample_hierarchical(net, 3, 2, solver="surrogate_midpoint", generator=generator())
    with pytest.raises(ValueError, match="num_samples"):
        ccvfm.sample_rectified(net, 0, 2, steps=1, generator=generator())
    with pytest.raises(ValueError, match="steps"):
        ccvfm.sample_rectified(net, 3, 2, steps=0, generator=generator())
    with pytest.raises(ValueError, match="solver"):
        ccvfm.sample_data_flow(net, mixture, 3, steps=1, solver="rk4", generator=generator())
    law = ccvfm.ConditionalVelocity(mixture)
    with pytest.raises(ValueError, match="x must have shape"):
        ccvfm.sample_hierarchical(net, 3, 5, source=law, generator=generator())


# --- metrics, data and evaluation --------------------------------------------------------------


def test_frechet_distance_is_the_closed_form():
    a = normal(500, 3, dtype=DOUBLE) @ normal(3, 3, seed=1, dtype=DOUBLE)
    b = normal(400, 3, seed=2, dtype=DOUBLE) + 1
    A, B = np.cov(a.T.numpy()), np.cov(b.T.numpy())
    shift = (a.mean(0) - b.mean(0)).square().sum().item()
    expected = shift + np.trace(A + B - 2 * sqrtm(A @ B).real)
    assert ccvfm.frechet_distance(a, b) == pytest.approx(expected, rel=1e-6)
    assert ccvfm.frechet_distance(a, a) == pytest.approx(0, abs=1e-9)
    assert ccvfm.frechet_distance(a[:, :1], a[:, :1] + 2) == pytest.approx(4, rel=1e-9)


def test_sliced_w2_of_a_shift():
    a = normal(300, 5)
    shift = torch.zeros(5)
    shift[0] = 2.0
    value = ccvfm.sliced_w2(a, a + shift, projections=4000)
    assert value == pytest.approx(4 / 5, rel=0.1)  # mean squared projection of the shift
    assert ccvfm.sliced_w2(a, a) == pytest.approx(0, abs=1e-9)
    assert ccvfm.sliced_w2(a, a + shift, seed=3) == ccvfm.sliced_w2(a, a + shift, seed=3)


@pytest.mark.parametrize("rows", [60, 40])
def test_sliced_w2_is_the_value_of_pot(rows):
    a, b = normal(60, 4, dtype=DOUBLE), normal(rows, 4, seed=1, dtype=DOUBLE) + 0.3
    peer = ot.sliced_wasserstein_distance(a.numpy(), b.numpy(), n_projections=50, seed=2) ** 2
    assert ccvfm.sliced_w2(a, b, projections=50, seed=2) == pytest.approx(peer, rel=1e-9)


def test_precision_and_recall_of_extremes():
    real = normal(300, 4)
    assert ccvfm.precision_recall(real, real) == (1.0, 1.0)
    assert ccvfm.precision_recall(real, real + 100) == (0.0, 0.0)
    collapsed = real[:1] + 1e-3 * normal(300, 4, seed=1)
    precision, recall = ccvfm.precision_recall(real, collapsed)
    assert precision == 1.0
    assert recall < 0.05


def test_metrics_refuse():
    a = normal(10, 3)
    for function in (ccvfm.frechet_distance, ccvfm.sliced_w2, ccvfm.precision_recall):
        with pytest.raises(ValueError, match="second set must have 3 columns"):
            function(a, normal(10, 2))
        with pytest.raises(ValueError, match="finite"):
            function(a, torch.full((10, 3), math.nan))
    with pytest.raises(ValueError, match="at least 2 rows"):
        ccvfm.frechet_distance(a, a[:1])
    with pytest.raises(ValueError, match="at least 6 rows"):
        ccvfm.precision_recall(a, a[:5])
    with pytest.raises(ValueError, match="projections"):
        ccvfm.sliced_w2(a, a, projections=0)
    with pytest.raises(ValueError, match="k must be"):
        ccvfm.precision_recall(a, a, k=0)


@pytest.mark.parametrize(
    ("dataset", "side", "sizes"), [("mnist10k", 14, (8000, 2000)), ("digits", 8, (1438, 359))]
)
def test_images_are_scaled_and_decoded(dataset, side, sizes):
    data = ccvfm.load_images(dataset, pca_dim=40)
    assert (len(data.train), len(data.test)) == sizes
    assert data.train.var(0, correction=0).sum().item() == pytest.approx(40, rel=1e-3)
    assert data.train.mean(0).abs().max() < 1e-4
    assert 0.8 < data.explained < 1
    full = ccvfm.load_images(dataset, pca_dim=side**2)
    pixels = full.decode(full.test)
    assert pixels.shape == (sizes[1], 1, side, side)
    assert pixels.min() > -1.01
    assert pixels.max() < 1.01
    # The decoder is an isometry up to the one scale.
    ratio = (pixels[0] - pixels[1]).norm() / (full.test[0] - full.test[1]).norm()
    other = (pixels[2] - pixels[5]).norm() / (full.test[2] - full.test[5]).norm()
    assert ratio.item() == pytest.approx(other.item(), rel=1e-3)


def test_images_hold_ten_digits_in_both_parts():
    data = ccvfm.load_images(pca_dim=2)
    assert data.train_labels.unique().tolist() == list(range(10))
    assert data.test_labels.unique().tolist() == list(range(10))
    assert ccvfm.load_images(pool=1, pca_dim=2).side == 28


def test_images_refuse(digits):
    with pytest.raises(ValueError, match="dataset must be one of"):
        ccvfm.load_images("cifar")
    with pytest.raises(ValueError, match="pool must be 1, 2 or 4"):
        ccvfm.load_images(pool=3)
    with pytest.raises(ValueError, match=r"pca_dim must be in \[1, 64\]"):
        ccvfm.load_images("digits", pca_dim=65)
    with pytest.raises(ValueError, match="z must have 20 columns"):
        digits.decode(torch.zeros(1, 3))


def test_plane_data():
    circle = ccvfm.eight_gaussians()
    assert torch.allclose(circle.means.norm(dim=1), torch.full((8,), 2.0, dtype=DOUBLE))
    moons = ccvfm.two_moons(5000, noise=0.0, generator=generator())
    assert moons.mean(0).abs().max() < 0.05
    # Each point lies on one of the two unit half circles.
    centres = torch.tensor([[-0.5, -0.25], [0.5, 0.25]])
    assert ((torch.cdist(moons, centres) - 1).abs().amin(1) < 1e-5).all()
    spread = ccvfm.random_mixture(16, 200, seed=0).variance().sum().item()
    assert spread == pytest.approx(16, rel=0.1)


def test_scorer_prefers_real_digits(digits, scorer):
    assert scorer.accuracy() > 0.7
    real = scorer.score(digits.train[:200])
    noise = scorer.score(normal(200, 20))
    assert real.fd < 0.5 * noise.fd
    assert real.sliced < noise.sliced
    assert real.precision > noise.precision


def test_bench_compares_on_the_same_noise(digits, scorer):
    mixture = ccvfm.lift(digits.train, ccvfm.entropic_coreset(digits.train, 4))
    source = ccvfm.ConditionalVelocity(mixture)
    bench = ccvfm.Bench(scorer, budgets=(1, 2), num_samples=100)

    def zero(x, t, v, tau):
        return torch.zeros_like(v)

    trials = [bench.surrogate(source, seed=3)]
    trials += bench.rectified("rf", zero, seed=3)
    trials += bench.hierarchical(
        "ours", zero, seed=3, source=source, one_step=True, surrogate_midpoint=True
    )
    trials += bench.hierarchical(
        "hrf", zero, seed=3, source=None, one_step=False, surrogate_midpoint=False
    )
    assert [t.nfe for t in trials if t.method == "ours"] == [1, 1, 2, 2]
    assert len([t for t in trials if t.method == "hrf"]) == 4  # 1x1; 1x2, 2x1, midpoint 1x1
    # A correction of zero leaves the surrogate's own samples.
    assert ccvfm.best(trials, "ours", 2)[0] == ccvfm.best(trials, "surrogate", 0)[0]
    euler = ccvfm.best(trials, "hrf", 2, solvers=("euler",))
    assert ccvfm.best(trials, ("hrf", "ours"), 2)[0] <= euler[0]
    with pytest.raises(ValueError, match="trials hold none"):
        ccvfm.best(trials, "ours", 5)


def test_best_takes_the_minimum_a_seed():
    def trial(seed, solver, fd):
        scores = ccvfm.Scores(fd, 0.0, 0.0, 0.0)
        return ccvfm.Trial("m", seed, ccvfm.Steps(1, 2, solver), 2, scores)

    trials = [trial(1, "euler", 5.0), trial(0, "euler", 9.0), trial(0, "midpoint", 3.0)]
    assert ccvfm.best(trials, "m", 2).tolist() == [3.0, 5.0]
    assert ccvfm.best(trials, "m", 2, solvers=("euler",)).tolist() == [9.0, 5.0]


def test_score_table():
    table = ccvfm.score_table(["a", "b"], [["<x>", "1"]])
    assert repr(table) == "a | b\n<x> | 1"
    assert "<td>&lt;x&gt;</td><td>1</td>" in table._repr_html_()
    with pytest.raises(ValueError, match="rows must have 2 cells"):
        ccvfm.score_table(["a", "b"], [["x"]])


# --- the paper's scale -------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("method", "options"), METHODS)
def test_paper_profile_reaches_its_first_step(method, options):
    """The profile's sizes on stand-in data: coreset, lift and one optimisation step."""
    profile = load_card("ccvfm").profile("paper")
    atoms = profile["num_atoms"]
    X = normal(atoms + 40, profile["pca_dim"])
    found = ccvfm.entropic_coreset(X, atoms, iterations=2)
    flow = ccvfm.train(
        method, X, mixture=ccvfm.lift(X, found), coreset=found, iterations=1,
        hidden=profile["hidden"], **options,
    )  # fmt: skip
    assert len(flow.losses) == 1
    assert math.isfinite(flow.losses[0])

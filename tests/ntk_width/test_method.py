"""The package against independent computations: loops, autograd, quadrature of the definitions."""

from itertools import pairwise
from math import sqrt

import pytest
import torch

from paperbook.ntk_width import (
    Params,
    Spectrum,
    Task,
    arc_cosine_kernels,
    digits,
    empirical_ntk,
    flip_fraction_bound,
    flip_fractions,
    forward,
    gaussian_init,
    gaussian_responses,
    hidden_share,
    init_width_of,
    initial_quality,
    kernel_drift,
    limiting_ntk,
    linearised_loss,
    loglog_slope,
    low_rank_responses,
    make_generator,
    minimum_width,
    nesterov_momentum,
    rate_holds,
    rate_width_of,
    resolve_device,
    scales,
    sketched_init,
    sphere,
    train,
    train_both,
    train_regime,
    window_steps,
)
from paperbook.ntk_width.network import gradients, residuals
from paperbook.ntk_width.width import crossing_width, width_grid


def test_forward_is_the_sum_over_neurons(small):
    params, X, _ = small
    expected = torch.zeros(5, 3, dtype=torch.float64)
    for i in range(5):
        for r in range(7):
            pre = float(params.W[r] @ X[i])
            expected[i] += params.V[:, r] * max(pre, 0.0) / sqrt(7)
    assert torch.allclose(forward(params, X), expected, atol=1e-12)


def test_trusted_weights_equal_checked_ones(small):
    params, X, _ = small
    trusted = Params.trusted(params.W, params.V)
    assert trusted.W is params.W
    assert trusted.V is params.V
    assert (trusted.width, trusted.output_dim) == (7, 3)
    assert torch.equal(forward(trusted, X), forward(params, X))


def test_gradients_are_those_of_autograd(small):
    params, X, Y = small
    W, V = params.W.clone().requires_grad_(), params.V.clone().requires_grad_()
    loss = 0.5 * (torch.relu(X @ W.T) @ V.T / sqrt(7) - Y).square().sum()
    expected = torch.autograd.grad(loss, (W, V))
    found = gradients(params.V, X, *residuals(params.W, params.V, X, Y))
    for got, want in zip(found, expected, strict=True):
        assert torch.allclose(got, want, atol=1e-12)


def test_scales_have_the_ratio_and_the_product():
    alpha, beta = scales(16.0, 3.0)
    assert beta / alpha == pytest.approx(16)
    assert alpha * beta == pytest.approx(3)


def test_gaussian_start_has_its_two_scales():
    start = gaussian_init(20000, 5, 3, alpha=0.2, beta=4.0, generator=make_generator(1))
    assert start.W.shape == (20000, 5)
    assert start.V.shape == (3, 20000)
    assert float(start.W.std()) == pytest.approx(0.2, rel=0.02)
    assert float(start.V.std()) == pytest.approx(4.0, rel=0.02)


def test_zero_output_start_is_zero_and_keeps_the_kernel(small):
    _, X, _ = small
    start = gaussian_init(40, 4, 3, alpha=1, beta=2, generator=make_generator(2), zero_output=True)
    assert float(forward(start, X).abs().max()) < 1e-12
    half = Params(start.W[:20], start.V[:, :20])
    for whole, part in zip(empirical_ntk(start, X), empirical_ntk(half, X), strict=True):
        assert torch.allclose(whole, part, atol=1e-12)


def test_sketched_start_lies_in_the_response_space():
    Y = low_rank_responses(8, 6, 2, condition=5.0, generator=make_generator(3))
    start = sketched_init(5000, 4, Y, alpha=1, beta=3, generator=make_generator(4))
    assert torch.linalg.matrix_rank(torch.cat([Y.T, start.V], dim=1)) == 2
    strongest = torch.linalg.svd(Y).Vh[0] @ start.V
    assert float(strongest.std()) == pytest.approx(3.0, rel=0.05)


def test_a_seed_decides_the_start():
    a, b, c = (
        gaussian_init(6, 3, 2, alpha=1, beta=1, generator=make_generator(*key))
        for key in ((5, 1), (5, 1), (5, 2))
    )
    assert torch.equal(a.W, b.W)
    assert torch.equal(a.V, b.V)
    assert not torch.equal(a.W, c.W)


def test_limiting_kernels_at_known_angles():
    X = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]], dtype=torch.float64)
    H, G = arc_cosine_kernels(X)
    right = 1 / (2 * torch.pi)
    expected_H = torch.tensor([[0.5, 0, 0], [0, 0.5, 0], [0, 0, 0.5]], dtype=torch.float64)
    expected_G = torch.tensor(
        [[0.5, right, 0], [right, 0.5, right], [0, right, 0.5]], dtype=torch.float64
    )
    assert torch.allclose(H, expected_H, atol=1e-12)
    assert torch.allclose(G, expected_G, atol=1e-12)


def test_limiting_kernels_survive_duplicates_and_rounding():
    """A cosine that rounds past 1 must not become NaN."""
    X = sphere(200, 3, generator=make_generator(6)) * 1e3
    H, G = arc_cosine_kernels(torch.cat([X, X]))
    assert bool(torch.isfinite(H).all() and torch.isfinite(G).all())
    assert torch.allclose(H.diagonal(), 0.5 * torch.full((400,), 1e6, dtype=X.dtype))


def test_limiting_ntk_weighs_the_kernels(small):
    _, X, _ = small
    H, G = arc_cosine_kernels(X)
    assert torch.allclose(limiting_ntk(X, alpha=0.5, beta=3.0), 9 * H + 0.25 * G)
    assert torch.equal(limiting_ntk(X, alpha=0.0, beta=1.0), H)


def test_empirical_kernel_entries(small):
    """One entry from the definition, sample-major: row 3·2 + 1 is sample 2, output 1."""
    params, X, _ = small
    hidden, output = empirical_ntk(params, X)
    active = (X @ params.W.T > 0).double()
    block = sum(params.V[1, r] * params.V[0, r] * active[2, r] * active[4, r] for r in range(7))
    assert float(hidden[7, 12]) == pytest.approx(float(X[2] @ X[4] * block / 7), abs=1e-12)
    features = torch.relu(X @ params.W.T)
    assert float(output[7, 13]) == pytest.approx(float(features[2] @ features[4] / 7), abs=1e-12)
    assert output[7, 12] == 0


def test_hidden_share_is_the_ratio_of_traces(small):
    params, X, _ = small
    X = X * torch.linspace(0.5, 2, 5, dtype=X.dtype)[:, None]
    hidden, output = empirical_ntk(params, X)
    expected = hidden.trace() / (hidden.trace() + output.trace())
    assert hidden_share(params, X) == pytest.approx(float(expected), rel=1e-12)


def reference_run(params, X, Y, step_size, steps, momentum):
    """The pseudo-code with autograd: θ_{-1} = θ_0, look ahead, step."""
    now = [params.W, params.V]
    before = now
    for _ in range(steps):
        look = [(a + momentum * (a - b)).requires_grad_() for a, b in zip(now, before, strict=True)]
        loss = 0.5 * (torch.relu(X @ look[0].T) @ look[1].T / sqrt(len(look[0])) - Y).square().sum()
        slopes = torch.autograd.grad(loss, look)
        before = now
        now = [(a - step_size * g).detach() for a, g in zip(look, slopes, strict=True)]
    return now


@pytest.mark.parametrize(("method", "momentum"), [("gd", None), ("nag", 0.8), ("nag", 0.0)])
def test_train_follows_the_pseudo_code(small, method, momentum):
    params, X, Y = small
    run = train(params, X, Y, step_size=0.05, steps=30, method=method, momentum=momentum)
    W, V = reference_run(params, X, Y, 0.05, 30, momentum or 0.0)
    assert torch.allclose(run.params.W, W, atol=1e-10)
    assert torch.allclose(run.params.V, V, atol=1e-10)
    final = 0.5 * (forward(run.params, X) - Y).square().sum()
    assert len(run.loss) == 31
    assert float(run.loss[-1]) == pytest.approx(float(final), rel=1e-12)
    assert not run.diverged


def test_train_measures_its_path(small):
    params, X, Y = small
    points = []
    run = train(
        params,
        X,
        Y,
        step_size=0.05,
        steps=10,
        callback=lambda t, loss, p: points.append(torch.cat([p.W.flatten(), p.V.flatten()])),
    )
    expected = sum(float((b - a).norm()) for a, b in pairwise(points))
    assert run.path_length == pytest.approx(expected, rel=1e-12)
    assert len(points) == 11


def test_train_stops_at_the_tolerance_and_on_request(small):
    params, X, Y = small
    run = train(params, X, Y, step_size=0.02, steps=5000, tol=1e-2)
    assert run.loss[-1] <= 1e-2 * run.loss[0] < run.loss[-2]
    assert run.first_below(1e-2) == len(run.loss) - 1
    assert run.first_below(1e-9) is None
    stopped = train(params, X, Y, step_size=0.02, steps=50, callback=lambda t, loss, p: t == 3)
    assert len(stopped.loss) == 4


def test_train_reports_divergence_and_keeps_finite_weights(small):
    params, X, Y = small
    run = train(params, X, Y, step_size=1e3, steps=200)
    assert run.diverged
    assert len(run.loss) < 201
    assert bool(torch.isfinite(run.params.W).all())


def test_train_from_a_perfect_fit_does_nothing(small):
    params, X, _ = small
    run = train(params, X, forward(params, X), step_size=0.1, steps=5)
    assert not run.diverged
    assert run.path_length == 0


def test_nesterov_momentum_values():
    assert nesterov_momentum(1.0) == 0
    assert nesterov_momentum(9.0) == pytest.approx(0.5)


@pytest.mark.parametrize("momentum", [0.0, 0.6])
def test_linearised_loss_is_the_matrix_recursion(momentum):
    kernel = limiting_ntk(sphere(6, 4, generator=make_generator(7)), alpha=0.3, beta=2.0)
    R0 = gaussian_responses(6, 2, generator=make_generator(8))
    loss = linearised_loss(kernel, R0, step_size=0.2, steps=12, momentum=momentum)
    shrink = torch.eye(6, dtype=torch.float64) - 0.2 * kernel
    now = before = R0
    for _ in range(12):
        now, before = shrink @ (now + momentum * (now - before)), now
    assert float(loss[-1]) == pytest.approx(float(0.5 * now.square().sum()), rel=1e-9)
    assert len(loss) == 13


def test_a_wide_network_follows_its_linearisation():
    generator = make_generator(9)
    X, Y = sphere(6, 8, generator=generator), gaussian_responses(6, 2, generator=generator)
    task = Task(X, Y, 16.0, 8.0, zero_output=True)
    descent, nesterov = train_both(task, 8192, 0, tol=1e-4, max_steps=500)
    step_size = task.spectrum.step_size()
    momentum = nesterov_momentum(1 / (step_size * task.spectrum.smallest))
    for run, mu in ((descent, 0.0), (nesterov, momentum)):
        line = linearised_loss(task.limit, -Y, step_size=step_size, steps=10, momentum=mu)
        deviation = run.loss[:11].sqrt() - line.sqrt()
        assert float(deviation.abs().max()) <= 0.01 * float(line[0].sqrt())


def test_drift_parts_add_up_to_the_total(small):
    params, X, Y = small
    end = train(params, X, Y, step_size=0.05, steps=40).params
    drift = kernel_drift(params, end, X)
    before, after = sum(empirical_ntk(params, X)), sum(empirical_ntk(end, X))
    assert drift.total == pytest.approx(
        float(torch.linalg.matrix_norm(after - before, ord=2)), rel=1e-9
    )
    assert drift.total <= drift.flips + drift.output_weights + drift.conjugate + 1e-12
    changed = (X @ params.W.T > 0) != (X @ end.W.T > 0)
    assert drift.flip_fraction == pytest.approx(float(changed.double().mean()))
    assert drift.flip_fraction > 0


def test_drift_separates_its_causes(small):
    params, X, _ = small
    only_V = kernel_drift(params, Params(params.W, 1.5 * params.V), X)
    assert only_V.flips == only_V.conjugate == only_V.flip_fraction == 0
    assert only_V.total == pytest.approx(only_V.output_weights)
    # Longer hidden weights flip nothing and leave K_W alone.
    only_W = kernel_drift(params, Params(2 * params.W, params.V), X)
    assert only_W.flips == only_W.output_weights == 0
    assert only_W.total == pytest.approx(only_W.conjugate)


def test_flip_fractions_count_by_sample(small):
    params, X, _ = small
    flipped = Params(-params.W, params.V)
    assert torch.equal(flip_fractions(params, flipped, X), torch.ones(5, dtype=torch.float64))
    assert float(flip_fractions(params, params, X).max()) == 0
    assert torch.equal(flip_fraction_bound(params, X, 0.0), torch.zeros(5, dtype=torch.float64))


def test_width_grid_and_minimum_width():
    assert width_grid(4, 2**0.5, 32) == [4, 6, 8, 11, 16, 23, 32]
    assert width_grid(1, 1.2, 4) == [1, 2, 3, 4]
    tried = []

    def criterion(width: int) -> bool:
        tried.append(width)
        return width in (8, 16)

    assert minimum_width(criterion) == 8
    assert tried == [4, 6, 8]
    assert minimum_width(lambda m: False, limit=50) is None


def test_crossing_width_interpolates():
    found = crossing_width(lambda m: m / 100, level=0.5, limit=400)
    assert 45 <= found <= 64
    low, high = 45, 64
    part = (0.5 - low / 100) / ((high - low) / 100)
    assert found == pytest.approx(low ** (1 - part) * high**part)
    assert crossing_width(lambda m: 1.0, level=0.5) == 4
    assert crossing_width(lambda m: 0.0, level=0.5, limit=100) is None


def tiny_task(**kind) -> Task:
    generator = make_generator(10)
    return Task(
        sphere(5, 6, generator=generator), gaussian_responses(5, 2, generator=generator), **kind
    )


def test_rate_holds_for_wide_networks_only():
    task = tiny_task()
    assert rate_holds(task, 2048, 0)
    assert not rate_holds(task, 4, 0)
    width = rate_width_of(task, range(2), limit=2048)
    assert 4 < width <= 2048
    assert all(rate_holds(task, width, seed) for seed in range(2))


def test_rate_holds_is_the_envelope_of_the_whole_run():
    task = tiny_task()
    step_size = task.spectrum.step_size()
    pace = step_size * task.spectrum.smallest
    for width in (16, 64, 256):
        start = task.start(width, 1)
        run = train(start, task.X, task.Y, step_size=step_size, steps=int(2 * 4.605 / pace) + 1)
        t = torch.arange(len(run.loss), dtype=torch.float64)
        below = (run.loss / run.loss[0]).sqrt() <= (1 - pace / 2) ** t * (1 + 1e-9)
        assert rate_holds(task, width, 1) == bool(below.all())


def test_initial_quality_is_the_ratio_of_eigenvalues():
    task = tiny_task(ratio=4.0)
    smallest = torch.linalg.eigvalsh(sum(empirical_ntk(task.start(64, 3), task.X)))[0]
    limit = torch.linalg.eigvalsh(limiting_ntk(task.X, alpha=0.5, beta=2.0))[0]
    assert initial_quality(task, 64, 3) == pytest.approx(float(smallest / limit))
    assert initial_quality(task, 20000, 3) == pytest.approx(1, abs=0.15)
    width = init_width_of(task, range(3), limit=2000)
    found = sorted(initial_quality(task, round(width * 2**0.5), seed) for seed in range(3))
    assert found[1] > 0.4
    assert init_width_of(task, range(3), limit=5) is None


def test_init_width_takes_the_median_over_the_starts(monkeypatch):
    """Three starts that reach the level at 8, 16 and 64 neurons: the second one decides."""
    steps = {0: 8, 1: 16, 2: 64}
    monkeypatch.setattr(
        "paperbook.ntk_width.width.initial_quality",
        lambda task, width, seed: 0.5 if width >= steps[seed] else 0.0,
    )
    assert init_width_of(tiny_task(), range(3), limit=100) == pytest.approx(16)


def test_sketched_quality_lives_on_the_subspace():
    generator = make_generator(12)
    X = sphere(6, 8, generator=generator)
    Y = low_rank_responses(6, 9, 2, condition=4.0, generator=generator)
    task = Task(X, Y, sketched=True)
    assert initial_quality(task, 20000, 0) == pytest.approx(1, abs=0.15)
    plain = Task(X, Y)
    assert plain.spectrum.smallest > 10 * task.spectrum.smallest
    assert plain.spectrum.largest == pytest.approx(task.spectrum.largest)


def test_train_regime_reports_what_it_ran():
    task = tiny_task(ratio=8.0)
    run = train_regime(task, 256, 0, tol=1e-3, max_steps=1000)
    again = train(
        task.start(256, 0),
        task.X,
        task.Y,
        step_size=task.spectrum.step_size(),
        steps=1000,
        tol=1e-3,
    )
    assert torch.equal(run.loss, again.loss)
    assert run.iterations == len(again.loss) - 1 < 1000
    assert run.share_min <= run.share_start < 1
    assert 0 < run.flip_worst <= run.flip_bound
    drift = kernel_drift(task.start(256, 0), again.params, task.X)
    for part in ("total", "flips", "output_weights", "conjugate"):
        relative = getattr(drift, part) / task.spectrum.smallest
        assert getattr(run.drift, part) == pytest.approx(relative)
    assert run.drift.flip_fraction == drift.flip_fraction
    final = torch.linalg.eigvalsh(sum(empirical_ntk(again.params, task.X)))[0]
    assert run.smallest_end == pytest.approx(float(final) / task.spectrum.smallest)
    # The share is followed over the whole run: here it ends below where it began.
    assert run.share_min <= hidden_share(again.params, task.X) < run.share_start


def test_a_regime_that_never_arrives_counts_as_the_cap():
    """For want of steps, and because it diverges: neither may look like a short run."""
    assert train_regime(tiny_task(), 64, 0, tol=1e-3, max_steps=2).iterations == 2
    task = tiny_task()
    task.__dict__["spectrum"] = Spectrum(largest=1e-2, smallest=1e-3)  # a step far too long
    run = train_regime(task, 64, 0, tol=1e-3, max_steps=500)
    assert len(run.loss) < 500
    assert run.iterations == 500


def test_window_steps_counts_between_two_losses():
    run = train_both(tiny_task(), 256, 0, tol=1e-6, max_steps=2000)[0]
    window = window_steps(run.loss, 1e-2, 1e-6)
    assert run.loss[run.first_below(1e-2)] <= 1e-2 * run.loss[0]
    assert window == run.first_below(1e-6) - run.first_below(1e-2) > 0
    assert window_steps(run.loss, 1e-2, 1e-12) is None


def test_loglog_slope_of_a_power():
    x = [1.0, 2.0, 5.0, 9.0]
    assert loglog_slope(x, [3 * v**-1.7 for v in x]) == pytest.approx(-1.7)


def test_spectrum():
    spectrum = Spectrum.of(torch.diag(torch.tensor([1.0, 4.0, 8.0], dtype=torch.float64)))
    assert spectrum.condition == pytest.approx(8)
    assert spectrum.step_size() == pytest.approx(1 / 16)


def test_spike_raises_the_condition_number_without_duplicates():
    conditions = []
    for spike in (0.0, 0.5, 0.85):
        X = sphere(12, 24, generator=make_generator(13), spike=spike)
        assert torch.allclose(X.norm(dim=1), torch.ones(12, dtype=X.dtype))
        assert float((X @ X.T - torch.eye(12, dtype=X.dtype)).max()) < 0.98
        conditions.append(Spectrum.of(arc_cosine_kernels(X)[0]).condition)
    assert conditions[0] < conditions[1] < conditions[2]
    assert conditions[2] > 5 * conditions[0]


def test_low_rank_responses_have_the_asked_spectrum():
    Y = low_rank_responses(16, 9, 3, condition=8.0, generator=make_generator(14))
    singular = torch.linalg.svdvals(Y)
    expected = 4 * torch.tensor([1, 8**-0.5, 1 / 8], dtype=Y.dtype)
    assert torch.allclose(singular[:3], expected)
    assert float(singular[3:].max()) < 1e-12


def test_digits_are_balanced_centred_and_of_rank_nine():
    X, Y = digits(64, seed=0)
    assert X.shape == (64, 64)
    assert torch.allclose(X.norm(dim=1), torch.ones(64, dtype=X.dtype))
    counts = (Y > 0.5).sum(0)
    assert int(counts.max() - counts.min()) <= 1
    assert torch.allclose(Y.sum(0), torch.zeros(10, dtype=Y.dtype), atol=1e-12)
    assert torch.linalg.matrix_rank(Y) == 9
    assert not torch.equal(X, digits(64, seed=1)[0])


def test_resolve_device():
    assert resolve_device("cpu") == torch.device("cpu")
    assert resolve_device("auto").type in ("cpu", "cuda")

"""Bad input raises a ValueError that names the argument."""

import pytest
import torch

from paperbook import ntk_width as nw

X = nw.sphere(5, 4, generator=nw.make_generator(0))
Y = nw.gaussian_responses(5, 3, generator=nw.make_generator(1))
P = nw.gaussian_init(6, 4, 3, alpha=1, beta=1, generator=nw.make_generator(2))
TASK = nw.Task(X, Y)
NAN = X.clone()
NAN[0, 0] = float("nan")
ZERO_ROW = X.clone()
ZERO_ROW[2] = 0
STEP = {"step_size": 0.1, "steps": 1}
ELSEWHERE = torch.empty(5, 4, dtype=torch.float64, device="meta")
FAR = nw.Params.trusted(P.W.to("meta"), P.V.to("meta"))


def gauss(*sizes, alpha=1.0, beta=1.0, **kind):
    return nw.gaussian_init(*sizes, alpha=alpha, beta=beta, **kind)


def sketch(*args, alpha=1.0, beta=1.0):
    return nw.sketched_init(*args, alpha=alpha, beta=beta)


BAD = {
    "kernel of a vector": ("X", lambda: nw.arc_cosine_kernels(X[0])),
    "kernel of nothing": ("X", lambda: nw.arc_cosine_kernels(X[:0])),
    "kernel of NaN": ("X", lambda: nw.arc_cosine_kernels(NAN)),
    "kernel of a zero row": ("X", lambda: nw.arc_cosine_kernels(ZERO_ROW)),
    "kernel of integers": ("X", lambda: nw.arc_cosine_kernels(torch.ones(2, 2, dtype=torch.int))),
    "limit alpha": ("alpha", lambda: nw.limiting_ntk(X, alpha=-1, beta=1)),
    "limit beta": ("beta", lambda: nw.limiting_ntk(X, alpha=1, beta=-1)),
    "params shapes": ("V", lambda: nw.Params(P.W, P.V[:, :-1])),
    "params NaN": ("W", lambda: nw.Params(NAN, torch.ones(1, 5, dtype=X.dtype))),
    "params devices": ("device", lambda: nw.Params(ELSEWHERE[:, :2], P.V[:, :5])),
    "init width": ("width", lambda: gauss(0, 4, 3)),
    "init input_dim": ("input_dim", lambda: gauss(6, 0, 3)),
    "init output_dim": ("output_dim", lambda: gauss(6, 4, 1.5)),
    "init alpha": ("alpha", lambda: gauss(6, 4, 3, alpha=0)),
    "init beta": ("beta", lambda: gauss(6, 4, 3, beta=float("nan"))),
    "init odd width": ("width", lambda: gauss(7, 4, 3, zero_output=True)),
    "sketch zero": ("Y", lambda: sketch(6, 4, torch.zeros_like(Y))),
    "sketch NaN": ("Y", lambda: sketch(6, 4, NAN)),
    "sketch width": ("width", lambda: sketch(0, 4, Y)),
    "sketch scale": ("beta", lambda: sketch(6, 4, Y, beta=-1.0)),
    "scales ratio": ("ratio", lambda: nw.scales(0, 1)),
    "scales product": ("output_scale", lambda: nw.scales(1, -2)),
    "forward columns": ("X", lambda: nw.forward(P, X[:, :3])),
    "forward NaN": ("X", lambda: nw.forward(P, NAN)),
    "forward device": ("device", lambda: nw.forward(P, ELSEWHERE)),
    "empirical columns": ("X", lambda: nw.empirical_ntk(P, X[:, :3])),
    "share columns": ("X", lambda: nw.hidden_share(P, X[:, :3])),
    "momentum": ("kappa", lambda: nw.nesterov_momentum(0.9)),
    "momentum NaN": ("kappa", lambda: nw.nesterov_momentum(float("nan"))),
    "train method": ("method", lambda: nw.train(P, X, Y, method="adam", **STEP)),
    "train step": ("step_size", lambda: nw.train(P, X, Y, step_size=0, steps=1)),
    "train steps": ("steps", lambda: nw.train(P, X, Y, step_size=0.1, steps=-1)),
    "train no momentum": ("momentum", lambda: nw.train(P, X, Y, method="nag", **STEP)),
    "train momentum": ("momentum", lambda: nw.train(P, X, Y, method="nag", momentum=1.0, **STEP)),
    "train gd momentum": ("momentum", lambda: nw.train(P, X, Y, momentum=0.5, **STEP)),
    "train tol": ("tol", lambda: nw.train(P, X, Y, tol=-1, **STEP)),
    "train Y": ("Y", lambda: nw.train(P, X, Y[:4], **STEP)),
    "train Y NaN": ("Y", lambda: nw.train(P, X, Y * float("nan"), **STEP)),
    "linear kernel": ("kernel", lambda: nw.linearised_loss(X @ X.T, Y[:4], **STEP)),
    "linear device": ("device", lambda: nw.linearised_loss(ELSEWHERE[:4], X[:4], **STEP)),
    "linear momentum": ("momentum", lambda: nw.linearised_loss(X @ X.T, Y, momentum=1, **STEP)),
    "drift shapes": ("end", lambda: nw.kernel_drift(P, gauss(5, 4, 3), X)),
    "drift devices": ("device", lambda: nw.kernel_drift(P, FAR, X)),
    "flips devices": ("device", lambda: nw.flip_fractions(P, FAR, X)),
    "flips shapes": ("end", lambda: nw.flip_fractions(P, gauss(5, 4, 3), X)),
    "flips radius": ("displacement", lambda: nw.flip_fraction_bound(P, X, -0.1)),
    "flips inputs": ("X", lambda: nw.flip_fraction_bound(P, X[:, :2], 0.1)),
    "typical radius": ("displacement", lambda: nw.typical_flip_fraction(-1, alpha=1, width=2)),
    "typical alpha": ("alpha", lambda: nw.typical_flip_fraction(1, alpha=0, width=2)),
    "jacobian radius": ("radius", lambda: nw.jacobian_change_bound(P, X, -1)),
    "jacobian norm": ("X", lambda: nw.jacobian_change_bound(P, 2 * X, 1)),
    "grid start": ("start", lambda: nw.minimum_width(bool, start=0)),
    "grid factor": ("factor", lambda: nw.minimum_width(bool, factor=1.0)),
    "grid limit": ("limit", lambda: nw.minimum_width(bool, limit=3)),
    "no seeds": ("seeds", lambda: nw.rate_width_of(TASK, [], limit=8)),
    "no seeds init": ("seeds", lambda: nw.init_width_of(TASK, [], limit=8)),
    "bound dim": ("output_dim", lambda: nw.norm_bound(0, 1)),
    "bound level": ("level", lambda: nw.norm_bound(1, -1)),
    "width delta": ("delta", lambda: nw.init_width(X, 2, delta=1)),
    "width collinear": ("X", lambda: nw.init_width(torch.cat([X, 2 * X]), 2, delta=0.1)),
    "scale norm": ("X", lambda: nw.zero_output_scale(2 * X, Y, width=4, ratio=1, delta=0.1)),
    "scale ratio": ("ratio", lambda: nw.zero_output_scale(X, Y, width=4, ratio=0, delta=0.1)),
    "gd envelope": ("kappa", lambda: nw.gd_envelope(0.5, 3)),
    "gd envelope NaN": ("kappa", lambda: nw.gd_envelope(float("nan"), 3)),
    "gd envelope steps": ("steps", lambda: nw.gd_envelope(2.0, -1)),
    "nag envelope": ("kappa", lambda: nw.nag_envelope(0.5, 3)),
    "nag envelope infinite": ("kappa", lambda: nw.nag_envelope(float("inf"), 3)),
    "nag envelope steps": ("steps", lambda: nw.nag_envelope(2.0, -1)),
    "spectrum": ("X", lambda: nw.Spectrum.of(torch.ones(2, 2, dtype=X.dtype))),
    "spectrum safety": ("safety", lambda: TASK.spectrum.step_size(0)),
    "task both": ("sketched", lambda: nw.Task(X, Y, sketched=True, zero_output=True)),
    "window": ("low", lambda: nw.window_steps(torch.ones(2), 1e-4, 1e-2)),
    "slope points": ("x", lambda: nw.loglog_slope([1.0], [2.0])),
    "slope lengths": ("x", lambda: nw.loglog_slope([1.0, 2.0], [2.0])),
    "slope sign": ("positive", lambda: nw.loglog_slope([1.0, 2.0], [0.0, 2.0])),
    "slope constant": ("x", lambda: nw.loglog_slope([2.0, 2.0], [1.0, 2.0])),
    "sphere size": ("num_samples", lambda: nw.sphere(0, 3)),
    "sphere spike": ("spike", lambda: nw.sphere(3, 3, spike=1.0)),
    "responses": ("output_dim", lambda: nw.gaussian_responses(3, 0)),
    "rank": ("rank", lambda: nw.low_rank_responses(3, 4, 4)),
    "condition": ("condition", lambda: nw.low_rank_responses(3, 4, 2, condition=0.5)),
    "condition of rank one": ("condition", lambda: nw.low_rank_responses(3, 4, 1, condition=2)),
    "seed": ("seed", lambda: nw.make_generator(-1)),
    "seed of a task": (
        "seed",
        lambda: nw.random_task(-1, num_samples=2, input_dim=2, output_dim=1),
    ),
    "seed of a start": ("seed", lambda: TASK.start(4, 0.5)),
    "digits": ("num_samples", lambda: nw.digits(5, seed=0)),
    "device": ("device", lambda: nw.resolve_device("abacus")),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named(case):
    name, call = BAD[case]
    with pytest.raises(ValueError, match=name):
        call()


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_missing_gpu_is_named():
    with pytest.raises(ValueError, match="device"):
        nw.resolve_device("cuda")

"""Near-linear-width convergence of two-layer ReLU networks in an NTK-dominated regime."""

from paperbook.ntk_width.data import (
    digits,
    gaussian_responses,
    low_rank_responses,
    make_generator,
    resolve_device,
    sphere,
)
from paperbook.ntk_width.drift import (
    Drift,
    JacobianChange,
    cheapest_flips,
    flip_fraction_bound,
    flip_fractions,
    jacobian_change,
    jacobian_change_bound,
    kernel_drift,
    typical_flip_fraction,
)
from paperbook.ntk_width.initial import gaussian_init, scales, sketched_init
from paperbook.ntk_width.kernels import (
    arc_cosine_kernels,
    empirical_ntk,
    hidden_share,
    limiting_ntk,
)
from paperbook.ntk_width.network import Params, forward
from paperbook.ntk_width.regime import (
    RegimeRun,
    loglog_slope,
    train_both,
    train_regime,
    window_steps,
)
from paperbook.ntk_width.task import Task, random_task
from paperbook.ntk_width.theory import (
    Spectrum,
    gd_envelope,
    init_width,
    nag_envelope,
    norm_bound,
    zero_output_scale,
)
from paperbook.ntk_width.training import Trajectory, linearised_loss, nesterov_momentum, train
from paperbook.ntk_width.width import (
    init_width_of,
    initial_quality,
    minimum_width,
    rate_holds,
    rate_width_of,
)

__all__ = [
    "Drift",
    "JacobianChange",
    "Params",
    "RegimeRun",
    "Spectrum",
    "Task",
    "Trajectory",
    "arc_cosine_kernels",
    "cheapest_flips",
    "digits",
    "empirical_ntk",
    "flip_fraction_bound",
    "flip_fractions",
    "forward",
    "gaussian_init",
    "gaussian_responses",
    "gd_envelope",
    "hidden_share",
    "init_width",
    "init_width_of",
    "initial_quality",
    "jacobian_change",
    "jacobian_change_bound",
    "kernel_drift",
    "limiting_ntk",
    "linearised_loss",
    "loglog_slope",
    "low_rank_responses",
    "make_generator",
    "minimum_width",
    "nag_envelope",
    "nesterov_momentum",
    "norm_bound",
    "random_task",
    "rate_holds",
    "rate_width_of",
    "resolve_device",
    "scales",
    "sketched_init",
    "sphere",
    "train",
    "train_both",
    "train_regime",
    "typical_flip_fraction",
    "window_steps",
    "zero_output_scale",
]

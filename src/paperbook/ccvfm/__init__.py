"""Coreset-induced conditional velocity flow matching: hierarchical flows that start informed."""

from paperbook.ccvfm.bounds import (
    euler_contraction,
    noise_cost_gelbrich_bound,
    noise_cost_lower_bound,
    plan_coupling_cost,
    second_moment_excess,
    squared_w2,
    target_second_moment,
    unconditional_noise_bound,
)
from paperbook.ccvfm.coreset import (
    Coreset,
    default_epsilon,
    entropic_coreset,
    lift,
    seed_atoms,
    squared_distances,
    transport_objective,
)
from paperbook.ccvfm.data import (
    ImageData,
    eight_gaussians,
    load_images,
    random_mixture,
    two_moons,
)
from paperbook.ccvfm.evaluation import Scorer, Scores, Steps, all_steps, train_features
from paperbook.ccvfm.exact import ExactCorrection, quadrature_moments
from paperbook.ccvfm.experiments import Bench, Trial, best, score_table
from paperbook.ccvfm.metrics import frechet_distance, precision_recall, sliced_w2
from paperbook.ccvfm.mixture import GaussianMixture
from paperbook.ccvfm.network import VelocityNet
from paperbook.ccvfm.sampling import (
    sample_data_flow,
    sample_hierarchical,
    sample_rectified,
    sample_surrogate,
)
from paperbook.ccvfm.training import TrainedFlow, train
from paperbook.ccvfm.velocity import ConditionalVelocity

__all__ = [
    "Bench",
    "ConditionalVelocity",
    "Coreset",
    "ExactCorrection",
    "GaussianMixture",
    "ImageData",
    "Scorer",
    "Scores",
    "Steps",
    "TrainedFlow",
    "Trial",
    "VelocityNet",
    "all_steps",
    "best",
    "default_epsilon",
    "eight_gaussians",
    "entropic_coreset",
    "euler_contraction",
    "frechet_distance",
    "lift",
    "load_images",
    "noise_cost_gelbrich_bound",
    "noise_cost_lower_bound",
    "plan_coupling_cost",
    "precision_recall",
    "quadrature_moments",
    "random_mixture",
    "sample_data_flow",
    "sample_hierarchical",
    "sample_rectified",
    "sample_surrogate",
    "score_table",
    "second_moment_excess",
    "seed_atoms",
    "sliced_w2",
    "squared_distances",
    "squared_w2",
    "target_second_moment",
    "train",
    "train_features",
    "transport_objective",
    "two_moons",
    "unconditional_noise_bound",
]

r"""Stages I and II: an entropic Sinkhorn coreset, and its lift to a Gaussian mixture."""

import warnings
from dataclasses import dataclass

import ot
import torch
from sklearn.cluster import kmeans_plusplus
from torch import Tensor

from paperbook.ccvfm import checks
from paperbook.ccvfm.mixture import GaussianMixture

MARGINALS = ("free", "uniform")
COVARIANCES = ("diagonal", "isotropic", "tied")


@dataclass(frozen=True, eq=False)
class Coreset:
    r"""Weighted atoms $(w_k, y_k)$ and the plan $P$ that ties each data point to them.

    ``weights`` (K,) are the column sums of ``plan`` (N, K), whose rows sum to 1/N; ``atoms`` (K, d)
    are the plan's barycentres. ``objective[j]`` is the objective for the atoms and weights that
    enter iteration j.
    """

    weights: Tensor
    atoms: Tensor
    plan: Tensor
    objective: list[float]
    epsilon: float


def entropic_coreset(
    X: Tensor,
    num_atoms: int,
    *,
    epsilon: float | None = None,
    iterations: int = 25,
    marginal: str = "free",
    initial_atoms: Tensor | None = None,
    seed: int = 0,
) -> Coreset:
    r"""Minimise $\mathrm{OT}_\varepsilon(\mu_N, \sum_k w_k\delta_{y_k})$ by alternation (stage I).

    Args:
        X: data (N, d), finite.
        num_atoms: K in 1..N.
        epsilon: entropy, > 0; ``None`` takes a tenth of the mean squared distance to the
            nearest initial atom.
        iterations: rounds of plan, weights and atoms, >= 1.
        marginal: ``"free"`` optimises the weights (the alternation is then EM), ``"uniform"``
            holds them at 1/K by balanced Sinkhorn plans.
        initial_atoms: (K, d); k-means++ seeds by default.
        seed: of the k-means++ seeding.

    Raises:
        ValueError: an argument outside what is said above.

    Source: stage I of the paper; the objective and the solver are our reading of it.
    """
    _require_size(X, num_atoms)
    if epsilon is not None:
        checks.positive("epsilon", epsilon)
    checks.at_least("iterations", iterations, 1)
    checks.one_of("marginal", marginal, MARGINALS)
    if initial_atoms is None:
        atoms = seed_atoms(X, num_atoms, seed=seed)
    else:
        atoms = _checked(initial_atoms, X, num_atoms)
    weights = torch.full_like(X[:num_atoms, 0], 1 / num_atoms)
    epsilon = default_epsilon(X, atoms) if epsilon is None else float(epsilon)

    objective = []
    for _ in range(iterations):
        cost = squared_distances(X, atoms)
        plan = _plan(cost, weights, epsilon, marginal)
        objective.append(_objective(cost, plan, weights, epsilon, marginal))
        weights, atoms = _refit(X, plan, weights, atoms, marginal)
    # One last plan, and weights and atoms from it, so that the three are consistent.
    plan = _plan(squared_distances(X, atoms), weights, epsilon, marginal)
    weights, atoms = _refit(X, plan, weights, atoms, "free")
    return Coreset(weights, atoms, plan, objective, epsilon)


def seed_atoms(X: Tensor, num_atoms: int, *, seed: int = 0) -> Tensor:
    """k-means++ seeds (K, d): ``num_atoms`` of the points ``X`` (N, d), far from each other."""
    _require_size(X, num_atoms)
    seeds, _ = kmeans_plusplus(X.cpu().double().numpy(), num_atoms, random_state=seed)
    return torch.as_tensor(seeds, dtype=X.dtype, device=X.device)


def _require_size(X: Tensor, num_atoms: int) -> None:
    checks.points("X", X)
    if not isinstance(num_atoms, int) or not 1 <= num_atoms <= len(X):
        raise ValueError(f"num_atoms must be in [1, {len(X)}], got {num_atoms!r}")


def _checked(atoms: Tensor, X: Tensor, num_atoms: int) -> Tensor:
    if atoms.shape != (num_atoms, X.shape[1]):
        raise ValueError(
            f"initial_atoms must have shape {(num_atoms, X.shape[1])}, got {tuple(atoms.shape)}"
        )
    checks.points("initial_atoms", atoms)
    return checks.same_place("initial_atoms", atoms, X)


def default_epsilon(X: Tensor, atoms: Tensor, scale: float = 0.1) -> float:
    """``scale`` times the mean squared distance of ``X`` (N, d) to its nearest of ``atoms`` (K, d).

    Where that is 0 (every point has an atom): 1e-3 of the total variance, or 1 if that is 0 too.

    Raises:
        ValueError: ``scale`` not finite or not above 0, or columns that do not agree.
    """
    checks.points("atoms", atoms, columns=checks.points("X", X).shape[1])
    checks.positive("scale", scale)
    nearest = scale * squared_distances(X, atoms).amin(1).mean().item()
    # Below rounding error of the squared distances counts as 0.
    spread = (X - X.mean(0)).square().sum(1).mean().item()
    tiny = 10 * torch.finfo(X.dtype).eps * X.square().sum(1).max().item()
    if nearest > tiny:
        return nearest
    return 1e-3 * spread if spread > tiny else 1.0


def squared_distances(X: Tensor, Y: Tensor) -> Tensor:
    """Squared Euclidean distances (N, K) between the rows of ``X`` (N, d) and ``Y`` (K, d)."""
    centre = X.mean(0)  # far from the origin the expansion would cancel
    X, Y = X - centre, Y - centre
    square = X.square().sum(1, keepdim=True) + Y.square().sum(1) - 2 * X @ Y.T
    return square.clamp_min(0)


def _plan(cost: Tensor, weights: Tensor, epsilon: float, marginal: str) -> Tensor:
    """The optimal plan (N, K) for these atoms and weights."""
    if marginal == "free":
        return torch.softmax(weights.log() - cost / epsilon, dim=1) / len(cost)
    rows = torch.full_like(cost[:, 0], 1 / len(cost))
    with warnings.catch_warnings():
        # An underflow in POT's own stopping test is harmless here: the column sums are tested.
        warnings.simplefilter("ignore")
        return ot.sinkhorn(
            rows, weights, cost, epsilon, method="sinkhorn_log", numItermax=5000, stopThr=1e-10
        )


def _objective(cost: Tensor, plan: Tensor, weights: Tensor, epsilon: float, marginal: str) -> float:
    r"""$\langle C,P\rangle + \varepsilon\,\mathrm{KL}(P\,\|\,a\otimes w)$ at the plan."""
    if marginal == "free":
        # The Gibbs value of the row-wise minimum: the same number without logs of tiny masses.
        free = torch.logsumexp(weights.log() - cost / epsilon, dim=1)
        return (-epsilon * free.mean()).item()
    return transport_objective(cost, plan, weights, epsilon)


def transport_objective(cost: Tensor, plan: Tensor, weights: Tensor, epsilon: float) -> float:
    r"""$\langle C,P\rangle + \varepsilon\,\mathrm{KL}(P\,\|\,a\otimes w)$ for any plan (N, K)."""
    independent = weights / len(plan)
    divergence = torch.xlogy(plan, plan) - torch.xlogy(plan, independent)
    return ((cost * plan).sum() + epsilon * divergence.sum()).item()


def _refit(
    X: Tensor, plan: Tensor, weights: Tensor, atoms: Tensor, marginal: str
) -> tuple[Tensor, Tensor]:
    """Column sums (unless held) and barycentres of the plan; an atom without mass stays put."""
    mass = plan.sum(0)
    held = mass <= torch.finfo(mass.dtype).tiny
    centres = plan.T @ X / mass.clamp_min(torch.finfo(mass.dtype).tiny)[:, None]
    atoms = torch.where(held[:, None], atoms, centres)
    return (mass if marginal == "free" else weights), atoms


def lift(
    X: Tensor, coreset: Coreset, *, covariance: str = "diagonal", floor: float = 1e-4
) -> GaussianMixture:
    r"""Put a Gaussian on each atom with the variances of its cell (stage II).

    Args:
        X: the data (N, d) that the coreset was made from.
        coreset: atoms, weights and plan.
        covariance: ``"diagonal"`` variances of each cell; ``"isotropic"``: their mean over
            coordinates; ``"tied"``: one weighted average for all cells.
        floor: lower bound of every variance, >= 0 (0 only where every cell has spread).

    Raises:
        ValueError: unknown covariance, negative floor, a plan that does not belong to ``X``, or
            variances of zero without a floor.
    """
    checks.points("X", X, columns=coreset.atoms.shape[1])
    checks.one_of("covariance", covariance, COVARIANCES)
    if not 0 <= floor < float("inf"):
        raise ValueError(f"floor must be finite and >= 0, got {floor!r}")
    if len(X) != len(coreset.plan):
        raise ValueError(f"X must have the plan's {len(coreset.plan)} rows, got {len(X)}")
    variances = _cell_variances(X, coreset)
    if covariance == "isotropic":
        variances = variances.mean(1, keepdim=True).expand_as(variances)
    elif covariance == "tied":
        variances = (coreset.weights @ variances).expand_as(variances)
    weights = coreset.weights / coreset.weights.sum()
    return GaussianMixture(weights, coreset.atoms, variances.clamp_min(floor).contiguous())


def _cell_variances(X: Tensor, coreset: Coreset) -> Tensor:
    r"""$\sum_i P_{ik}(x_i-y_k)^2 / w_k$ (K, d); zero for an atom without mass."""
    centre = X.mean(0)
    X, atoms = X - centre, coreset.atoms - centre
    mass = coreset.plan.sum(0).clamp_min(torch.finfo(X.dtype).tiny)[:, None]
    first = coreset.plan.T @ X / mass
    second = coreset.plan.T @ X.square() / mass
    variances = second - 2 * atoms * first + atoms.square()
    empty = coreset.plan.sum(0) <= torch.finfo(X.dtype).tiny
    return torch.where(empty[:, None], 0, variances).clamp_min(0)

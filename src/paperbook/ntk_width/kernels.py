"""The limiting and the empirical neural tangent kernel, split into hidden and output part."""

from math import pi

import torch
from torch import Tensor

from paperbook.ntk_width import _checks as check
from paperbook.ntk_width.network import Params, check_data


def arc_cosine_kernels(X: Tensor) -> tuple[Tensor, Tensor]:
    """Limiting hidden kernel H and conjugate kernel G of the inputs, for unit scales.

    Theorem thm-ntk_width-limit of the chapter; the kernels are Cho and Saul's of degree 0 (times
    the Gram matrix) and 1.

    Args:
        X: inputs (N, d) of any norms.

    Returns:
        H (N, N) and G (N, N).

    Raises:
        ValueError: ``X`` is not 2-D, has zero rows, or is not finite.
    """
    check.inputs(X)
    norms = X.norm(dim=1)
    unit = X / norms[:, None]
    # Rounding takes cosines past 1, where arccos is NaN; on the diagonal the angle is 0 exactly.
    cosine = (unit @ unit.T).clamp(-1, 1).fill_diagonal_(1)
    angle = torch.arccos(cosine)
    size = norms[:, None] * norms / (2 * pi)
    H = size * cosine * (pi - angle)
    G = size * (torch.sin(angle) + (pi - angle) * cosine)
    return H, G


def limiting_ntk(X: Tensor, *, alpha: float, beta: float) -> Tensor:
    """β² H + α² G: the mean of the empirical kernel over the start is this ⊗ I_n.

    Args:
        X: inputs (N, d).
        alpha: scale of the hidden layer.
        beta: scale of the output layer.

    Returns:
        Kernel (N, N).

    Raises:
        ValueError: ``alpha`` < 0, ``beta`` < 0, or ``X`` as in ``arc_cosine_kernels``.
    """
    check.nonnegative(alpha=alpha, beta=beta)
    H, G = arc_cosine_kernels(X)
    return beta**2 * H + alpha**2 * G


def empirical_ntk(params: Params, X: Tensor) -> tuple[Tensor, Tensor]:
    """Empirical kernel at ``params``: hidden part K_W and output part K_V.

    Built as Gram matrices, not from a Jacobian. Row i·n + a belongs to sample i, output a.

    Args:
        params: weights (m, d) and (n, m).
        X: inputs (N, d).

    Returns:
        K_W and K_V, each (N n, N n).

    Raises:
        ValueError: ``X`` does not fit ``params``.
    """
    check_data(params, X)
    pre = X @ params.W.T
    return _hidden_part(pre > 0, params.V, X), _output_part(torch.relu(pre), params.output_dim)


def _hidden_part(active: Tensor, V: Tensor, X: Tensor) -> Tensor:
    """(x_iᵀx_j) (1/m) Σ_r v_r v_rᵀ A_ri A_rj for the pattern ``active`` (N, m)."""
    n, m = V.shape
    features = (active[:, None, :] * V).reshape(-1, m)
    gram = (X @ X.T).repeat_interleave(n, 0).repeat_interleave(n, 1)
    return gram * (features @ features.T) / m


def _output_part(hidden: Tensor, output_dim: int) -> Tensor:
    """(1/m) Σ_r σ(w_rᵀx_i) σ(w_rᵀx_j) I_n for the features ``hidden`` (N, m)."""
    conjugate = hidden @ hidden.T / hidden.shape[1]
    identity = torch.eye(output_dim, dtype=hidden.dtype, device=hidden.device)
    return torch.kron(conjugate, identity)


def hidden_share(params: Params, X: Tensor) -> float:
    """tr K_W / tr K without building either: the share of the kernel that the hidden layer has.

    Raises:
        ValueError: ``X`` does not fit ``params``.
    """
    check_data(params, X)
    pre = X @ params.W.T
    hidden = ((pre > 0) * X.square().sum(1, keepdim=True) @ params.V.square().sum(0)).sum()
    output = params.output_dim * torch.relu(pre).square().sum()
    return float(hidden / (hidden + output))

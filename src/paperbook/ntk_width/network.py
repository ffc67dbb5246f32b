"""The two-layer ReLU network F = m^{-1/2} V σ(W X), its loss and its gradients.

Rows are samples here: X is (N, d), outputs are (N, n).
"""

from dataclasses import dataclass
from math import sqrt

import torch
from torch import Tensor

from paperbook.ntk_width import _checks as check


@dataclass(frozen=True)
class Params:
    """Weights of both layers.

    Attributes:
        W: hidden weights (m, d).
        V: output weights (n, m).

    Raises:
        ValueError: no matrices, widths or devices that differ, numbers that are not finite.
    """

    W: Tensor
    V: Tensor

    def __post_init__(self) -> None:
        check.same_device(W=self.W, V=self.V)
        check.matrix("W", self.W)
        check.matrix("V", self.V)
        if self.V.shape[1] != self.W.shape[0]:
            raise ValueError(
                f"V must have one column for each row of W: {self.V.shape[1]} != {self.W.shape[0]}"
            )

    @classmethod
    def trusted(cls, W: Tensor, V: Tensor) -> "Params":
        """Weights that are known to be sound, without the checks: for inner loops."""
        made = object.__new__(cls)
        object.__setattr__(made, "W", W)
        object.__setattr__(made, "V", V)
        return made

    @property
    def width(self) -> int:
        return self.W.shape[0]

    @property
    def output_dim(self) -> int:
        return self.V.shape[0]


def check_data(params: Params, X: Tensor, Y: Tensor | None = None) -> None:
    """Raise a ValueError unless ``X`` (N, d), and ``Y`` (N, n) if given, fit ``params``."""
    check.same_device(W=params.W, X=X)
    check.inputs(X)
    if X.shape[1] != params.W.shape[1]:
        raise ValueError(f"X must have {params.W.shape[1]} columns, got {X.shape[1]}")
    if Y is None:
        return
    check.same_device(X=X, Y=Y)
    check.matrix("Y", Y)
    if tuple(Y.shape) != (X.shape[0], params.output_dim):
        raise ValueError(
            f"Y must have shape {(X.shape[0], params.output_dim)}, got {tuple(Y.shape)}"
        )


def residuals(W: Tensor, V: Tensor, X: Tensor, Y: Tensor) -> tuple[Tensor, Tensor]:
    """Hidden features σ(X Wᵀ) (N, m) and residual R = F - Y (N, n), without checks."""
    hidden = torch.relu(X @ W.T)
    return hidden, hidden @ V.T / sqrt(W.shape[0]) - Y


def gradients(V: Tensor, X: Tensor, hidden: Tensor, residual: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of L = ½‖R‖² in W (m, d) and V (n, m), in closed form and without checks.

    ∇_V L = m^{-1/2} Rᵀσ and ∇_W L = m^{-1/2} [(R V) ⊙ A]ᵀ X; the pattern A is where σ > 0.
    """
    scaled = residual / sqrt(hidden.shape[1])
    grad_W = ((scaled @ V) * (hidden > 0)).T @ X
    return grad_W, scaled.T @ hidden


def forward(params: Params, X: Tensor) -> Tensor:
    """Network outputs for the inputs ``X``.

    Args:
        params: weights (m, d) and (n, m).
        X: inputs (N, d).

    Returns:
        F (N, n).

    Raises:
        ValueError: ``X`` is no finite matrix with d columns, or lies on another device.
    """
    check_data(params, X)
    return torch.relu(X @ params.W.T) @ params.V.T / sqrt(params.width)

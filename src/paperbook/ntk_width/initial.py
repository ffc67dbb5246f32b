"""Initializations: unbalanced Gaussian, its zero-output form, and the sketched output layer."""

from math import sqrt

import torch
from torch import Generator, Tensor

from paperbook.ntk_width import _checks as check
from paperbook.ntk_width.network import Params


def scales(ratio: float, output_scale: float) -> tuple[float, float]:
    """Scales (α, β) with β/α = ``ratio`` and αβ = ``output_scale``.

    Raises:
        ValueError: an argument that is not positive.
    """
    check.positive(ratio=ratio, output_scale=output_scale)
    return sqrt(output_scale / ratio), sqrt(output_scale * ratio)


def _normal(*shape: int, generator: Generator | None, device, dtype: torch.dtype) -> Tensor:
    """Draw where the generator lives, so that a seed means the same numbers on every device."""
    source = generator.device if generator is not None else "cpu"
    return torch.randn(*shape, generator=generator, dtype=dtype, device=source).to(device)


def gaussian_init(
    width: int,
    input_dim: int,
    output_dim: int,
    *,
    alpha: float,
    beta: float,
    generator: Generator | None = None,
    zero_output: bool = False,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float64,
) -> Params:
    """w_r ~ N(0, α² I), v_r ~ N(0, β² I); β ≫ α is the paper's output-dominant start.

    Args:
        width: m.
        input_dim: d.
        output_dim: n.
        alpha: scale of the hidden layer.
        beta: scale of the output layer.
        generator: source of randomness; torch's default one if None.
        zero_output: draw m/2 neurons and repeat each with -v_r, so that F = 0 at the start.
        device: where the weights are put.
        dtype: floating-point type.

    Raises:
        ValueError: sizes < 1, scales <= 0, odd width with ``zero_output``.
    """
    check.sizes(width=width, input_dim=input_dim, output_dim=output_dim)
    check.positive(alpha=alpha, beta=beta)
    if zero_output and width % 2:
        raise ValueError(f"width must be even with zero_output, got {width}")
    drawn = width // 2 if zero_output else width
    kind = {"generator": generator, "device": device, "dtype": dtype}
    W = alpha * _normal(drawn, input_dim, **kind)
    V = beta * _normal(output_dim, drawn, **kind)
    if zero_output:
        W, V = torch.cat([W, W]), torch.cat([V, -V], dim=1)
    return Params(W, V)


def sketched_init(
    width: int,
    input_dim: int,
    Y: Tensor,
    *,
    alpha: float,
    beta: float,
    generator: Generator | None = None,
) -> Params:
    """Gaussian hidden layer, output layer V = (β/‖Y‖₂) Yᵀ Ω with Ω (N, m) standard Gaussian.

    The columns of V lie in the space that the responses span (see the subspace theorem).

    Args:
        width: m.
        input_dim: d.
        Y: responses (N, n); the weights take its device and type.
        alpha: scale of the hidden layer.
        beta: scale of the output layer.
        generator: source of randomness; torch's default one if None.

    Raises:
        ValueError: sizes < 1, scales <= 0, ``Y`` no finite matrix or zero.
    """
    check.sizes(width=width, input_dim=input_dim)
    check.positive(alpha=alpha, beta=beta)
    check.matrix("Y", Y)
    norm = torch.linalg.matrix_norm(Y, ord=2)
    if norm == 0:
        raise ValueError("Y must not be zero: there is nothing to sketch")
    kind = {"generator": generator, "device": Y.device, "dtype": Y.dtype}
    W = alpha * _normal(width, input_dim, **kind)
    V = beta / norm * (Y.T @ _normal(Y.shape[0], width, **kind))
    return Params(W, V)

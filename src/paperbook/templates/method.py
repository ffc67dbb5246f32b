"""TODO the method. One file a purpose; this one is an example that runs."""

import torch
from torch import Tensor


def sample_mean(x: Tensor) -> Tensor:
    """Mean of samples along the first axis.

    Args:
        x: samples (n, ...), finite, n >= 1.

    Returns:
        Mean (...), equation (1) of TODO paper.

    Raises:
        ValueError: ``x`` is empty, a scalar, or not finite.
    """
    if x.ndim == 0 or x.shape[0] == 0:
        raise ValueError(f"x must hold at least one sample along its first axis, got {x.shape}")
    if not torch.isfinite(x).all():
        raise ValueError("x must be finite")
    return x.mean(0)


def mean_error(num_samples: int, *, repeats: int, generator: torch.Generator) -> float:
    """Root-mean-square error of the mean of ``num_samples`` standard normal draws.

    Args:
        num_samples: draws for each mean, at least 1.
        repeats: means in all, at least 1.
        generator: source of the random numbers; its device is used.

    Raises:
        ValueError: ``num_samples`` or ``repeats`` below 1.
    """
    for name, value in (("num_samples", num_samples), ("repeats", repeats)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    draws = torch.randn(
        num_samples, repeats, generator=generator, device=generator.device, dtype=torch.float64
    )
    return float(sample_mean(draws).square().mean().sqrt())

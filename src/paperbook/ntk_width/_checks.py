"""Input checks shared by the modules of this package: each failure is one clear ValueError."""

import math

import torch
from torch import Tensor


def matrix(name: str, value: Tensor) -> Tensor:
    """Return ``value`` if it is a finite, non-empty, floating-point matrix."""
    if not isinstance(value, Tensor) or value.ndim != 2:
        raise ValueError(f"{name} must be a 2-D tensor")
    if 0 in value.shape:
        raise ValueError(f"{name} must not be empty, got shape {tuple(value.shape)}")
    if not value.is_floating_point() or not bool(torch.isfinite(value).all()):
        raise ValueError(f"{name} must hold finite floating-point numbers")
    return value


def inputs(X: Tensor) -> Tensor:
    """Return ``X`` (N, d) if it is a matrix without zero rows."""
    matrix("X", X)
    if bool((X == 0).all(1).any()):
        raise ValueError("X must not have zero rows")
    return X


def unit_norm(X: Tensor) -> None:
    if not torch.allclose(X.norm(dim=1), X.new_ones(len(X)), atol=1e-6):
        raise ValueError("X must have rows of unit norm")


def sizes(**named: int) -> None:
    for name, value in named.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"{name} must be an integer >= 1, got {value!r}")


def positive(**named: float) -> None:
    for name, value in named.items():
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name} must be positive and finite, got {value!r}")


def nonnegative(**named: float) -> None:
    for name, value in named.items():
        if not (math.isfinite(value) and value >= 0):
            raise ValueError(f"{name} must be >= 0 and finite, got {value!r}")


def probability(name: str, value: float) -> None:
    if not 0 < value < 1:
        raise ValueError(f"{name} must lie in (0, 1), got {value!r}")


def same_device(**named: Tensor) -> None:
    devices = {name: value.device for name, value in named.items() if isinstance(value, Tensor)}
    if len(set(devices.values())) > 1:
        found = ", ".join(f"{name} on {device}" for name, device in devices.items())
        raise ValueError(f"{' and '.join(devices)} must be on one device, got {found}")

"""Argument checks of the chapter: each raises a ValueError that names the argument."""

import torch
from torch import Tensor


def points(name: str, x: Tensor, *, columns: int | None = None) -> Tensor:
    """``x`` if it is a finite, non-empty floating-point matrix, else ValueError."""
    if not isinstance(x, Tensor) or x.ndim != 2 or 0 in x.shape:
        got = tuple(x.shape) if isinstance(x, Tensor) else type(x).__name__
        raise ValueError(f"{name} must be a non-empty 2-D tensor, got {got}")
    if columns is not None and x.shape[1] != columns:
        raise ValueError(f"{name} must have {columns} columns, got {x.shape[1]}")
    if not x.is_floating_point() or not torch.isfinite(x).all():
        raise ValueError(f"{name} must be floating-point and finite")
    return x


def at_least(name: str, value: int, low: int) -> int:
    """``value`` if it is an integer >= low, else ValueError."""
    if isinstance(value, bool) or not isinstance(value, int) or value < low:
        raise ValueError(f"{name} must be an integer >= {low}, got {value!r}")
    return value


def positive(name: str, value: float) -> float:
    """``value`` if it is finite and > 0, else ValueError."""
    if not 0 < value < float("inf"):
        raise ValueError(f"{name} must be finite and > 0, got {value!r}")
    return value


def one_of(name: str, value: str, allowed: tuple[str, ...]) -> str:
    """``value`` if it is one of ``allowed``, else ValueError."""
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {value!r}")
    return value


def same_place(name: str, x: Tensor, other: Tensor) -> Tensor:
    """``x`` if it has the dtype and device of ``other``, else ValueError."""
    if x.dtype != other.dtype or x.device != other.device:
        raise ValueError(
            f"{name} must be {other.dtype} on {other.device}, got {x.dtype} on {x.device}"
        )
    return x

"""Inputs on the sphere, responses of chosen rank and spectrum, and real digits."""

from math import sqrt

import numpy as np
import torch
from torch import Generator, Tensor

from paperbook.ntk_width import _checks as check

KIND = {"dtype": torch.float64}


def resolve_device(name: str) -> torch.device:
    """``auto`` is the first CUDA device if there is one, else the CPU.

    Raises:
        ValueError: a name that torch does not know, or a CUDA device that is not there.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ValueError(f"device must be 'auto' or a torch device, got {name!r}") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device {name!r} was asked for, but no CUDA device is present")
    return device


def make_generator(*key: int) -> Generator:
    """A CPU generator for a key such as (seed, width): different keys, independent streams.

    Raises:
        ValueError: a part of the key that is no integer >= 0.
    """
    if any(isinstance(part, bool) or not isinstance(part, int) or part < 0 for part in key):
        raise ValueError(f"seed and all other parts of a key must be integers >= 0, got {key}")
    state = np.random.SeedSequence(key).generate_state(1, np.uint64)[0]
    return torch.Generator().manual_seed(int(state >> np.uint64(1)))


def sphere(
    num_samples: int, input_dim: int, *, generator: Generator | None = None, spike: float = 0.0
) -> Tensor:
    """Rows uniform on the unit sphere, or pulled towards one common direction.

    With ``spike`` = a > 0 a row is normalise(√(1-a²) u_i + a u_0) for uniform u_i and a shared u_0.
    That moves the condition number of the limiting kernel without near-duplicates.

    Args:
        num_samples: N.
        input_dim: d.
        generator: source of randomness; torch's default one if None.
        spike: a in [0, 1).

    Returns:
        X (N, d).

    Raises:
        ValueError: sizes < 1 or ``spike`` outside [0, 1).
    """
    check.sizes(num_samples=num_samples, input_dim=input_dim)
    if not 0 <= spike < 1:
        raise ValueError(f"spike must lie in [0, 1), got {spike!r}")
    rows = torch.randn(num_samples + 1, input_dim, generator=generator, **KIND)
    rows = rows / rows.norm(dim=1, keepdim=True)
    mixed = sqrt(1 - spike**2) * rows[1:] + spike * rows[0]
    return mixed / mixed.norm(dim=1, keepdim=True)


def gaussian_responses(
    num_samples: int, output_dim: int, *, generator: Generator | None = None
) -> Tensor:
    """Independent standard Gaussian responses (N, n).

    Raises:
        ValueError: sizes < 1.
    """
    check.sizes(num_samples=num_samples, output_dim=output_dim)
    return torch.randn(num_samples, output_dim, generator=generator, **KIND)


def low_rank_responses(
    num_samples: int,
    output_dim: int,
    rank: int,
    *,
    condition: float = 1.0,
    generator: Generator | None = None,
) -> Tensor:
    """Responses √N Q diag(σ) Uᵀ with random orthonormal Q (N, r), U (n, r).

    The singular values fall geometrically from 1 to 1/``condition``.

    Args:
        num_samples: N.
        output_dim: n.
        rank: r, at most min(N, n).
        condition: κ(Y) >= 1; with rank 1 it must be 1.
        generator: source of randomness; torch's default one if None.

    Returns:
        Y (N, n).

    Raises:
        ValueError: sizes < 1, ``rank`` > min(N, n), ``condition`` < 1 or > 1 at rank 1.
    """
    check.sizes(num_samples=num_samples, output_dim=output_dim, rank=rank)
    if rank > min(num_samples, output_dim):
        raise ValueError(f"rank must be at most {min(num_samples, output_dim)}, got {rank}")
    if not condition >= 1 or (rank == 1 and condition != 1):
        raise ValueError(f"condition must be >= 1 (and 1 for rank 1), got {condition!r}")
    Q = torch.linalg.qr(torch.randn(num_samples, rank, generator=generator, **KIND)).Q
    U = torch.linalg.qr(torch.randn(output_dim, rank, generator=generator, **KIND)).Q
    singular = condition ** -torch.linspace(0, 1, rank, **KIND)
    return sqrt(num_samples) * (Q * singular) @ U.T


def digits(num_samples: int, *, seed: int) -> tuple[Tensor, Tensor]:
    """A class-balanced draw of scikit-learn's 8 x 8 digits, with centred one-hot responses.

    Args:
        num_samples: N between 10 and 1000; class counts differ by at most one.
        seed: which draw.

    Returns:
        X (N, 64) with rows of unit norm and Y (N, 10), which has rank 9.

    Raises:
        ValueError: ``num_samples`` out of range.
    """
    if not 10 <= num_samples <= 1000:
        raise ValueError(f"num_samples must lie in [10, 1000], got {num_samples}")
    from sklearn.datasets import load_digits  # on use: it costs a second of import

    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(labels))
    # The k-th image of its class comes before every (k+1)-th image of another one.
    turn = np.zeros(len(labels), dtype=int)
    for label in range(10):
        members = order[labels[order] == label]
        turn[members] = np.arange(len(members))
    chosen = order[np.argsort(turn[order], kind="stable")][:num_samples]
    X = torch.tensor(images[chosen], **KIND)
    Y = torch.nn.functional.one_hot(torch.tensor(labels[chosen]), 10).to(torch.float64)
    return X / X.norm(dim=1, keepdim=True), Y - Y.mean(0)

"""A regression problem together with how the network is started on it."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from paperbook.ntk_width.data import (
    gaussian_responses,
    low_rank_responses,
    make_generator,
    sphere,
)
from paperbook.ntk_width.initial import gaussian_init, scales, sketched_init
from paperbook.ntk_width.kernels import arc_cosine_kernels
from paperbook.ntk_width.network import Params
from paperbook.ntk_width.theory import Spectrum


@dataclass(frozen=True)
class Task:
    """Data, scales and the kind of start.

    Attributes:
        X: inputs (N, d).
        Y: responses (N, n).
        ratio: ρ = β/α.
        output_scale: s = αβ.
        sketched: start the output layer from a sketch of ``Y``.
        zero_output: start with F = 0.

    Raises:
        ValueError: on first use, for data or scales out of range; both kinds of start at once.
    """

    X: Tensor
    Y: Tensor
    ratio: float = 16.0
    output_scale: float = 1.0
    sketched: bool = False
    zero_output: bool = False

    def __post_init__(self) -> None:
        if self.sketched and self.zero_output:
            raise ValueError("sketched and zero_output exclude each other")

    @cached_property
    def scales(self) -> tuple[float, float]:
        """(α, β)."""
        return scales(self.ratio, self.output_scale)

    @cached_property
    def kernels(self) -> tuple[Tensor, Tensor]:
        """H and G of the inputs."""
        return arc_cosine_kernels(self.X)

    @cached_property
    def basis(self) -> Tensor:
        """Orthonormal basis U (n, r) of the space that the responses span."""
        _, singular, rows = torch.linalg.svd(self.Y, full_matrices=False)
        return rows[singular > 1e-10 * singular[0]].T

    @cached_property
    def response_condition(self) -> float:
        """κ(Y) over the non-zero singular values."""
        singular = torch.linalg.svdvals(self.Y)[: self.basis.shape[1]]
        return float(singular[0] / singular[-1])

    @cached_property
    def limit(self) -> Tensor:
        """Limiting kernel β²H + α²G (N, N)."""
        alpha, beta = self.scales
        H, G = self.kernels
        return beta**2 * H + alpha**2 * G

    @cached_property
    def spectrum(self) -> Spectrum:
        """Extremes of the limiting kernel; for a sketched start, of the one on the subspace.

        There the kernel is β² H ⊗ (Σ/σ_1)² + α² G ⊗ I (proposition prop-ntk_width-sketch): its
        largest eigenvalue belongs to σ_1 and its smallest to σ_r.
        """
        if not self.sketched:
            return Spectrum.of(self.limit)
        alpha, beta = self.scales
        H, G = self.kernels
        weakest = Spectrum.of((beta / self.response_condition) ** 2 * H + alpha**2 * G)
        return Spectrum(Spectrum.of(self.limit).largest, weakest.smallest)

    def start(self, width: int, seed: int) -> Params:
        """Random weights of ``width`` neurons; (seed, width) decides the draw."""
        alpha, beta = self.scales
        generator = make_generator(seed, width)
        if self.sketched:
            return sketched_init(
                width, self.X.shape[1], self.Y, alpha=alpha, beta=beta, generator=generator
            )
        return gaussian_init(
            width,
            self.X.shape[1],
            self.Y.shape[1],
            alpha=alpha,
            beta=beta,
            generator=generator,
            zero_output=self.zero_output,
            device=self.X.device,
        )

    def on_subspace(self, params: Params) -> Params:
        """The r-output network that equals ``params`` on the responses' space."""
        return Params(params.W, self.basis.T @ params.V)


def random_task(
    seed: int,
    *,
    num_samples: int,
    input_dim: int,
    output_dim: int,
    spike: float = 0.0,
    rank: int = 0,
    condition: float = 1.0,
    device: torch.device | str = "cpu",
    **start: float | bool,
) -> Task:
    """A task on (spiked) sphere inputs with Gaussian responses.

    The inputs depend on ``seed``, N, d and the spike alone, so that tasks which differ in their
    responses share them.

    Args:
        seed: decides the data.
        num_samples: N.
        input_dim: d.
        output_dim: n.
        spike: pull of the inputs towards one direction, in [0, 1).
        rank: rank of the responses; 0 means unrestricted.
        condition: κ(Y) of responses of restricted rank.
        device: where data and weights live.
        **start: ``ratio``, ``output_scale``, ``sketched``, ``zero_output`` of the task.

    Raises:
        ValueError: arguments out of range.
    """
    generator = make_generator(seed, num_samples, input_dim)
    X = sphere(num_samples, input_dim, generator=generator, spike=spike)
    if rank:
        Y = low_rank_responses(
            num_samples, output_dim, rank, condition=condition, generator=generator
        )
    else:
        Y = gaussian_responses(num_samples, output_dim, generator=generator)
    return Task(X.to(device), Y.to(device), **start)

"""The velocity network, the same for every method of the chapter."""

import math

import torch
from torch import Tensor, nn

from paperbook.ccvfm import checks

FREQUENCIES = 8


class VelocityNet(nn.Module):
    """Residual multilayer perceptron on position, time, velocity and inner time.

    Args:
        dim: d, dimension of position and velocity.
        hidden: width.
        depth: number of residual layers after the input layer.

    Raises:
        ValueError: a size below 1.
    """

    def __init__(self, dim: int, *, hidden: int = 256, depth: int = 3) -> None:
        super().__init__()
        for name, value in (("dim", dim), ("hidden", hidden), ("depth", depth)):
            checks.at_least(name, value, 1)
        self.dim = dim
        self.enter = nn.Linear(2 * dim + 4 * FREQUENCIES, hidden)
        self.layers = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(depth))
        self.leave = nn.Linear(hidden, dim)
        rates = math.pi / 2 * 2.0 ** torch.arange(FREQUENCIES)
        self.register_buffer("rates", rates, persistent=False)

    def forward(self, x: Tensor, t: Tensor, v: Tensor, tau: Tensor) -> Tensor:
        """Velocity (B, d) from ``x`` (B, d), ``t`` (B,), ``v`` (B, d), ``tau`` (B,)."""
        angles = torch.stack((t, tau), 1)[..., None] * self.rates
        times = torch.cat((angles.sin(), angles.cos()), -1).flatten(1)
        hidden = nn.functional.silu(self.enter(torch.cat((x, v, times), 1)))
        for layer in self.layers:
            hidden = hidden + nn.functional.silu(layer(hidden))
        return self.leave(hidden)


def initialise(net: nn.Module, generator: torch.Generator) -> None:
    """Draw the weights of all linear layers from ``generator`` (PyTorch's default law)."""
    with torch.no_grad():
        for layer in net.modules():
            if isinstance(layer, nn.Linear):
                bound = layer.in_features**-0.5
                layer.weight.uniform_(-bound, bound, generator=generator)
                layer.bias.uniform_(-bound, bound, generator=generator)

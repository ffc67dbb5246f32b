"""Small instances that the tests of this chapter share."""

from math import sqrt

import pytest
import torch
from torch import Tensor

from paperbook.ntk_width import Params, gaussian_init, gaussian_responses, make_generator, sphere


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def small() -> tuple[Params, Tensor, Tensor]:
    """Weights (7 neurons, 4 inputs, 3 outputs), inputs (5, 4) and responses (5, 3)."""
    generator = make_generator(11)
    X = sphere(5, 4, generator=generator)
    Y = gaussian_responses(5, 3, generator=generator)
    return gaussian_init(7, 4, 3, alpha=0.5, beta=2.0, generator=generator), X, Y


@pytest.fixture(scope="session")
def jacobians():
    """Function (params, X) -> J_W (N n, m d), J_V (N n, n m) by automatic differentiation.

    Rows are in sample-major order. It shares no formula with the package.
    """

    def compute(params: Params, X: Tensor) -> tuple[Tensor, Tensor]:
        def network(W: Tensor, V: Tensor) -> Tensor:
            return torch.relu(X @ W.T) @ V.T / sqrt(len(W))

        in_W, in_V = torch.func.jacrev(network, argnums=(0, 1))(params.W, params.V)
        rows = len(X) * params.output_dim
        return in_W.reshape(rows, -1), in_V.reshape(rows, -1)

    return compute

"""The velocity law that a Gaussian mixture induces, in closed form and without a network."""

import torch
from torch import Tensor

from paperbook.ccvfm import checks
from paperbook.ccvfm.mixture import GaussianMixture


class ConditionalVelocity:
    r"""The law $q(\cdot|x,t)$ of $V=x_1-x_0$ given $x_t=x$ when $x_1\sim$ ``mixture``.

    Here $x_0\sim\mathcal N(0,I)$ is independent of $x_1$ and $x_t=(1-t)x_0+tx_1$. The law is a
    mixture again (thm-ccvfm-law). Times may be one number, or one a row of ``x`` (B, d); ``x`` of
    shape (G, n, d) with ``t`` (G,) holds n rows for each of G times, which is much the cheapest
    form for many rows: its responsibilities are batched matrix products.
    """

    def __init__(self, mixture: GaussianMixture) -> None:
        self.mixture = mixture

    def components(self, x: Tensor, t: float | Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Responsibilities (B, K), means (B, K, d) and variances (B, K, d) at ``x`` (B, d).

        Raises:
            ValueError: ``x`` not (B, d) or of another dtype or device than the mixture, ``t``
                outside [0, 1] or neither a number nor (B,).
        """
        checks.points("x", x, columns=self.mixture.dim)
        checks.same_place("x", x, self.mixture.means)
        t = _times(t, len(x), x)[:, None, None]
        y, S = self.mixture.means, self.mixture.variances
        s = t**2 * S + (1 - t) ** 2  # variance of x_t in each component
        residual = x[:, None] - t * y
        log_r = self.mixture.weights.log() - 0.5 * (residual.square() / s + s.log()).sum(-1)
        means = y + (t * S - (1 - t)) / s * residual
        return log_r.log_softmax(-1).exp(), means, (S / s).expand_as(means)

    def sample(
        self, x: Tensor, t: float | Tensor, *, generator: torch.Generator | None = None
    ) -> Tensor:
        """One draw of the velocity for each row of ``x``; the result has the shape of ``x``."""
        grouped, t = self._grouped(x, t)
        r = self._responsibilities(grouped, t)
        k = torch.multinomial(r.flatten(0, 1), 1, generator=generator).view(r.shape[:2])
        noise = torch.randn(grouped.shape, generator=generator, dtype=x.dtype, device=x.device)
        y, S = self.mixture.means[k], self.mixture.variances[k]
        t = t[:, None, None]
        s = t**2 * S + (1 - t) ** 2
        mean = y + (t * S - (1 - t)) / s * (grouped - t * y)
        return (mean + (S / s).sqrt() * noise).view_as(x)

    def mean(self, x: Tensor, t: float | Tensor) -> Tensor:
        r"""Mean velocity $m_0(x,t)$, in the shape of ``x``."""
        grouped, t = self._grouped(x, t)
        r = self._responsibilities(grouped, t)
        t = t[:, None, None]
        y, S = self.mixture.means, self.mixture.variances
        slope = (t * S - (1 - t)) / (t**2 * S + (1 - t) ** 2)
        return (r @ slope * grouped + r @ (y - slope * t * y)).view_as(x)

    def covariance_trace(self, x: Tensor, t: float | Tensor) -> Tensor:
        r"""Trace (B,) of the velocity's covariance $\Sigma_0(x,t)$ at ``x`` (B, d)."""
        r, means, variances = self.components(x, t)
        centre = (r[..., None] * means).sum(1, keepdim=True)
        return (r * (variances + (means - centre).square()).sum(-1)).sum(1)

    def _grouped(self, x: Tensor, t: float | Tensor) -> tuple[Tensor, Tensor]:
        """``x`` as (G, n, d) and ``t`` as (G,): one group for a number, else one a leading row."""
        if x.ndim not in (2, 3) or 0 in x.shape or x.shape[-1] != self.mixture.dim:
            raise ValueError(
                f"x must have shape (B, {self.mixture.dim}) or (G, n, {self.mixture.dim}), got "
                f"{tuple(x.shape)}"
            )
        if not torch.isfinite(x).all():
            raise ValueError("x must be finite")
        checks.same_place("x", x, self.mixture.means)
        if x.ndim == 3:
            return x, _times(t, len(x), x)
        if isinstance(t, Tensor) and t.ndim:
            return x[:, None], _times(t, len(x), x)
        return x[None], _times(t, 1, x)

    def _responsibilities(self, x: Tensor, t: Tensor) -> Tensor:
        """Posterior weights (G, n, K) of the components at ``x`` (G, n, d), ``t`` (G,)."""
        t = t[:, None, None]
        y = self.mixture.means
        s = t**2 * self.mixture.variances + (1 - t) ** 2
        scaled = t * y / s
        constant = (scaled * t * y + s.log()).sum(-1)[:, None]
        quadratic = x.square() @ (1 / s).mT - 2 * x @ scaled.mT + constant
        return torch.softmax(self.mixture.weights.log() - 0.5 * quadratic, dim=-1)


def _times(t: float | Tensor, rows: int, like: Tensor) -> Tensor:
    """``t`` as a vector (rows,) of the dtype and device of ``like``."""
    vector = torch.as_tensor(t, dtype=like.dtype, device=like.device)
    if vector.ndim > 1 or (vector.ndim == 1 and len(vector) != rows):
        raise ValueError(f"t must be a number or have shape ({rows},), got {tuple(vector.shape)}")
    if not ((vector >= 0) & (vector <= 1)).all():
        raise ValueError("t must be in [0, 1]")
    return vector.expand(rows)

"""The few-step comparison: every method, sampled in every way, scored on the same noise."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from html import escape

import numpy as np
import torch
from torch import Tensor

from paperbook.ccvfm.evaluation import Scorer, Scores, Steps, all_steps
from paperbook.ccvfm.sampling import Net, sample_hierarchical, sample_rectified, sample_surrogate
from paperbook.ccvfm.velocity import ConditionalVelocity
from paperbook.evidence.render import Html

# Evaluation noise must differ from training noise, whose seeds are small numbers.
EVALUATION_SEED = 1_000_000


@dataclass(frozen=True)
class Trial:
    """Scores of one trained model under one way of sampling it; ``nfe`` is 0 without a network."""

    method: str
    seed: int
    steps: Steps
    nfe: int
    scores: Scores


@dataclass(frozen=True)
class Bench:
    """Where samples are scored: the scorer, the NFE budgets and the number of samples."""

    scorer: Scorer
    budgets: tuple[int, ...]
    num_samples: int

    @property
    def dim(self) -> int:
        return self.scorer.test.shape[1]

    def generator(self, seed: int) -> torch.Generator:
        """A fresh generator: all methods of one seed start from the same noise."""
        return torch.Generator(self.scorer.test.device).manual_seed(EVALUATION_SEED + seed)

    def surrogate(self, source: ConditionalVelocity, *, seed: int) -> Trial:
        """The surrogate alone in one outer step: no network, NFE 0."""
        samples = sample_surrogate(
            source, self.num_samples, outer_steps=1, generator=self.generator(seed)
        )
        return Trial("surrogate", seed, Steps(1, 1, "euler"), 0, self.scorer.score(samples))

    def rectified(self, method: str, net: Net, *, seed: int) -> list[Trial]:
        """Rectified flow at every budget, by Euler and (where the budget is even) midpoint."""

        def draw(steps: Steps) -> Tensor:
            return sample_rectified(
                net,
                self.num_samples,
                self.dim,
                steps=steps.inner,
                solver=steps.solver,
                generator=self.generator(seed),
            )

        return self._trials(method, seed, draw, max_outer=1, surrogate=False)

    def hierarchical(
        self,
        method: str,
        net: Net,
        *,
        seed: int,
        source: ConditionalVelocity | None,
        one_step: bool,
        surrogate_midpoint: bool,
    ) -> list[Trial]:
        """A hierarchical flow at every budget, in every way of spending it.

        Args:
            method: name in the tables.
            net: trained network.
            seed: of the noise.
            source: law of the inner start; ``None`` for noise.
            one_step: the network knows t = 0 only, so there is one outer step.
            surrogate_midpoint: whether that solver applies (independent coupling only).
        """

        def draw(steps: Steps) -> Tensor:
            return sample_hierarchical(
                net,
                self.num_samples,
                self.dim,
                source=source,
                outer_steps=steps.outer,
                inner_steps=steps.inner,
                solver=steps.solver,
                generator=self.generator(seed),
            )

        most = 1 if one_step else max(self.budgets)
        return self._trials(method, seed, draw, max_outer=most, surrogate=surrogate_midpoint)

    def _trials(
        self,
        method: str,
        seed: int,
        draw: Callable[[Steps], Tensor],
        *,
        max_outer: int,
        surrogate: bool,
    ) -> list[Trial]:
        return [
            Trial(method, seed, steps, nfe, self.scorer.score(draw(steps)))
            for nfe in self.budgets
            for steps in all_steps(nfe, max_outer=max_outer, surrogate=surrogate)
        ]


def best(
    trials: Iterable[Trial],
    methods: str | tuple[str, ...],
    nfe: int,
    *,
    metric: str = "fd",
    solvers: tuple[str, ...] = (),
) -> np.ndarray:
    """The best value of ``metric`` for each seed (in order) over all ways of spending ``nfe``.

    Args:
        trials: of all methods.
        methods: one name, or several whose best counts (training modes of one method).
        nfe: network evaluations.
        metric: a field of ``Scores`` where small is good.
        solvers: restrict to these inner solvers; empty for all.

    Raises:
        ValueError: no trial fits.
    """
    names = (methods,) if isinstance(methods, str) else methods
    found: dict[int, float] = {}
    for trial in trials:
        fits = trial.method in names and trial.nfe == nfe
        if fits and (not solvers or trial.steps.solver in solvers):
            value = getattr(trial.scores, metric)
            found[trial.seed] = min(value, found.get(trial.seed, value))
    if not found:
        raise ValueError(f"trials hold none of methods {names} with nfe {nfe}")
    return np.array([found[seed] for seed in sorted(found)])


def score_table(header: list[str], rows: list[list[str]]) -> Html:
    """A table for readers that scrolls inside itself on a narrow screen.

    Raises:
        ValueError: a row whose length is not the header's.
    """
    for row in rows:
        if len(row) != len(header):
            raise ValueError(f"rows must have {len(header)} cells, got {len(row)}")
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    html = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    plain = "\n".join(" | ".join(row) for row in [header, *rows])
    return Html(f'<div class="pb-scroll" tabindex="0">{html}</div>', plain)

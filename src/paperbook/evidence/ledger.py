"""The ledger of a running chapter: claims are judged, numbers noted, one record closed."""

import json
import platform
import resource
import time
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from paperbook import project
from paperbook.card import Card, load_card
from paperbook.errors import PaperbookError
from paperbook.evidence.judgement import Judgement, judge
from paperbook.evidence.record import NAME, glue
from paperbook.evidence.render import Html, PlainText, claim_table, verdict_lines
from paperbook.evidence.rules import NEEDS_SCALE
from paperbook.fingerprint import MEASURED_LIBRARIES, fingerprint
from paperbook.parameters import check_values, declared_parameters

# A different seed or device repeats a profile; it does not make another one.
NOT_PART_OF_A_PROFILE = {"seed", "device"}


def profile_name(card: Card, defaults: Mapping[str, Any], values: Mapping[str, Any]) -> str:
    """Which of the card's profiles the parameter ``values`` are, or ``custom``."""
    for name, overrides in card.profiles.items():
        wanted = {**defaults, **overrides}
        if all(values[k] == wanted[k] for k in defaults.keys() - NOT_PART_OF_A_PROFILE):
            return name
    return "custom"


class Ledger:
    """Evidence of one chapter, collected while its notebook runs.

    Args:
        slug: the chapter.
        namespace: the notebook's ``globals()``; the declared parameters are read from it.

    Raises:
        PaperbookError: unknown chapter, bad card, or a parameter of the wrong type.
    """

    def __init__(self, slug: str, namespace: Mapping[str, Any]) -> None:
        self.card = load_card(slug)
        declared = declared_parameters(project.notebook_path(slug))
        values = {name: namespace[name] for name in declared}
        self.parameters = check_values(declared, values, slug)
        defaults = {name: parameter.default for name, parameter in declared.items()}
        self.profile = profile_name(self.card, defaults, self.parameters)
        self.numbers: dict[str, float | int | str] = {}
        self._judged: dict[str, Judgement] = {}

    def judge(self, claim_id: str, samples: Any) -> Judgement:
        """Judge a claim of the card on independent ``samples`` of its statistic.

        Args:
            claim_id: the claim's id in the card.
            samples: numbers (list, array or tensor); a dict of these for a claim with named tests.

        Raises:
            ValueError: unknown or already judged claim, or samples that cannot be judged.
        """
        claim = self.card.claim(claim_id)
        if claim.kind == "scale":
            raise PaperbookError(f"{claim_id}: a scale claim is not judged here")
        if claim_id in self._judged:
            raise PaperbookError(f"{claim_id}: judged twice")
        judgement = judge(claim, samples)
        self._judged[claim_id] = judgement
        glue(f"{claim_id}-verdict", judgement.verdict)
        for test in judgement.tests:
            glue(f"{claim_id}.{test.name}" if test.name else claim_id, str(test))
        return judgement

    def note(self, name: str, value: Any) -> None:
        """Keep a measured number (or short text) for the prose and for sweep tables.

        Raises:
            ValueError: a name used before, or a value that is neither number nor text.
        """
        if name in self.numbers:
            raise PaperbookError(f"note {name!r}: used twice")
        if hasattr(value, "item"):
            value = value.item()
        if not isinstance(value, int | float | str):
            raise PaperbookError(f"note {name!r}: takes a number or text, got {type(value)}")
        self.numbers[name] = value
        glue(name, value)

    @property
    def judgements(self) -> list[Judgement]:
        """Judgements in the card's order.

        Raises:
            ValueError: claims that were not judged.
        """
        scale = {c.id: Judgement(c.id, NEEDS_SCALE, ()) for c in self.card.claims if not c.tests}
        known = scale | self._judged
        missing = [claim.id for claim in self.card.claims if claim.id not in known]
        if missing:
            raise PaperbookError(f"claims never judged: {', '.join(missing)}")
        return [known[claim.id] for claim in self.card.claims]

    def verdicts(self) -> PlainText:
        """Claim, rule and verdict as plain text: the cell that nbval compares."""
        return PlainText(verdict_lines(self.judgements, self.card))

    def table(self) -> Html:
        """The table for readers: values, intervals and a dot for each sample."""
        plain = "\n".join(str(judgement) for judgement in self.judgements)
        return Html(claim_table(self.judgements, self.card), plain)

    def record(self) -> dict[str, Any]:
        """All results of this run as one JSON-ready dictionary."""
        return {
            "slug": self.card.slug,
            "profile": self.profile,
            "parameters": self.parameters,
            "claims": [judgement.to_dict() for judgement in self.judgements],
            "numbers": self.numbers,
            "cpu_seconds": round(time.process_time(), 1),
            "peak_memory_mb": _peak_memory_mb(),
            "versions": {"python": platform.python_version(), **_versions()},
            "fingerprint": fingerprint(self.card.slug),
        }

    def close(self) -> None:
        """Store the record in the notebook: without it a run does not count as finished."""
        glue(NAME, json.dumps(self.record(), sort_keys=True))


def _versions() -> dict[str, str]:
    return {name: version(name).partition("+")[0] for name in MEASURED_LIBRARIES}


def _peak_memory_mb() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (1024 * 1024 if platform.system() == "Darwin" else 1024))

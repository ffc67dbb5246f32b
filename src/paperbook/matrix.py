"""The whole evidence matrix, from the records in the committed notebooks."""

from typing import Any

from paperbook import project
from paperbook.card import Card, load_card
from paperbook.evidence.judgement import Judgement
from paperbook.evidence.record import chapter_record


def chapter_judgements(slug: str) -> tuple[Card, list[Judgement], dict[str, Any] | None]:
    """Card, judgements and record of a chapter; no judgements and None before its first run."""
    card = load_card(slug)
    record = chapter_record(project.notebook_path(slug))
    if record is None:
        return card, [], None
    return card, [Judgement.from_dict(data) for data in record["claims"]], record


def matrix_rows() -> list[dict[str, str]]:
    """One row a claim and test: chapter, claim, what was measured, rule, number, verdict."""
    rows = []
    for slug in project.slugs():
        card, judgements, _ = chapter_judgements(slug)
        for judgement in judgements:
            rows += _claim_rows(card, judgement)
    return rows


def _claim_rows(card: Card, judgement: Judgement) -> list[dict[str, str]]:
    claim = card.claim(judgement.claim)
    shared = {"chapter": card.slug, "claim": claim.id, "kind": claim.kind}
    if not judgement.tests:
        empty = {"test": "", "statistic": claim.needs, "rule": "", "measured": "", "samples": "0"}
        return [shared | empty | {"verdict": judgement.verdict}]
    return [
        shared
        | {
            "test": measured.name,
            "statistic": test.statistic,
            "rule": measured.rule,
            "measured": str(measured),
            "samples": str(len(measured.samples)),
            "verdict": judgement.verdict,
        }
        for test, measured in zip(claim.tests, judgement.tests, strict=True)
    ]

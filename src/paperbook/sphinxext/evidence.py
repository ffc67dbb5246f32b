"""The evidence at a glance, and the whole matrix."""

from paperbook.evidence.judgement import Judgement
from paperbook.evidence.render import sample_strip, verdict_badge
from paperbook.evidence.rules import VERDICTS
from paperbook.matrix import chapter_judgements
from paperbook.sphinxext.base import BookDirective, table, text


class EvidenceSummary(BookDirective):
    """Chapters by verdict counts, with totals."""

    def html(self) -> str:
        rows, totals = [], dict.fromkeys(VERDICTS, 0)
        for slug in self.published():
            card, judgements, _ = chapter_judgements(slug)
            found = [judgement.verdict for judgement in judgements]
            counts = [found.count(verdict) for verdict in VERDICTS]
            for verdict, count in zip(VERDICTS, counts, strict=True):
                totals[verdict] += count
            cells = [str(count) if count else "·" for count in counts]
            rows.append([self.chapter_link(slug, text(card.title)), *cells])
        rows.append(["<strong>all</strong>", *(f"<strong>{n}</strong>" for n in totals.values())])
        head = ["chapter", *(verdict_badge(v) for v in VERDICTS)]
        return table(head, rows, "pb-summary")


class EvidenceMatrix(BookDirective):
    """Every claim of every chapter: statement, rule, number, samples, verdict."""

    def html(self) -> str:
        rows = []
        for slug in self.published():
            card, judgements, _ = chapter_judgements(slug)
            rows += [self._row(card, judgement) for judgement in judgements]
        head = ["claim and verdict", "statement", "rule", "measured"]
        return table(head, rows, "pb-matrix")

    def _row(self, card, judgement: Judgement) -> list[str]:
        claim = card.claim(judgement.claim)
        name = self.chapter_link(card.slug, claim.id, "#evidence")
        statement = text(claim.statement)
        if claim.note:
            statement += f'<br><span class="pb-note">{text(claim.note)}</span>'
        badge = verdict_badge(judgement.verdict)
        first = [f"{name}<br><span class='pb-kind'>{claim.kind}</span> {badge}", statement]
        if not judgement.tests:
            needs = f"{text(claim.needs)}; tested instead: {text(claim.proxy)}"
            return [*first, "", needs]
        measured = judgement.tests
        return [
            *first,
            "<br><br>".join(text(f"{m.name} {m.rule}".strip()) for m in measured),
            "<br>".join(f"{text(m)}<br>{sample_strip(m)}" for m in measured),
        ]

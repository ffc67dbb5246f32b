"""Paper card, method map and the list of a part's chapters."""

from paperbook import project
from paperbook.card import Paper, load_card
from paperbook.evidence.render import verdict_badge
from paperbook.evidence.rules import VERDICTS
from paperbook.matrix import chapter_judgements
from paperbook.parameters import declared_parameters
from paperbook.sphinxext.base import BookDirective, ChapterDirective, breakable, table, text


def verdict_counts(judgements: list) -> str:
    """Badges with the number of claims under each verdict that occurs."""
    found = [judgement.verdict for judgement in judgements]
    return " ".join(
        f'<span class="pb-count">{found.count(v)}&times;</span>{verdict_badge(v)}'
        for v in VERDICTS
        if v in found
    )


class PaperCard(ChapterDirective):
    """The paper, how it is known, what reproduced, the cost of a run, the parameters."""

    def html(self) -> str:
        card, judgements, record = chapter_judgements(self.slug)
        rows = [
            ("Paper", _paper(card.paper)),
            ("Known from", text(card.known_from)),
            ("Evidence", verdict_counts(judgements) or "not yet run"),
        ]
        if record is not None:
            cost = f"{record['cpu_seconds']:.0f} CPU s, {record['peak_memory_mb']} MB at the peak"
            rows.append(("Cost of a run", f"{cost} (profile <code>{record['profile']}</code>)"))
        body = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in rows)
        return f'<div class="pb-card"><dl>{body}</dl>{self._parameters()}</div>'

    def _parameters(self) -> str:
        declared = declared_parameters(project.notebook_path(self.slug)).values()
        rows = [
            [
                f"<code>{p.name}</code>",
                p.type,
                f"<code>{text(repr(p.default))}</code>",
                text(p.help),
            ]
            for p in declared
        ]
        inner = table(["parameter", "type", "default", "meaning"], rows)
        return f"<details><summary>{len(rows)} parameters</summary>{inner}</details>"


def _paper(paper: Paper) -> str:
    title = f"<em>{text(paper.title)}</em>"
    if paper.link:
        title = f'<a href="{text(paper.link)}">{title}</a>'
    return f"{title}, {text(', '.join(paper.authors))} ({paper.year})"


class MethodMap(ChapterDirective):
    """Each equation of the chapter with the function that codes it and the test that checks it."""

    def html(self) -> str:
        rows = [
            [text(row.equation), _code(row.function), _code(row.test)]
            for row in load_card(self.slug).method
        ]
        return table(["in the derivation", "in the package", "in the tests"], rows, "pb-map")


def _code(name: str) -> str:
    return f"<code>{breakable(name)}</code>"


class ChapterList(BookDirective):
    """Chapters of one part that the book holds, each with its paper and verdict counts."""

    required_arguments = 1

    def html(self) -> str:
        part = self.arguments[0]
        if part not in project.PARTS:
            raise self.error(project.unknown("part", part, project.PARTS))
        items = []
        for slug in self.published():
            card, judgements, _ = chapter_judgements(slug)
            if card.part == part:
                name = self.chapter_link(slug, text(card.title))
                items.append([name, text(card.paper.title), verdict_counts(judgements)])
        if not items:
            return "<p>No chapter of this part is in the book yet.</p>"
        return table(["chapter", "paper", "evidence"], items)

"""Index of every theorem in the book with the tests that check it."""

from paperbook import project
from paperbook.sphinxext.base import BookDirective, breakable, table, text
from paperbook.theorems import Check, Theorem, checks_in, theorems_in


class TheoremIndex(BookDirective):
    """Statement's title, chapter, link to the proof and names of the checks."""

    def html(self) -> str:
        rows = []
        for slug in self.published():
            checks = checks_in(project.root() / "tests" / slug)
            rows += [self._row(theorem, checks) for theorem in theorems_in(slug)]
        return table(["statement", "kind", "chapter", "checked by"], rows, "pb-theorems")

    def _row(self, theorem: Theorem, checks: list[Check]) -> list[str]:
        title = text(theorem.title.strip("() ") or theorem.label)
        anchor = f"#{theorem.label}"
        tests = [check.function for check in checks if check.label == theorem.label]
        return [
            self.chapter_link(theorem.slug, title, anchor),
            theorem.kind,
            text(theorem.slug),
            "<br>".join(f"<code>{breakable(name)}</code>" for name in tests),
        ]

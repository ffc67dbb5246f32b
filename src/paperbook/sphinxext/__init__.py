"""Sphinx extension of the book: paper cards, evidence, theorems, and pages that need no network."""

from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config

from paperbook.sphinxext import chapter, evidence, offline, theorems


def add_references(app: Sphinx, config: Config) -> None:
    """Each chapter keeps the works it cites in a file of its own; the book reads them all."""
    folder = Path(app.srcdir) / "book" / "references"
    config.bibtex_bibfiles = sorted(
        path.relative_to(app.srcdir).as_posix() for path in folder.glob("*.bib")
    )


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("paper-card", chapter.PaperCard)
    app.add_directive("method-map", chapter.MethodMap)
    app.add_directive("chapter-list", chapter.ChapterList)
    app.add_directive("evidence-summary", evidence.EvidenceSummary)
    app.add_directive("evidence-matrix", evidence.EvidenceMatrix)
    app.add_directive("theorem-index", theorems.TheoremIndex)
    app.add_css_file("paperbook.css")
    app.connect("config-inited", add_references)
    offline.setup(app)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

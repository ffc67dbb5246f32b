"""What the book's directives share."""

import html

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from paperbook import project
from paperbook.card import load_card
from paperbook.errors import PaperbookError


class BookDirective(SphinxDirective):
    """A directive whose content is HTML made from cards and committed outputs.

    Its page is read again in every build, since chapters may have come or changed.
    """

    def run(self) -> list[nodes.Node]:
        self.env.note_reread()
        try:
            return [nodes.raw("", self.html(), format="html")]
        except PaperbookError as error:
            raise self.error(str(error)) from None

    def html(self) -> str:
        raise NotImplementedError

    def link(self, document: str, text: str, anchor: str = "") -> str:
        """Link to a document of the book; plain text where the builder has no such page."""
        if document not in self.env.found_docs:
            return text
        uri = self.env.app.builder.get_relative_uri(self.env.docname, document)
        return f'<a href="{uri}{anchor}">{text}</a>'

    def chapter_link(self, slug: str, text: str, anchor: str = "") -> str:
        return self.link(f"notebooks/{slug}", text, anchor)

    def published(self) -> list[str]:
        """Chapters that the book's table of contents holds, part by part."""
        order = list(project.PARTS)
        held = [slug for slug in project.slugs() if f"notebooks/{slug}" in self.env.found_docs]
        return sorted(held, key=lambda slug: order.index(load_card(slug).part))


class ChapterDirective(BookDirective):
    """A directive about one chapter: its argument is the slug."""

    required_arguments = 1

    @property
    def slug(self) -> str:
        return project.require_slug(self.arguments[0])


def table(head: list[str], rows: list[list[str]], css: str = "") -> str:
    """HTML table that scrolls inside itself; cells are HTML already."""
    header = "".join(f"<th>{cell}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{c}</td>" for c in row) + "</tr>" for row in rows)
    return (
        f'<div class="pb-scroll" tabindex="0"><table class="{css}"><thead><tr>{header}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def text(value: object) -> str:
    return html.escape(str(value))


def breakable(name: str) -> str:
    """A long dotted name or path that may break after its marks."""
    broken = text(name)
    for mark in ("::", "/", ".", "_"):
        broken = broken.replace(mark, f"{mark}<wbr>")
    return broken

"""The built files: complete, local, with the chapters' outputs in them."""

import json
import re

import pytest

from paperbook import project
from paperbook.theorems import theorems_in

REMOTE = re.compile(
    r"""<(?:script|link|img|iframe|source|video)\b[^>]*\b(?:src|href)=["'](?:https?:)?//""", re.I
)
CSS_REMOTE = re.compile(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//", re.I)


@pytest.fixture(scope="module")
def pages(html):
    return {path.relative_to(html).as_posix(): path.read_text() for path in html.rglob("*.html")}


def published(html):
    return [path.stem for path in sorted((html / "notebooks").glob("*.html"))]


def test_no_page_loads_anything_from_another_host(html, pages):
    assert [name for name, text in pages.items() if REMOTE.search(text)] == []
    sheets = [path for path in html.rglob("*.css") if CSS_REMOTE.search(path.read_text())]
    assert sheets == []


def test_every_chapter_of_the_contents_has_a_page(html, repository):
    listed = re.findall(r"notebooks/(\w+)", (repository / "_toc.yml").read_text())
    assert published(html) == sorted(listed)


def test_chapters_show_card_verdicts_and_method_map(html, pages):
    for slug in published(html):
        text = pages[f"notebooks/{slug}.html"]
        for mark in ("pb-card", "pb-claims", "pb-map", "pb-verdict", "pb-strip"):
            assert mark in text, (slug, mark)


def test_theorem_index_links_to_every_theorem(html, pages):
    index = pages["book/theorems.html"]
    for slug in published(html):
        chapter = pages[f"notebooks/{slug}.html"]
        for theorem in theorems_in(slug):
            (anchor,) = re.findall(rf'notebooks/{slug}\.html#({re.escape(theorem.label)})"', index)
            assert f'id="{anchor}"' in chapter


def test_internal_links_resolve(html, pages):
    broken = []
    for name, text in pages.items():
        body = text[text.find("<main") :]
        for target in re.findall(r'<a\b[^>]*\bhref="([^":]*)"', body):
            file, _, anchor = target.partition("#")
            there = ((html / name).parent / file).resolve() if file else html / name
            if not there.exists() or (anchor and f'id="{anchor}"' not in there.read_text()):
                broken.append((name, target))
    assert broken == []


def test_notebooks_can_be_downloaded(html):
    for slug in published(html):
        source = html / "_sources" / "notebooks" / f"{slug}.ipynb"
        assert json.loads(source.read_text())["cells"]


def test_summary_counts_every_claim(html, pages, repository):
    from paperbook.matrix import chapter_judgements

    claims = [len(chapter_judgements(slug)[1]) for slug in published(html)]
    totals = re.search(r"<strong>all</strong>(.*?)</tr>", pages["book/index.html"]).group(1)
    assert sum(int(n) for n in re.findall(r"<strong>(\d+)</strong>", totals)) == sum(claims)
    assert set(published(html)) <= set(project.slugs())

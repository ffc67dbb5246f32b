"""``paperbook new``: a new chapter that runs and passes the suite from its first minute."""

import json
import re
from pathlib import Path

import nbformat

from paperbook import project
from paperbook.errors import PaperbookError

TEMPLATES = Path(__file__).parent / "templates"
SLUG = re.compile(r"^[a-z][a-z0-9_]*$")
SECTIONS = (
    "The idea",
    "What the paper says, what we assumed",
    "The method in one screen",
    "Notation and derivation",
    "Parameters",
    "The method",
    "Experiments",
    "Evidence",
    "Sweep",
    "Limits and exercises",
    "References",
)
CELL = re.compile(r"^%% (markdown|code)(.*)$", re.MULTILINE)


def create_chapter(slug: str) -> list[Path]:
    """Write notebook, card, package, references and tests of chapter ``slug``.

    Returns:
        The files written, relative to nothing: full paths.

    Raises:
        PaperbookError: a slug that is no lower-case name, or a file that is there already.
    """
    if not SLUG.match(slug) or len(slug) > 40:
        raise PaperbookError(f"slug {slug!r}: use a-z, 0-9 and _, a letter first, 40 at most")
    files = _files(slug)
    taken = [path for path in files if path.exists()]
    if taken:
        raise PaperbookError(f"{taken[0].relative_to(project.root())} is there already")
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(files)


def _files(slug: str) -> dict[Path, str]:
    top = project.root()
    package, tests = top / "src" / "paperbook" / slug, top / "tests" / slug
    targets = {
        top / "notebooks" / f"{slug}.yaml": "card.yaml",
        top / "book" / "references" / f"{slug}.bib": "references.bib",
        package / "__init__.py": "package.py",
        package / "method.py": "method.py",
        tests / "test_method.py": "test_method.py",
        tests / "test_theorems.py": "test_theorems.py",
    }
    texts = {path: _template(name, slug) for path, name in targets.items()}
    notebook = read_cells(_template("notebook.md", slug))
    texts[top / "notebooks" / f"{slug}.ipynb"] = nbformat.writes(notebook) + "\n"
    return texts


def _template(name: str, slug: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8").replace("@SLUG@", slug)


def read_cells(text: str) -> nbformat.NotebookNode:
    """A notebook from text in which ``%% markdown`` and ``%% code key=value`` start cells."""
    notebook = nbformat.v4.new_notebook()
    notebook.metadata["kernelspec"] = {
        "display_name": "Python 3",
        "language": "python",
        "name": "python3",
    }
    _, *pieces = CELL.split(text)
    for number, (kind, options, body) in enumerate(zip(*[iter(pieces)] * 3, strict=True)):
        make = nbformat.v4.new_markdown_cell if kind == "markdown" else nbformat.v4.new_code_cell
        cell = make(body.strip("\n"), id=f"c{number:03d}")
        cell.metadata.update(_options(options))
        notebook.cells.append(cell)
    return notebook


def _options(text: str) -> dict:
    tags = re.search(r"tags=(\S+)", text)
    shown = re.search(r"mystnb=(\{.*\})", text)
    found = {"tags": tags.group(1).split(",")} if tags else {}
    return found | ({"mystnb": json.loads(shown.group(1))} if shown else {})

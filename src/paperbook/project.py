"""Where the book's files are, and which chapters it has."""

import difflib
import os
from collections.abc import Iterable
from pathlib import Path

from paperbook.errors import PaperbookError

PARTS = {
    "optimisation-and-geometry": "Optimisation and geometry",
    "generative-transport": "Generative transport",
    "agents": "Reinforcement learning and agents",
    "language-models": "Language models",
    "structure-shift-control": "Structure, shift and control",
}


def root() -> Path:
    """Top folder of the book.

    Looked for in this order: the environment variable ``PAPERBOOK_ROOT``, the current folder and
    its parents, the checkout that this package was installed from.

    Raises:
        PaperbookError: no folder with ``_config.yml`` and ``notebooks/`` was found.
    """
    named = os.environ.get("PAPERBOOK_ROOT")
    if named:
        candidates = [Path(named)]
    else:
        here = Path.cwd()
        candidates = [here, *here.parents, Path(__file__).resolve().parents[2]]
    for folder in candidates:
        if (folder / "_config.yml").is_file() and (folder / "notebooks").is_dir():
            return folder.resolve()
    raise PaperbookError(
        "no paperbook checkout found: run inside one, or set PAPERBOOK_ROOT to its top folder"
    )


def notebook_path(slug: str) -> Path:
    return root() / "notebooks" / f"{slug}.ipynb"


def card_path(slug: str) -> Path:
    return root() / "notebooks" / f"{slug}.yaml"


def sweep_path(slug: str) -> Path:
    """Where the stored sweep of a chapter stands, whether or not there is one."""
    return root() / "notebooks" / "sweeps" / f"{slug}.csv"


def slugs() -> list[str]:
    """Slugs of all chapters that have a card, in alphabetical order."""
    return sorted(path.stem for path in (root() / "notebooks").glob("*.yaml"))


def require_slug(slug: str) -> str:
    """Return ``slug``, or raise a PaperbookError that offers the closest names."""
    known = slugs()
    if slug not in known:
        raise PaperbookError(unknown("chapter", slug, known))
    return slug


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """One line for an unknown name: the closest valid names first, else all of them."""
    known = sorted(known)
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    if close:
        return f"unknown {what} {name!r}; did you mean {', '.join(close)}?"
    return f"unknown {what} {name!r}; known: {', '.join(known) or 'none'}"

"""Records kept in a notebook's outputs, in the form that ``myst_nb.glue`` reads.

A record is a ``display_data`` output whose MIME types carry a prefix and whose metadata carries a
name. Writing and reading take a few lines each, so neither needs Sphinx or an unmaintained package.
"""

import ast
import json
from pathlib import Path
from typing import Any

import nbformat
from IPython import get_ipython
from IPython.display import display

PREFIX = "application/papermill.record/"
NAME = "paperbook"


def glue(name: str, value: str | int | float) -> None:
    """Store ``value`` under ``name`` in the running cell's outputs; outside IPython do nothing."""
    if get_ipython() is None:
        return
    display(
        {PREFIX + "text/plain": repr(value)},
        metadata={"scrapbook": {"name": name, "mime_prefix": PREFIX}},
        raw=True,
    )


def records(notebook: nbformat.NotebookNode) -> dict[str, Any]:
    """All named records of a notebook, by name."""
    found = {}
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            name = output.get("metadata", {}).get("scrapbook", {}).get("name")
            if name:
                found[name] = _value(output["data"][PREFIX + "text/plain"])
    return found


def _value(text: str) -> Any:
    # Python writes these three without being able to read them as literals.
    return float(text) if text in ("nan", "inf", "-inf") else ast.literal_eval(text)


def chapter_record(source: Path | nbformat.NotebookNode) -> dict[str, Any] | None:
    """The chapter's JSON record: claims, numbers, parameters, cost, versions; None if absent."""
    notebook = nbformat.read(source, as_version=4) if isinstance(source, Path) else source
    text = records(notebook).get(NAME)
    return None if text is None else json.loads(text)

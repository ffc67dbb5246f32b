"""nbval compares verdicts: one edited by hand fails the suite, an honest notebook passes."""

import subprocess
import sys

import nbformat

from paperbook.execution import run_in_place


def nbval(path):
    command = [sys.executable, "-m", "pytest", "-q", "--nbval-lax", "-p", "no:cacheprovider"]
    return subprocess.run([*command, str(path)], capture_output=True, text=True, cwd=path.parent)


def test_a_verdict_edited_by_hand_is_caught(toy_book):
    run_in_place("toy")
    path = toy_book / "notebooks" / "toy.ipynb"
    assert nbval(path).returncode == 0

    notebook = nbformat.read(path, as_version=4)
    (cell,) = [c for c in notebook.cells if "nbval-check-output" in c.metadata.get("tags", [])]
    shown = cell.outputs[0]["data"]
    assert shown["text/plain"].endswith("reproduced")
    shown["text/plain"] = shown["text/plain"].replace("reproduced", "inconclusive")
    nbformat.write(notebook, path)
    edited = nbval(path)
    assert edited.returncode == 1
    assert "inconclusive" in edited.stdout

"""Theorem labels against marks, both ways."""

import nbformat
import pytest
from toybook import NOTEBOOK

from paperbook import project
from paperbook.scaffold import read_cells
from paperbook.theorems import problems, theorems_in

PROVED = """%% markdown
:::{prf:theorem} A title
:label: thm-toy-one
Statement.
:::

:::{prf:proof}
Proof.
:::
"""
CHECK = """import pytest
@pytest.mark.theorem("thm-toy-one")
def test_one():
    assert True
"""


def write(top, cells, tests):
    nbformat.write(read_cells(NOTEBOOK + cells), project.notebook_path("toy"))
    (top / "tests" / "toy" / "test_theorems.py").write_text(tests)


def test_a_proved_and_checked_theorem_is_in_order(toy_book):
    write(toy_book, PROVED, CHECK)
    assert problems("toy") == []
    (theorem,) = theorems_in("toy")
    assert (theorem.title, theorem.kind, theorem.proved) == ("A title", "theorem", True)


@pytest.mark.parametrize(
    ("cells", "tests", "message"),
    [
        (PROVED, "", "thm-toy-one has no test"),
        ("", CHECK, "a test checks thm-toy-one, which the notebook lacks"),
        (PROVED.split(":::{prf:proof}")[0], CHECK, "not followed by a proof"),
        (PROVED.replace(":label: thm-toy-one\n", ""), "", "has no label"),
        (PROVED + PROVED, CHECK, "stands twice"),
        (
            PROVED.replace("thm-toy-one", "thm-other-one"),
            CHECK.replace("thm-toy-one", "thm-other-one"),
            "must read thm|lem|prop|cor-toy-",
        ),
    ],
)
def test_disagreements_are_found(toy_book, cells, tests, message):
    write(toy_book, cells, tests)
    assert any(message in problem for problem in problems("toy"))

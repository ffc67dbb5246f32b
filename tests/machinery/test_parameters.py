"""Declared parameters, and values checked against them."""

import nbformat
import pytest
from papermill import inspect_notebook

from paperbook import project
from paperbook.errors import PaperbookError
from paperbook.parameters import check_values, declared_parameters, parse_assignments


@pytest.fixture
def declared(toy_book):
    return declared_parameters(project.notebook_path("toy"))


def test_all_declarations_are_seen(declared):
    assert {name: (p.type, p.default) for name, p in declared.items()} == {
        "count": ("int", 3),
        "scale": ("float", 1.0),
        "fail": ("str", ""),
        "nap": ("float", 0.0),
        "plot": ("bool", False),
        "flags": ("list", []),
    }
    assert declared["count"].help == "how many numbers"


def test_papermill_sees_the_same_parameters(repository):
    for slug in project.slugs():
        path = project.notebook_path(slug)
        ours = {p.name: p.type for p in declared_parameters(path).values()}
        theirs = {n: p["inferred_type_name"] for n, p in inspect_notebook(str(path)).items()}
        assert ours == theirs


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"cout": 3}, "did you mean count"),
        ({"count": 3.0}, "'count' takes a int"),
        ({"count": True}, "'count' takes a int"),
        ({"count": "3"}, "'count' takes a int"),
        ({"scale": float("nan")}, "'scale' takes a finite float"),
        ({"scale": "big"}, "'scale' takes a finite float"),
        ({"fail": 1}, "'fail' takes a str"),
        ({"flags": 1}, "'flags' takes a list"),
    ],
)
def test_bad_values_are_named(declared, values, message):
    with pytest.raises(PaperbookError, match=f"toy: .*{message}"):
        check_values(declared, values, "toy")


def test_an_integer_is_a_float_too(declared):
    values = check_values(declared, {"scale": 2}, "toy")
    assert type(values["scale"]) is float


def test_the_command_line_is_read_by_declared_type(declared):
    texts = ["count=7", "scale=1e-3", "fail=007", "flags=[1, 2]"]
    assert parse_assignments(declared, texts, "toy") == {
        "count": 7,
        "scale": 1e-3,
        "fail": "007",
        "flags": [1, 2],
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("count", "expected name=value"),
        ("count=many", "takes a int"),
        ("scale=inf", "takes a finite float"),
        ("flags=[1", "flow sequence"),
        ("size=1", "unknown parameter 'size'"),
    ],
)
def test_bad_texts_are_refused(declared, text, message):
    with pytest.raises(PaperbookError, match=message):
        parse_assignments(declared, [text], "toy")


@pytest.mark.parametrize(
    "source", ["count = 3", "count: int", "count: 'int' = 3", "count: int = n", "print(1)"]
)
def test_lines_that_declare_nothing_are_refused(toy_book, source):
    path = project.notebook_path("toy")
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[1].source = source
    nbformat.write(notebook, path)
    with pytest.raises(PaperbookError, match="line 1: expected"):
        declared_parameters(path)

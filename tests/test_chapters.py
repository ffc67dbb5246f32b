"""What must hold of every chapter, one test a chapter and property."""

import ast
import re

import nbformat
import pytest

from paperbook import project
from paperbook.checks import chapter_problems
from paperbook.evidence.record import chapter_record
from paperbook.execution import run
from paperbook.parameters import declared_parameters, parameters_cell
from paperbook.scaffold import SECTIONS

CHAPTERS = project.slugs()
SMOKE_LIMIT = 10.0  # CPU seconds of work, beyond the start of a kernel and its imports


@pytest.mark.parametrize("slug", CHAPTERS)
def test_chapter_is_in_order(repository, slug):
    assert chapter_problems(slug) == []


@pytest.mark.parametrize("slug", CHAPTERS)
def test_sections_stand_in_the_common_order(repository, slug):
    notebook = nbformat.read(project.notebook_path(slug), as_version=4)
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == list(SECTIONS)


@pytest.mark.parametrize("slug", CHAPTERS)
def test_code_lines_fit_their_box(repository, slug):
    notebook = nbformat.read(project.notebook_path(slug), as_version=4)
    lines = [x for c in notebook.cells if c.cell_type == "code" for x in c.source.splitlines()]
    assert [line for line in lines if len(line) > 100] == []


@pytest.mark.parametrize("slug", CHAPTERS)
def test_statistical_claims_rest_on_three_samples_or_more(repository, slug):
    record = chapter_record(project.notebook_path(slug))
    thin = [
        claim["claim"]
        for claim in record["claims"]
        for test in claim["tests"]
        if test["method"] != "worst" and len(test["samples"]) < 3
    ]
    # A claim may rest on fewer where the budget allows no more, but then it cannot be decided.
    verdicts = {claim["claim"]: claim["verdict"] for claim in record["claims"]}
    assert {verdicts[name] for name in thin} <= {"inconclusive"}


@pytest.mark.slow
@pytest.mark.parametrize("slug", CHAPTERS)
def test_smoke_profile_runs_within_its_budget(repository, slug, tmp_path):
    record = run(slug, tmp_path / "smoke.ipynb", profile="smoke")
    assert record["profile"] == "smoke"
    start = 6.0  # kernel, torch, matplotlib and POT
    slow_machine = 2.0  # a guard against a profile that has grown, not a measurement
    assert record["cpu_seconds"] < slow_machine * (SMOKE_LIMIT + start)


def test_parameters_cell_is_plain(repository):
    for slug in CHAPTERS:
        notebook = nbformat.read(project.notebook_path(slug), as_version=4)
        assert parameters_cell(notebook).cell_type == "code"
        assert {"seed", "device"} <= declared_parameters(project.notebook_path(slug)).keys()


@pytest.mark.parametrize("slug", CHAPTERS)
def test_every_parameter_is_read(repository, slug):
    """That a change of each changes a result is tested in the chapter's own tests."""
    notebook = nbformat.read(project.notebook_path(slug), as_version=4)
    read = set()
    for cell in notebook.cells:
        if cell.cell_type == "code" and cell is not parameters_cell(notebook):
            names = (n for n in ast.walk(ast.parse(cell.source)) if isinstance(n, ast.Name))
            read |= {name.id for name in names if isinstance(name.ctx, ast.Load)}
    assert declared_parameters(project.notebook_path(slug)).keys() <= read

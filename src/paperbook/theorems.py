"""Theorem labels in the notebooks and the tests that check them."""

import ast
import re
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import nbformat

from paperbook import project

KINDS = ("theorem", "lemma", "proposition", "corollary")
BLOCK = re.compile(
    rf"^(?P<fence>:{{3,}}|`{{3,}})\{{prf:(?P<kind>{'|'.join(KINDS)}|proof)\}}(?P<title>[^\n]*)\n"
    r"(?P<body>.*?)^(?P=fence)[ \t]*$",
    re.MULTILINE | re.DOTALL,
)
LABEL = re.compile(r"^:label:\s*(\S+)\s*$", re.MULTILINE)
LABEL_FORM = re.compile(r"^(thm|lem|prop|cor)-(?P<slug>[a-z0-9_]+)-\S+$")


@dataclass(frozen=True)
class Theorem:
    """A statement of a chapter; ``proved`` tells whether a proof follows it directly."""

    slug: str
    kind: str
    label: str
    title: str
    proved: bool


@dataclass(frozen=True)
class Check:
    """A test function that carries ``@pytest.mark.theorem(label)``."""

    label: str
    file: str
    function: str
    line: int


def theorems_in(slug: str) -> list[Theorem]:
    """Statements of chapter ``slug`` in their order; a missing label is an empty string."""
    notebook = nbformat.read(project.notebook_path(slug), as_version=4)
    text = "\n".join(c.source for c in notebook.cells if c.cell_type == "markdown")
    blocks = list(BLOCK.finditer(text))
    found = []
    for block, following in zip_longest(blocks, blocks[1:]):
        if block["kind"] == "proof":
            continue
        label = LABEL.search(block["body"])
        proved = following is not None and following["kind"] == "proof"
        name = label.group(1) if label else ""
        found.append(Theorem(slug, block["kind"], name, block["title"].strip(), proved))
    return found


def checks_in(folder: Path) -> list[Check]:
    """All marked tests below ``folder``, by file and line."""
    checks = []
    for path in sorted(folder.rglob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                file = path.relative_to(project.root()).as_posix()
                checks += [
                    Check(label, file, node.name, node.lineno)
                    for decorator in node.decorator_list
                    for label in _marked(decorator)
                ]
    return checks


def _marked(decorator: ast.expr) -> list[str]:
    if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.theorem":
        return [ast.literal_eval(argument) for argument in decorator.args]
    return []


def problems(slug: str) -> list[str]:
    """What is wrong between a chapter's theorems and its checks; empty when they agree."""
    theorems = theorems_in(slug)
    labels = [theorem.label for theorem in theorems]
    checked = {check.label for check in checks_in(project.root() / "tests" / slug)}
    found = [f"{t.kind} {t.title!r} has no label" for t in theorems if not t.label]
    for theorem in theorems:
        match = LABEL_FORM.match(theorem.label)
        if theorem.label and (match is None or match["slug"] != slug):
            found.append(f"label {theorem.label!r} must read thm|lem|prop|cor-{slug}-...")
        if not theorem.proved:
            found.append(f"{theorem.label or theorem.title!r} is not followed by a proof")
    found += [f"{name} has no test" for name in labels if name and name not in checked]
    found += [f"a test checks {name}, which the notebook lacks" for name in checked - set(labels)]
    found += [f"label {name} stands twice" for name in {n for n in labels if labels.count(n) > 1}]
    return sorted(found)

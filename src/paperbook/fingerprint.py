"""Fingerprint of all that decides a chapter's numbers and verdicts.

It covers the notebook's code cells, the card's rules and profiles, the package modules that the
notebook imports (directly or not) and the versions of the numerical libraries. Comments, docstrings
and formatting are left out, and so is the machinery that only runs, stores or shows results.
"""

import ast
import hashlib
import json
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import nbformat

from paperbook import project

MEASURED_LIBRARIES = ("torch", "numpy", "POT")
PACKAGE = "paperbook"
# Modules of the machinery that cannot change a number: only these of evidence can change a verdict.
DECIDING = {
    "paperbook.evidence.rules",
    "paperbook.evidence.intervals",
    "paperbook.evidence.judgement",
    "paperbook.figures",
}
MACHINERY = ("card", "cli", "checks", "errors", "evidence", "execution", "fingerprint", "figures")
MACHINERY += ("building", "console", "engine", "matrix", "parameters", "project", "scaffold")
MACHINERY += ("sphinxext", "sweep", "theorems")


def fingerprint(slug: str) -> str:
    """Hexadecimal digest (16 digits) for chapter ``slug`` as it stands on disk."""
    digest = hashlib.sha256()
    for part in _parts(slug):
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()[:16]


def _parts(slug: str) -> Iterator[str]:
    cells = _code_cells(project.notebook_path(slug))
    yield from (canonical(source) for source in cells)
    yield json.dumps(_card_rules(slug), sort_keys=True, default=str)
    for module in sorted(_dependencies(cells) | DECIDING):
        path = _module_path(module)
        if path:
            yield module
            yield canonical(path.read_text(encoding="utf-8"))
    yield from (f"{name}=={version(name).partition('+')[0]}" for name in MEASURED_LIBRARIES)


def _code_cells(path: Path) -> list[str]:
    notebook = nbformat.read(path, as_version=4)
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


def _card_rules(slug: str) -> dict:
    from paperbook.card import load_card

    card = load_card(slug)
    rules = {
        claim.id: [claim.kind, claim.method, [[test.name, test.rule] for test in claim.tests]]
        for claim in card.claims
    }
    return {"claims": rules, "profiles": card.profiles}


def canonical(source: str) -> str:
    """``source`` without comments, docstrings and layout; as it is where it does not parse."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return source
    return json.dumps(_plain(tree))


def _plain(node: object) -> object:
    if isinstance(node, list):
        return [_plain(item) for item in node]
    if isinstance(node, ast.AST):
        fields = {name: value for name, value in ast.iter_fields(node) if value not in (None, [])}
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            fields["body"] = _without_docstring(node)
        return [type(node).__name__, {name: _plain(value) for name, value in fields.items()}]
    return repr(node)


def _without_docstring(node: ast.AST) -> list[ast.stmt]:
    return node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body


def _dependencies(cells: list[str]) -> set[str]:
    """Modules of this package that the cells import, directly or through each other."""
    waiting = {name for source in cells for name in _imports(source, module="")}
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        path = _module_path(name)
        if name in seen or path is None or _is_machinery(name):
            continue
        seen.add(name)
        parent = name.rpartition(".")[0]
        package = name if path.name == "__init__.py" else parent
        waiting |= {parent} | _imports(path.read_text(encoding="utf-8"), module=package)
    return seen


def _is_machinery(name: str) -> bool:
    parts = name.split(".")
    return len(parts) > 1 and parts[1] in MACHINERY and name not in DECIDING


def _imports(source: str, module: str) -> set[str]:
    """Names below ``paperbook.`` that ``source`` imports; ``module`` resolves relative imports."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return set()
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, module)
            names |= {base} | {f"{base}.{alias.name}" for alias in node.names}
    return {name for name in names if name.startswith(f"{PACKAGE}.")}


def _absolute(node: ast.ImportFrom, module: str) -> str:
    if not node.level:
        return node.module or ""
    above = module.split(".")[: len(module.split(".")) - node.level + 1]
    return ".".join([*above, node.module] if node.module else above)


def _module_path(name: str) -> Path | None:
    base = Path(__file__).parent.joinpath(*name.split(".")[1:])
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.is_file():
            return path
    return None

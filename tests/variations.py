"""Running a chapter's cells in this process, with one parameter changed at a time."""

import re
from typing import Any

import matplotlib as mpl
import nbformat

from paperbook import project
from paperbook.card import load_card
from paperbook.evidence import Ledger
from paperbook.execution import resolve_parameters
from paperbook.parameters import Parameter, declared_parameters

QUOTED = re.compile(r'"([^"]*)"')
# Where to compute, not what: its values give the same numbers.
NOT_VARIED = {"device"}


def variations(slug: str) -> dict[str, Any]:
    """For each declared parameter a value other than that of the smoke profile."""
    card = load_card(slug)
    base = card.profile("smoke")
    found = {}
    for name, parameter in declared_parameters(project.notebook_path(slug)).items():
        if name not in NOT_VARIED:
            current = base.get(name, parameter.default)
            found[name] = _other(parameter, current, card.sweep.get(name, []))
    return found


def _other(parameter: Parameter, current: Any, grid: list) -> Any:
    """Another valid value: from the help's quoted choices, the sweep's grid, or a step away."""
    if parameter.type == "bool":
        return not current
    choices = [value for value in QUOTED.findall(parameter.help) if value != current]
    if parameter.type == "str":
        return choices[0]
    others = [value for value in grid if value != current]
    if parameter.type == "list":
        return others[0] if others else current[:-1]
    if parameter.type == "int":
        return current + 1
    return others[0] if others else current * 0.5 or 0.5


def run_cells(slug: str, overrides: dict[str, Any]) -> dict[str, Any]:
    """Claims and numbers of a run of the chapter's cells in this process."""
    mpl.use("Agg")
    values = resolve_parameters(slug, "book", overrides)
    notebook = nbformat.read(project.notebook_path(slug), as_version=4)
    namespace: dict[str, Any] = {"__name__": "__chapter__"}
    for cell in notebook.cells:
        if cell.cell_type == "code":
            exec(compile(cell.source, f"<{slug}>", "exec"), namespace)
        if "parameters" in cell.metadata.get("tags", []):
            namespace.update(values)
    mpl.pyplot.close("all")
    (ledger,) = [value for value in namespace.values() if isinstance(value, Ledger)]
    record = ledger.record()
    return {"claims": record["claims"], "numbers": record["numbers"]}

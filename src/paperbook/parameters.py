"""The parameters that a notebook declares, and values checked against them.

A chapter has one cell tagged ``parameters`` with lines ``name: type = literal  # help``. Papermill
only warns about unknown names and checks no types, so both are checked here before a kernel starts.
"""

import ast
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import yaml

from paperbook.errors import PaperbookError
from paperbook.project import unknown

TYPES = {"int": int, "float": float, "str": str, "bool": bool, "list": list}


@dataclass(frozen=True)
class Parameter:
    """One declared parameter; ``default`` is of the declared type."""

    name: str
    type: str
    default: Any
    help: str

    def check(self, value: Any) -> Any:
        """Return ``value`` in the declared type, or raise a PaperbookError naming the parameter."""
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if self.type == "float" and is_number and math.isfinite(value):
            return float(value)
        exact = type(value) is TYPES[self.type]
        if exact and self.type != "float":
            return value
        finite = "finite " if self.type == "float" else ""
        raise PaperbookError(
            f"parameter {self.name!r} takes a {finite}{self.type}, got {value!r} "
            f"(default {self.default!r})"
        )

    def parse(self, text: str) -> Any:
        """Read a value from the command line.

        Strings are taken as they are; all other types are read as YAML, so ``1e-3`` and
        ``[1, 2]`` and ``true`` mean what they say.
        """
        if self.type == "str":
            return text
        if self.type == "float":
            try:
                return self.check(float(text))
            except ValueError:
                return self.check(text)
        return self.check(yaml.safe_load(text))


def parameters_cell(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode | None:
    for cell in notebook.cells:
        if "parameters" in cell.metadata.get("tags", []):
            return cell
    return None


def declared_parameters(path: Path) -> dict[str, Parameter]:
    """Parameters of the notebook at ``path``, in their order of declaration.

    Raises:
        PaperbookError: no notebook, no tagged cell, or a line that is no plain declaration.
    """
    if not path.is_file():
        raise PaperbookError(f"{path.name}: no such notebook")
    cell = parameters_cell(nbformat.read(path, as_version=4))
    if cell is None:
        raise PaperbookError(f"{path.name}: no cell is tagged 'parameters'")
    lines = cell.source.splitlines()
    found = {}
    for node in ast.parse(cell.source).body:
        parameter = _declaration(node, lines[node.end_lineno - 1])
        if parameter is None:
            raise PaperbookError(
                f"{path.name}: parameters cell, line {node.lineno}: expected "
                f"'name: type = literal  # help' with type one of {', '.join(TYPES)}"
            )
        found[parameter.name] = parameter
    return found


def _declaration(node: ast.stmt, line: str) -> Parameter | None:
    plain = (
        isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and isinstance(node.annotation, ast.Name)
        and node.annotation.id in TYPES
        and node.value is not None
    )
    if not plain:
        return None
    try:
        default = ast.literal_eval(node.value)
    except ValueError:
        return None
    _, _, comment = line[node.end_col_offset :].partition("#")
    parameter = Parameter(node.target.id, node.annotation.id, default, comment.strip())
    return Parameter(
        parameter.name, parameter.type, parameter.check(parameter.default), parameter.help
    )


def check_values(
    declared: Mapping[str, Parameter], values: Mapping[str, Any], where: str
) -> dict[str, Any]:
    """Check names and types of ``values``; the result holds each in its declared type."""
    for name in values:
        if name not in declared:
            raise PaperbookError(f"{where}: {unknown('parameter', name, declared)}")
    try:
        return {name: declared[name].check(value) for name, value in values.items()}
    except PaperbookError as error:
        raise PaperbookError(f"{where}: {error}") from None


def parse_assignments(
    declared: Mapping[str, Parameter], assignments: list[str], where: str
) -> dict[str, Any]:
    """Turn ``["seed=3", ...]`` from the command line into checked values."""
    values = {}
    for text in assignments:
        name, equals, value = text.partition("=")
        if not equals:
            raise PaperbookError(f"{where}: expected name=value, got {text!r}")
        if name not in declared:
            raise PaperbookError(f"{where}: {unknown('parameter', name, declared)}")
        try:
            values[name] = declared[name].parse(value)
        except (PaperbookError, yaml.YAMLError) as error:
            raise PaperbookError(f"{where}: {error}") from None
    return values

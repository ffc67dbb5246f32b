"""Running a chapter's notebook in the test process: no kernel to start, and code can be patched."""

from collections.abc import Iterable, Mapping
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import nbformat

from paperbook import project


class InProcess:
    """A chapter that can be run many times with small parameters."""

    def __init__(self, slug: str, tiny: Mapping[str, Any]) -> None:
        matplotlib.use("Agg")
        notebook = nbformat.read(project.notebook_path(slug), as_version=4)
        code = [cell for cell in notebook.cells if cell.cell_type == "code"]
        # Closing the record costs a fingerprint, which no parameter changes.
        self.cells = [cell for cell in code if cell.source != "ledger.close()"]
        self.tiny = dict(tiny)

    def record(self, overrides: Mapping[str, Any] | None = None) -> str:
        """Claims and numbers of a run with ``tiny`` and ``overrides``, as text to compare."""
        namespace: dict[str, Any] = {}
        for cell in self.cells:
            exec(cell.source, namespace)
            if "parameters" in cell.metadata.get("tags", []):
                namespace.update(self.tiny | dict(overrides or {}))
        plt.close("all")
        ledger = namespace["ledger"]
        return repr([ledger.judgements, ledger.numbers])

    def without_effect(self, changes: Iterable[tuple[str, Any]]) -> list[str]:
        """Names of the parameters whose change leaves the record as it was."""
        base = self.record()
        # Else a difference below would mean nothing.
        assert self.record() == base, "two equal runs differ"
        return [name for name, value in changes if self.record({name: value}) == base]

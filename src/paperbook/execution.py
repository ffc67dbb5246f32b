"""Running chapters through papermill: checked parameters, atomic outputs, clean notebooks."""

import hashlib
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import nbformat

from paperbook import project
from paperbook.card import load_card
from paperbook.errors import PaperbookError, RunError
from paperbook.evidence.record import chapter_record
from paperbook.fingerprint import fingerprint
from paperbook.parameters import check_values, declared_parameters

KEPT_CELL_METADATA = {"tags", "mystnb", "jupyter"}
Progress = Callable[[int, int], None]


def resolve_parameters(
    slug: str, profile: str = "book", overrides: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Parameters to inject for a run of ``slug``: the profile's, then ``overrides``.

    Raises:
        PaperbookError: unknown chapter, profile or parameter, or a value of the wrong type.
    """
    card = load_card(slug)
    declared = declared_parameters(project.notebook_path(slug))
    where = f"{slug}: profile {profile!r}"
    values = check_values(declared, card.profile(profile), where)
    return values | check_values(declared, overrides or {}, slug)


def run(
    slug: str,
    output: Path,
    *,
    profile: str = "book",
    overrides: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    timed: bool = False,
) -> dict[str, Any]:
    """Execute chapter ``slug`` and write the executed notebook to ``output``.

    The output is replaced only after papermill finished *and* the chapter's record is in it (after
    a killed kernel papermill's own metadata claims success). A run that fails leaves its partial
    notebook as ``<output>.failed.ipynb``.

    Args:
        slug: the chapter.
        output: path of the executed notebook, ending in ``.ipynb``.
        profile: one of the card's profiles.
        overrides: parameter values that win over the profile's.
        progress: called with (cells done, cells in all) after each cell.
        timed: store the wall seconds of the run, and of its cells, in the notebook's metadata.

    Returns:
        The chapter's record.

    Raises:
        PaperbookError: bad input; no kernel was started.
        RunError: a cell failed, the kernel died or the record is missing.
    """
    parameters = resolve_parameters(slug, profile, overrides)
    if output.suffix != ".ipynb":
        raise PaperbookError(f"the output's name must end in .ipynb, got {output.name!r}")
    output = output.resolve()
    output.parent.mkdir(parents=True, exist_ok=True)
    part = output.with_name(f".{output.stem}.{os.getpid()}.part.ipynb")
    start = time.monotonic()
    try:
        cell_seconds = _papermill(project.notebook_path(slug), part, parameters, progress)
        record = chapter_record(part)
        if record is None:
            raise RunError(f"{slug}: finished without its final record (ledger.close())")
    except Exception as error:
        kept = _keep_partial(part, output)
        # A cell's own exception would come again; a killed kernel may not.
        again = type(error).__name__ in ("DeadKernelError", "CellTimeoutError")
        raise RunError(f"{slug}: {_describe(error)}{kept}", again=again) from error
    except KeyboardInterrupt:
        part.unlink(missing_ok=True)
        raise
    notebook = normalise(nbformat.read(part, as_version=4))
    notebook.metadata["paperbook"] = {
        "fingerprint": record["fingerprint"],
        "profile": record["profile"],
        "stored_sweep": sweep_digest(slug),
    }
    if timed:
        notebook.metadata["paperbook"]["seconds"] = round(time.monotonic() - start, 2)
        notebook.metadata["paperbook"]["cell_seconds"] = round(cell_seconds, 2)
    nbformat.write(notebook, part)
    os.replace(part, output)
    return record


def _papermill(source: Path, target: Path, parameters: dict, progress: Progress | None) -> float:
    """Execute; returns the wall seconds spent inside cells."""
    # Imported here, since papermill costs half a second and `paperbook list` needs none of it.
    import papermill

    from paperbook.engine import ENGINE, metered

    with metered(progress) as meter:
        papermill.execute_notebook(
            str(source),
            str(target),
            parameters=parameters,
            engine_name=ENGINE,
            kernel_name="python3",
            progress_bar=False,
            record_timing=False,
            extra_arguments=["--log-level=40"],
        )
    return meter.cell_seconds


def _describe(error: Exception) -> str:
    cell = getattr(error, "cell_index", None)
    if cell is None:
        return f"{type(error).__name__}: {error}".strip()
    return f"cell {cell} raised {error.ename}: {error.evalue}"


def _keep_partial(part: Path, output: Path) -> str:
    if not part.is_file():
        return ""
    failed = output.with_name(f"{output.stem}.failed.ipynb")
    os.replace(part, failed)
    return f" (partial notebook: {failed.name}; nothing else was changed)"


def run_in_place(slug: str, progress: Progress | None = None) -> dict[str, Any]:
    """Run the ``book`` profile and store the outputs in the chapter's own notebook."""
    return run(slug, project.notebook_path(slug), progress=progress)


def normalise(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Strip all that differs between two equal runs: times, paths, versions, transient metadata."""
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook.metadata = nbformat.from_dict(
        {"kernelspec": kernel, "language_info": {"name": "python"}}
    )
    for cell in notebook.cells:
        kept = {k: v for k, v in cell.metadata.items() if k in KEPT_CELL_METADATA}
        cell.metadata = nbformat.from_dict(kept)
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if not _is_empty(output)]
    return notebook


def _is_empty(output: nbformat.NotebookNode) -> bool:
    return output.output_type == "stream" and not output.text.strip()


def sweep_digest(slug: str) -> str:
    """Eight hexadecimal digits of the chapter's stored sweep, empty where there is none.

    Outputs show that sweep, so they are stale without it; it is no part of the fingerprint, since
    the sweep's own points carry one.
    """
    path = project.sweep_path(slug)
    return hashlib.sha256(path.read_bytes()).hexdigest()[:8] if path.is_file() else ""


def is_stale(slug: str) -> bool:
    """Whether the committed outputs no longer belong to the code, card, notebook and stored sweep
    on disk."""
    notebook = nbformat.read(project.notebook_path(slug), as_version=4)
    made = notebook.metadata.get("paperbook", {})
    return made.get("fingerprint") != fingerprint(slug) or (
        made.get("stored_sweep", "") != sweep_digest(slug)
    )

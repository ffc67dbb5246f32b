"""What must hold of every chapter as committed; the suite and ``paperbook check`` share it."""

import importlib
import math
import re
from collections.abc import Iterator

import nbformat

from paperbook import project, theorems
from paperbook.card import Card, load_card
from paperbook.errors import PaperbookError
from paperbook.evidence.judgement import Judgement, Measured, measure
from paperbook.evidence.record import chapter_record
from paperbook.evidence.render import verdict_lines
from paperbook.evidence.rules import NEEDS_SCALE, combine
from paperbook.execution import is_stale, resolve_parameters

# Folders that a committed output has no business naming.
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:home|root|Users|tmp|var|opt|work|private)/[\w.-]+")


def chapter_problems(slug: str) -> list[str]:
    """One line for everything that is wrong with a chapter; empty when it is in order."""
    try:
        card = load_card(slug)
        notebook = nbformat.read(project.notebook_path(slug), as_version=4)
        for profile in card.profiles:
            resolve_parameters(slug, profile)
        resolve_parameters(slug, overrides={k: v[0] for k, v in card.sweep.items() if v})
    except (PaperbookError, OSError) as error:
        return [str(error)]
    found = [*_method_map(card), *_outputs(notebook), *theorems.problems(slug)]
    found += _record(card, notebook)
    if is_stale(slug):
        found.append(f"outputs are stale: run `paperbook run {slug} --in-place`")
    return [f"{slug}: {problem}" for problem in found]


def _method_map(card: Card) -> Iterator[str]:
    if not card.method:
        yield "card: method: the method map is empty"
    for row in card.method:
        if not resolves(row.function):
            yield f"card: method: no {row.function}"
        file, _, name = row.test.partition("::")
        path = project.root() / file
        if not path.is_file() or f"def {name}(" not in path.read_text(encoding="utf-8"):
            yield f"card: method: no {row.test}"


def resolves(dotted: str) -> bool:
    """Whether ``package.module.attribute`` names something that exists."""
    parts = dotted.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for name in parts[cut:]:
            if not hasattr(found, name):
                return False
            found = getattr(found, name)
        return True
    return False


def _outputs(notebook: nbformat.NotebookNode) -> Iterator[str]:
    compared = 0
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type != "code":
            continue
        tags = cell.metadata.get("tags", [])
        compared += "nbval-check-output" in tags
        if cell.source.strip() and cell.execution_count is None:
            yield f"cell {number} was not executed"
        if "injected-parameters" in tags:
            yield f"cell {number} was injected by papermill"
        for output in cell.outputs:
            yield from (f"cell {number}: {problem}" for problem in _output(output, cell))
    if compared != 1:
        yield f"one cell must be tagged nbval-check-output, found {compared}"


def _output(output: nbformat.NotebookNode, cell: nbformat.NotebookNode) -> Iterator[str]:
    if output.output_type == "error":
        yield "an output is an error"
    if output.get("name") == "stderr":
        yield "an output went to stderr"
    text = str({k: v for k, v in output.get("data", {}).items() if not k.startswith("image/")})
    if match := MACHINE_PATH.search(text + str(output.get("text", ""))):
        yield f"an output holds the path {match.group()}"
    if "image/png" in output.get("data", {}):
        shown = cell.metadata.get("mystnb", {})
        if not shown.get("image", {}).get("alt") or not shown.get("figure", {}).get("caption"):
            yield "a figure lacks alt text or caption (cell metadata 'mystnb')"


def _record(card: Card, notebook: nbformat.NotebookNode) -> Iterator[str]:
    record = chapter_record(notebook)
    if record is None:
        yield "the outputs hold no record (ledger.close())"
        return
    if record["profile"] != "book":
        yield f"committed outputs are of profile {record['profile']!r}, not 'book'"
    judgements = [Judgement.from_dict(data) for data in record["claims"]]
    if [j.claim for j in judgements] != [claim.id for claim in card.claims]:
        yield "the record's claims are not the card's"
        return
    yield from _verdicts(card, judgements)
    yield from _shown_verdicts(notebook, verdict_lines(judgements, card))


def _verdicts(card: Card, judgements: list[Judgement]) -> Iterator[str]:
    """Judge the stored samples again: a verdict or number edited by hand does not survive."""
    for judgement in judgements:
        claim = card.claim(judgement.claim)
        again = [
            measure(test.name, test.rule, claim.method, stored.samples)
            for test, stored in zip(claim.tests, judgement.tests, strict=True)
        ]
        verdict = combine([t.verdict for t in again]) if again else NEEDS_SCALE
        same = all(_same(a, b) for a, b in zip(again, judgement.tests, strict=True))
        if verdict != judgement.verdict or not same:
            yield f"{claim.id}: the stored verdict does not follow from the stored samples"


def _same(a: Measured, b: Measured) -> bool:
    """Equal but for the last digits, which differ between CPU types."""
    numbers = zip((a.value, a.low, a.high), (b.value, b.low, b.high), strict=True)
    close = all(x == y or (x and y and math.isclose(x, y, rel_tol=1e-9)) for x, y in numbers)
    return close and (a.name, a.rule, a.method, a.verdict) == (b.name, b.rule, b.method, b.verdict)


def _shown_verdicts(notebook: nbformat.NotebookNode, expected: str) -> Iterator[str]:
    for cell in notebook.cells:
        if "nbval-check-output" in cell.metadata.get("tags", []):
            shown = [o.get("data", {}).get("text/plain", "") for o in cell.get("outputs", [])]
            if shown != [expected]:
                yield "the verdict cell must show the record's verdicts and nothing else"

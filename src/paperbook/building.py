"""Bringing chapters up to date and building the HTML."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from paperbook import project
from paperbook.errors import PaperbookError, RunError
from paperbook.evidence.record import chapter_record
from paperbook.execution import is_stale

# The bundle, its fonts, and the TeX extensions that it loads on demand (\\cancel, \\color, ...).
MATHJAX_PIECES = ("tex-mml-chtml.js", "output/chtml/fonts", "input/tex")
COLOUR = re.compile(r"\x1b\[[\d;]*m")
RERUN = ("all", "stale", "none")


@dataclass(frozen=True)
class Outcome:
    """How one chapter's run ended; ``error`` is empty when it went well."""

    slug: str
    seconds: float
    error: str


def chapters_to_run(rerun: str, chapters: Iterable[str]) -> list[str]:
    """Chapters that ``--rerun all|stale|none`` means, the slowest (by last record) first."""
    if rerun not in RERUN:
        raise PaperbookError(f"--rerun must be one of {', '.join(RERUN)}, got {rerun!r}")
    if rerun == "none":
        return []
    chosen = [slug for slug in chapters if rerun == "all" or is_stale(slug)]
    return sorted(chosen, key=lambda slug: -(expected_seconds(slug) or 1e9))


def expected_seconds(slug: str) -> float | None:
    """CPU seconds of the last run with committed outputs, None before the first one."""
    record = chapter_record(project.notebook_path(slug))
    return None if record is None else record["cpu_seconds"]


def run_chapters(
    chapters: list[str], jobs: int, report: Callable[[Outcome], None]
) -> list[Outcome]:
    """Run chapters in place, ``jobs`` at a time, each in a process of its own.

    A chapter that fails leaves its committed outputs as they were and does not stop the others.
    Ctrl-C stops the children, which leave nothing half written.
    """
    if jobs < 1:
        raise PaperbookError(f"--jobs must be at least 1, got {jobs}")
    children: set[subprocess.Popen] = set()
    stopped = threading.Event()

    def one(slug: str) -> Outcome:
        outcome = _run_child(slug, children, stopped)
        report(outcome)
        return outcome

    pool = ThreadPoolExecutor(jobs)
    try:
        return list(pool.map(one, chapters))
    except BaseException:
        stopped.set()
        for child in list(children):
            child.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _run_child(slug: str, children: set, stopped: threading.Event) -> Outcome:
    if stopped.is_set():
        return Outcome(slug, 0.0, "stopped")
    command = [sys.executable, "-m", "paperbook", "run", slug, "--in-place"]
    start = time.monotonic()
    child = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={"OMP_NUM_THREADS": "1", **os.environ, "PAPERBOOK_ROOT": str(project.root())},
    )
    children.add(child)
    _, errors = child.communicate()
    children.discard(child)
    error = "" if child.returncode == 0 else (errors.strip() or f"exit code {child.returncode}")
    return Outcome(slug, time.monotonic() - start, error)


def stage_mathjax() -> Path:
    """Copy MathJax from the wheel that carries it to the static files, so pages need no network."""
    target = project.root() / "book" / "_static" / "mathjax"
    if (target / "tex-mml-chtml.js").is_file():
        return target
    # The module's name has a hyphen: the package is only a carrier, it is never imported.
    found = importlib.util.find_spec("sphinx-mathjax-offline")
    if found is None or not found.submodule_search_locations:
        raise PaperbookError("MathJax is missing: pip install 'paperbook[book]'")
    source = Path(next(iter(found.submodule_search_locations))) / "static" / "mathjax"
    part = target.with_name("mathjax.part")
    shutil.rmtree(part, ignore_errors=True)
    for piece in MATHJAX_PIECES:
        target_piece = part / piece
        target_piece.parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (source / piece).is_dir() else shutil.copy2
        copy(source / piece, target_piece)
    shutil.rmtree(target, ignore_errors=True)
    os.replace(part, target)
    return target


def build_html() -> Path:
    """Build the book with warnings as errors and return its first page.

    Raises:
        RunError: the build failed; the message holds the warnings.
    """
    top = project.root()
    stage_mathjax()
    tool = shutil.which("jupyter-book", path=str(Path(sys.executable).parent)) or shutil.which(
        "jupyter-book"
    )
    if tool is None:
        raise PaperbookError("jupyter-book is missing: pip install 'paperbook[book]'")
    command = [tool, "build", str(top), "--all", "-W", "--keep-going", "-n"]
    env = {**os.environ, "PAPERBOOK_ROOT": str(top)}
    # Pages of chapters that have left the book would otherwise stay.
    shutil.rmtree(top / "_build" / "html", ignore_errors=True)
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=top)
    log = top / "_build" / "build.log"
    log.parent.mkdir(exist_ok=True)
    text = COLOUR.sub("", done.stdout + done.stderr)
    log.write_text(text, encoding="utf-8")
    if done.returncode:
        lines = text.splitlines()
        wanted = list(dict.fromkeys(x for x in lines if "WARNING" in x or "ERROR" in x))
        raise RunError("the build failed:\n" + "\n".join(wanted or lines[-20:]))
    return top / "_build" / "html" / "index.html"

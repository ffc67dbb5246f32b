"""Progress in a terminal, plain lines elsewhere."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.progress import TimeRemainingColumn as Remaining

out = Console(soft_wrap=True, highlight=False)
err = Console(stderr=True, soft_wrap=True, highlight=False)


@contextmanager
def progress_bar(label: str, total: float) -> Iterator:
    """Yield a function ``advance(done, total)``; elsewhere than in a terminal it prints nothing."""
    if not out.is_terminal:
        yield lambda done, total: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
    with Progress(*columns, TimeElapsedColumn(), Remaining(), console=out) as progress:
        task = progress.add_task(label, total=total)

        def advance(done: float, total: float) -> None:
            progress.update(task, completed=done, total=total)

        yield advance


def duration(seconds: float) -> str:
    """Seconds in words for readers."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


@contextmanager
def counting(total: int) -> Iterator:
    """Yield ``advance(failed, elapsed)`` for ``total`` runs: a bar, or at most 20 plain lines."""
    done = failures = 0
    step = max(total // 20, 1)

    def line(failed: bool, elapsed: float) -> None:
        nonlocal done, failures
        done, failures = done + 1, failures + failed
        if done % step == 0 or done == total:
            left = duration(elapsed / done * (total - done))
            out.print(f"{done}/{total} run, {failures} failed, about {left} left")

    if not out.is_terminal or not total:
        yield line
        return
    with progress_bar("points", total) as advance:

        def bar(failed: bool, elapsed: float) -> None:
            nonlocal done
            done += 1
            advance(done, total)

        yield bar

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

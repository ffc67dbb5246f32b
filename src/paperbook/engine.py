"""A papermill engine that tells a callback how many cells are done."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from papermill.engines import NBClientEngine, papermill_engines

ENGINE = "paperbook"
_callback: Callable[[int, int], None] | None = None


class ReportingEngine(NBClientEngine):
    """papermill's default engine, with a report after each code cell."""

    @classmethod
    def execute_managed_notebook(cls, nb_man, kernel_name, **kwargs) -> None:
        done, total = 0, len(nb_man.nb.cells)
        complete = nb_man.cell_complete

        def reporting_complete(cell, cell_index=None, **kwargs):
            nonlocal done
            complete(cell, cell_index, **kwargs)
            done += 1
            if _callback is not None:
                _callback(done, total)

        nb_man.cell_complete = reporting_complete
        super().execute_managed_notebook(nb_man, kernel_name, **kwargs)


@contextmanager
def reporting(callback: Callable[[int, int], None] | None) -> Iterator[None]:
    """Send reports of runs inside the ``with`` block to ``callback``."""
    global _callback
    papermill_engines.register(ENGINE, ReportingEngine)
    _callback = callback
    try:
        yield
    finally:
        _callback = None

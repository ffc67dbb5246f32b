"""A papermill engine that counts cells and the time they take."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from papermill.engines import NBClientEngine, papermill_engines

ENGINE = "paperbook"


@dataclass
class Meter:
    """What a run tells while it goes: wall seconds inside cells, and each finished cell."""

    callback: Callable[[int, int], None] | None = None
    cell_seconds: float = 0.0


_meter = Meter()


class MeteredEngine(NBClientEngine):
    """papermill's default engine, with a meter around each cell."""

    @classmethod
    def execute_managed_notebook(cls, nb_man, kernel_name, **kwargs) -> None:
        start, complete = nb_man.cell_start, nb_man.cell_complete
        done, total, began = 0, len(nb_man.nb.cells), 0.0

        def metered_start(cell, *arguments, **options):
            nonlocal began
            start(cell, *arguments, **options)
            began = time.monotonic()

        def metered_complete(cell, *arguments, **options):
            nonlocal done
            _meter.cell_seconds += time.monotonic() - began
            complete(cell, *arguments, **options)
            done += 1
            if _meter.callback is not None:
                _meter.callback(done, total)

        nb_man.cell_start, nb_man.cell_complete = metered_start, metered_complete
        super().execute_managed_notebook(nb_man, kernel_name, **kwargs)


@contextmanager
def metered(callback: Callable[[int, int], None] | None) -> Iterator[Meter]:
    """Send reports of the run inside the ``with`` block to ``callback`` and to the meter."""
    global _meter
    papermill_engines.register(ENGINE, MeteredEngine)
    _meter = Meter(callback)
    yield _meter

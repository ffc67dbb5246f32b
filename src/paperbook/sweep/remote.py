"""A sweep on Dask: workers need this package, but no shared disk.

A task carries the chapter's notebook and card; the worker runs them in a folder of its own, in a
child process as the local engine does, and returns the executed notebook's bytes. A task may run
twice (Dask repeats work that a lost worker held): it computes the same and is written once.
"""

import tempfile
import threading
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from paperbook import __version__, project
from paperbook.errors import PaperbookError
from paperbook.fingerprint import fingerprint
from paperbook.sweep.children import Limits, PlainChild, Stopped, watch
from paperbook.sweep.engine import Done, Report
from paperbook.sweep.jobs import Job
from paperbook.sweep.store import Failure, Point, Store, read_run, write_atomically

CONNECT_SECONDS = 8
WORKER_SECONDS = 20  # a worker that was started just before this sweep needs some to join
TASKS_PER_WORKER = 3  # running, next, and one on its way: memory stays flat
_stops: dict[str, threading.Event] = {}


@dataclass(frozen=True)
class Bundle:
    """What a worker needs to run points of one chapter."""

    sweep: str
    slug: str
    notebook: str
    card: str
    stored_sweep: bytes
    limits: Limits

    def unpack(self, top: Path) -> None:
        """Write a book of this one chapter below ``top``."""
        folder = top / "notebooks"
        (folder / "sweeps").mkdir(parents=True)
        (top / "_config.yml").write_text("", encoding="utf-8")
        (folder / f"{self.slug}.ipynb").write_text(self.notebook, encoding="utf-8")
        (folder / f"{self.slug}.yaml").write_text(self.card, encoding="utf-8")
        if self.stored_sweep:
            (folder / "sweeps" / f"{self.slug}.csv").write_bytes(self.stored_sweep)


@dataclass(frozen=True)
class Returned:
    """A task's result: the executed notebook, or a failure with what there is of it."""

    notebook: bytes
    failure: Failure | None


def perform_remotely(bundle: Bundle, parameters: dict[str, Any]) -> Returned:
    """Run one point on a worker."""
    stop = _stops.setdefault(bundle.sweep, threading.Event())
    with tempfile.TemporaryDirectory(prefix="paperbook-") as name:
        top = Path(name)
        bundle.unpack(top)
        output = top / "point.ipynb"
        job = Job(bundle.slug, parameters, str(output), str(top / "status.json"))
        try:
            failure = watch(PlainChild(job, book=str(top)), job, bundle.limits, stop)
        except Stopped:
            return Returned(b"", Failure("stopped", again=True))
        partial = output.with_name("point.failed.ipynb")
        made = output if failure is None else partial
        return Returned(made.read_bytes() if made.is_file() else b"", failure)


def stop_sweep(sweep: str) -> None:
    """Kill the runs of a sweep on this worker."""
    _stops.setdefault(sweep, threading.Event()).set()


def installed_version() -> str:
    return __version__


def run_on_dask(
    store: Store,
    points: Iterable[Point],
    address: str,
    *,
    limits: Limits | None = None,
    retries: int = 0,
    report: Report = lambda done: None,
) -> None:
    """Run ``points`` on the workers of the scheduler at ``address``.

    Raises:
        PaperbookError: no scheduler there, no workers, or workers with another version.
    """
    client = _connect(address)
    sweep = uuid.uuid4().hex
    try:
        _check_workers(client)
        for done in _Remote(client, store, sweep, limits or Limits(), retries).results(points):
            report(done)
    except BaseException:
        client.run(stop_sweep, sweep)
        raise
    finally:
        client.close()


def _connect(address: str):
    try:
        from distributed import Client
    except ImportError:
        raise PaperbookError("Dask is missing: pip install 'paperbook[sweep]'") from None
    try:
        return Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise PaperbookError(f"no Dask scheduler at {address}: {_first_line(error)}") from None


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


def _check_workers(client) -> None:
    """Refuse workers that would compute something else."""
    try:
        client.wait_for_workers(1, timeout=WORKER_SECONDS)
    except TimeoutError:
        raise PaperbookError(
            "the Dask scheduler has no workers: start one with `dask worker`"
        ) from None
    versions = client.run(installed_version, on_error="return")
    for worker, version in versions.items():
        if isinstance(version, BaseException):
            raise PaperbookError(f"worker {worker} cannot import paperbook: {_first_line(version)}")
        if version != __version__:
            raise PaperbookError(
                f"worker {worker} has paperbook {version}, this is {__version__}: "
                "install the same version there"
            )


class _Remote:
    """Tasks in flight, a bounded number at a time."""

    def __init__(self, client, store: Store, sweep: str, limits: Limits, retries: int) -> None:
        self.client, self.store, self.limits, self.retries = client, store, limits, retries
        self.sweep = sweep
        self.flying: dict[str, tuple[Point, int]] = {}

    def results(self, points: Iterable[Point]) -> Iterator[Done]:
        from distributed import as_completed

        waiting = iter(points)
        threads = sum(w["nthreads"] for w in self.client.scheduler_info()["workers"].values())
        first = [self._submit(point, 0) for point in islice(waiting, TASKS_PER_WORKER * threads)]
        arriving = as_completed(first, loop=self.client.loop)
        for future in arriving:
            point, tries = self.flying.pop(future.key)
            failure = self._receive(point, future)
            future.release()
            if failure is not None and failure.again and tries < self.retries:
                arriving.add(self._submit(point, tries + 1))
                continue
            if failure is not None:
                self.store.record_failure(point, failure)
            following = next(waiting, None)
            if following is not None:
                arriving.add(self._submit(following, 0))
            yield Done(point, failure)

    def _submit(self, point: Point, tries: int):
        table = project.sweep_path(point.slug)
        bundle = Bundle(
            self.sweep,
            point.slug,
            project.notebook_path(point.slug).read_text(encoding="utf-8"),
            project.card_path(point.slug).read_text(encoding="utf-8"),
            table.read_bytes() if table.is_file() else b"",
            self.limits,
        )
        key = f"paperbook-{point.key}-{self.sweep}-{tries}"
        self.flying[key] = (point, tries)
        return self.client.submit(
            perform_remotely, bundle, dict(point.parameters), key=key, pure=False
        )

    def _receive(self, point: Point, future) -> Failure | None:
        """Write what a task returned; the failure, if there is one."""
        if future.status != "finished":
            return Failure(f"{point.slug}: {_first_line(future.exception())}", again=True)
        returned = future.result()
        if returned.failure is not None:
            if returned.notebook:
                write_atomically(self.store.failed_notebook(point), returned.notebook)
            return returned.failure
        target = self.store.notebook(point)
        write_atomically(target, returned.notebook)
        run = read_run(target)
        if run is None or run.point.key != point.key:
            theirs = "unreadable" if run is None else run.point.fingerprint
            target.unlink()
            return Failure(
                f"{point.slug}: the worker's code differs (fingerprint {theirs}, "
                f"here {fingerprint(point.slug)})"
            )
        self.store.record_success(point)
        return None

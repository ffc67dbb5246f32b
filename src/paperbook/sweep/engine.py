"""A sweep on this machine: a thread a worker, each watching one child process at a time."""

import queue
import tempfile
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from paperbook import console
from paperbook.errors import PaperbookError, RunError
from paperbook.sweep.children import Launcher, Limits, PlainLauncher, Stopped, watch
from paperbook.sweep.jobs import Job
from paperbook.sweep.store import Failure, Point, Store


@dataclass(frozen=True)
class Done:
    """A point that was tried to its end; ``failure`` is None when its notebook is there."""

    point: Point
    failure: Failure | None


Report = Callable[[Done], None]


def run_locally(
    store: Store,
    points: Iterable[Point],
    *,
    workers: int = 2,
    limits: Limits | None = None,
    retries: int = 0,
    preload: bool = False,
    report: Report = lambda done: None,
) -> None:
    """Run ``points`` with ``workers`` threads; outputs and failures go to ``store``.

    An interrupt kills what is running, leaves finished points alone and is raised again.

    Raises:
        PaperbookError: bad numbers.
    """
    if workers < 1:
        raise PaperbookError(f"--workers must be at least 1, got {workers}")
    if retries < 0:
        raise PaperbookError(f"--retries must be at least 0, got {retries}")
    launcher = _launcher(preload)
    crew = _Crew(store, points, launcher, limits or Limits(), retries)
    threads = [threading.Thread(target=crew.work) for _ in range(workers)]
    try:
        for thread in threads:
            thread.start()
        for done in crew.results(threads):
            report(done)
    finally:
        crew.stop.set()
        for thread in threads:
            thread.join()
        launcher.close()


def _launcher(preload: bool) -> Launcher:
    if preload:
        from paperbook.sweep.preload import PreloadedLauncher, available

        try:
            if available():
                return PreloadedLauncher()
            reason = "this system cannot fork kernels"
        except RunError as error:
            reason = str(error)
        console.err.print(f"paperbook: --preload is not used: {reason}", markup=False)
    return PlainLauncher()


class _Crew:
    """What the worker threads share."""

    def __init__(
        self,
        store: Store,
        points: Iterable[Point],
        launcher: Launcher,
        limits: Limits,
        retries: int,
    ) -> None:
        self.store, self.launcher, self.limits, self.retries = store, launcher, limits, retries
        self.stop = threading.Event()
        self.finished: queue.Queue[Done | BaseException] = queue.Queue()
        self._waiting = iter(points)
        self._lock = threading.Lock()

    def work(self) -> None:
        with tempfile.TemporaryDirectory(prefix="paperbook-") as private:
            while not self.stop.is_set():
                with self._lock:
                    point = next(self._waiting, None)
                if point is None:
                    return
                try:
                    self.finished.put(Done(point, self._try(point, Path(private))))
                except Stopped:
                    return
                except BaseException as error:
                    self.finished.put(error)
                    return

    def _try(self, point: Point, private: Path) -> Failure | None:
        job = Job(
            point.slug,
            dict(point.parameters),
            str(self.store.notebook(point)),
            str(private / f"{point.key}.json"),
        )
        for _ in range(1 + self.retries):
            failure = watch(self.launcher.start(job), job, self.limits, self.stop)
            if failure is None:
                self.store.record_success(point)
                return None
            if not failure.again:
                break
        self.store.record_failure(point, failure)
        return failure

    def results(self, threads: list[threading.Thread]):
        """Yield results as they come; the wait is short, so that an interrupt is seen at once."""
        while True:
            alive = any(thread.is_alive() for thread in threads)
            try:
                result = self.finished.get(timeout=0.1)
            except queue.Empty:
                if alive:
                    continue
                return
            if isinstance(result, BaseException):
                raise result
            yield result

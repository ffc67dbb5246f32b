"""Child processes for runs: plain ones, and the watch over any kind."""

import contextlib
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from typing import Protocol

import psutil

from paperbook.sweep.jobs import Job, read_failure
from paperbook.sweep.store import Failure

TICK = 0.02  # seconds between two looks at a child
MEMORY_TICK = 0.25  # seconds between two looks at the memory of its family


class Child(Protocol):
    """A started run."""

    pid: int

    def poll(self) -> int | None: ...

    def release(self) -> None: ...


class Launcher(Protocol):
    """Starts children, each for one job."""

    def start(self, job: Job) -> Child: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Limits:
    """Bounds of one run; 0 is none. Memory is that of the run and its kernel, in megabytes."""

    seconds: float = 0.0
    megabytes: float = 0.0


class PlainChild:
    """A fresh interpreter; our end of its standard input is its lifeline."""

    def __init__(self, job: Job, book: str = "") -> None:
        environment = {"OMP_NUM_THREADS": "1", **os.environ}
        if book:
            environment["PAPERBOOK_ROOT"] = book
        self._process = subprocess.Popen(
            [sys.executable, "-m", "paperbook.sweep.jobs"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env=environment,
        )
        self.pid = self._process.pid
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(job.to_json().encode() + b"\n")
            self._process.stdin.flush()

    def poll(self) -> int | None:
        return self._process.poll()

    def release(self) -> None:
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        self._process.wait()


class PlainLauncher:
    """Starts every run in a fresh interpreter."""

    def start(self, job: Job) -> PlainChild:
        return PlainChild(job)

    def close(self) -> None:
        pass


class Stopped(Exception):
    """The sweep is being stopped; the run was killed and counts as never started."""


def watch(child: Child, job: Job, limits: Limits, stop: threading.Event) -> Failure | None:
    """Wait for ``child``; None when its output is there, else what went wrong.

    Raises:
        Stopped: ``stop`` was set.
    """
    family = _Family(child.pid)
    start = looked = time.monotonic()
    whole = False
    try:
        while (code := child.poll()) is None:
            if stop.is_set():
                raise Stopped
            now = time.monotonic()
            if limits.seconds and now - start > limits.seconds:
                return Failure(f"{job.slug}: stopped after {limits.seconds:g} s (--timeout)", True)
            if now - looked > MEMORY_TICK:
                looked = now
                used = family.megabytes()
                if limits.megabytes and used > limits.megabytes:
                    return Failure(
                        f"{job.slug}: stopped at {used:.0f} MB (--memory {limits.megabytes:g})"
                    )
            time.sleep(TICK)
        whole = code == 0
        return None if whole else read_failure(job, code)
    finally:
        family.end(search=not whole)
        child.release()


class _Family:
    """A child with its descendants, remembered so that none outlives it."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._members: dict[int, psutil.Process] = {}
        with contextlib.suppress(psutil.Error):
            self._members[pid] = psutil.Process(pid)
        self._root = self._members.get(pid)

    def _look(self) -> None:
        if self._root is not None:
            with contextlib.suppress(psutil.Error):
                found = self._root.children(recursive=True)
                self._members.update({member.pid: member for member in found})

    def _orphans(self) -> list[psutil.Process]:
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get("JPY_PARENT_PID") == str(self._pid):
                    found.append(process)
        return found

    def megabytes(self) -> float:
        self._look()
        total = 0
        for member in self._members.values():
            with contextlib.suppress(psutil.Error):
                total += member.memory_info().rss
        return total / 1e6

    def end(self, *, search: bool) -> None:
        """Kill all that still live (psutil never signals a process that reuses a number).

        ``search`` looks for kernels everywhere: one that was just starting when its runner died
        is nobody's descendant, and its own poller may take init for its rightful parent.
        """
        self._look()
        if search:
            self._members.update({kernel.pid: kernel for kernel in self._orphans()})
        for member in self._members.values():
            with contextlib.suppress(psutil.Error):
                member.kill()

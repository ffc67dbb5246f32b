"""One run, in a process of its own: what to do, and how it tells what came of it."""

import json
import os
import signal
import sys
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from paperbook.errors import PaperbookError, RunError
from paperbook.sweep.store import Failure, write_atomically


@dataclass(frozen=True)
class Job:
    """A run of chapter ``slug`` into ``output``; its failure, if any, goes to ``status``."""

    slug: str
    parameters: Mapping[str, Any]
    output: str
    status: str

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Job":
        return cls(**json.loads(text))


def perform(job: Job) -> int:
    """Run the job in this process; the exit code, 0 when the output is there and whole."""
    from paperbook.execution import run

    try:
        run(job.slug, Path(job.output), overrides=job.parameters, timed=True)
    except (RunError, PaperbookError, OSError) as error:
        failure = Failure(str(error), getattr(error, "again", False))
        write_atomically(Path(job.status), json.dumps(asdict(failure)).encode())
        return 1
    return 0


def read_failure(job: Job, code: int) -> Failure:
    """Why a job ended with ``code`` other than 0."""
    try:
        return Failure(**json.loads(Path(job.status).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return Failure(f"{job.slug}: the run's process ended with {how}", again=True)


def die_with_owner() -> None:
    """End this process and its kernel as soon as the owner closes our standard input."""

    def wait() -> None:
        while sys.stdin.buffer.raw.read(4096):
            pass
        end_family()

    threading.Thread(target=wait, daemon=True).start()


def end_family(*_: object) -> None:
    """Kill every descendant of this process, then the process itself."""
    import psutil

    for child in psutil.Process().children(recursive=True):
        child.kill()
    os._exit(143)


def main() -> None:
    """Entry of a plain child: the job is the first line of standard input."""
    job = Job.from_json(sys.stdin.buffer.raw.readline().decode())
    signal.signal(signal.SIGTERM, end_family)
    die_with_owner()
    sys.exit(perform(job))


if __name__ == "__main__":
    main()

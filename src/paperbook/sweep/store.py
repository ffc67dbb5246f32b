"""A sweep's folder: executed notebooks are the truth, all else is made from them."""

import ast
import fcntl
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paperbook.errors import PaperbookError
from paperbook.evidence.record import NAME, PREFIX


@dataclass(frozen=True)
class Point:
    """One run of a sweep: ``parameters`` are all of the chapter's, defaults included."""

    slug: str
    fingerprint: str
    parameters: Mapping[str, Any]

    @property
    def key(self) -> str:
        """Name of the point's files: 16 hexadecimal digits that decide what is computed."""
        text = json.dumps([self.slug, self.fingerprint, dict(self.parameters)], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Failure:
    """How a point's last try ended; ``again`` tells whether another try may help."""

    error: str
    again: bool = False


class Store:
    """Files below ``folder``: ``points/<key>.ipynb``, and for a failure its error and notebook."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.points = self.folder / "points"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep a second sweep out of the folder; the lock goes with the process that holds it.

        Raises:
            PaperbookError: another process is at work there.
        """
        self.points.mkdir(parents=True, exist_ok=True)
        with open(self.folder / ".lock", "a+") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                lock.seek(0)
                raise PaperbookError(
                    f"{self.folder.name}: another sweep (process {lock.read().strip()}) "
                    "is at work in this folder"
                ) from None
            lock.truncate(0)
            lock.write(str(os.getpid()))
            lock.flush()
            yield

    def notebook(self, point: Point) -> Path:
        return self.points / f"{point.key}.ipynb"

    def failed_notebook(self, point: Point) -> Path:
        return self.points / f"{point.key}.failed.ipynb"

    def error_file(self, point: Point) -> Path:
        return self.points / f"{point.key}.error.json"

    def is_done(self, point: Point) -> bool:
        """Whether a whole notebook of this very point is there; a damaged one is moved away."""
        path = self.notebook(point)
        if not path.is_file():
            return False
        run = read_run(path)
        if run is not None and run.point.key == point.key:
            return True
        os.replace(path, path.with_suffix(".damaged"))
        return False

    def failure(self, point: Point) -> Failure | None:
        try:
            data = json.loads(self.error_file(point).read_text(encoding="utf-8"))
            return Failure(data["error"], data["again"])
        except (OSError, ValueError, KeyError):
            return None

    def record_failure(self, point: Point, failure: Failure) -> None:
        """Write down a failure; where even that cannot be written, the point just stays missing."""
        data = {"error": failure.error, "again": failure.again, "parameters": point.parameters}
        try:
            write_atomically(self.error_file(point), json.dumps(data, indent=1).encode())
        except OSError:
            self.error_file(point).unlink(missing_ok=True)

    def record_success(self, point: Point) -> None:
        for path in (self.error_file(point), self.failed_notebook(point)):
            path.unlink(missing_ok=True)

    def put_aside_stale(self, points: Iterable[Point]) -> int:
        """Move runs of other code out of the way, to ``stale/``; return how many."""
        current = {point.fingerprint for point in points}
        moved = 0
        for path in self.finished():
            run = read_run(path)
            if run is not None and run.point.fingerprint not in current:
                (self.folder / "stale").mkdir(exist_ok=True)
                os.replace(path, self.folder / "stale" / path.name)
                moved += 1
        return moved

    def clear_leftovers(self) -> None:
        """Remove half-written files of runs that were killed."""
        for path in [*self.points.glob(".*.part*"), *self.points.glob("*.damaged")]:
            path.unlink(missing_ok=True)

    def finished(self) -> list[Path]:
        return sorted(
            path
            for path in self.points.glob("*.ipynb")
            if not path.name.startswith(".") and not path.name.endswith(".failed.ipynb")
        )


@dataclass(frozen=True)
class Run:
    """A finished point, read back from its notebook."""

    point: Point
    record: Mapping[str, Any]
    seconds: float


def read_run(path: Path) -> Run | None:
    """The run in an executed notebook, None where the file is damaged or has no record.

    Read as plain JSON: validating a notebook takes ten times as long, and there may be thousands.
    """
    try:
        notebook = json.loads(path.read_bytes())
        record = json.loads(_record_text(notebook))
        point = Point(record["slug"], record["fingerprint"], record["parameters"])
        return Run(point, record, float(notebook["metadata"]["paperbook"].get("seconds", 0)))
    except (OSError, ValueError, KeyError, TypeError, SyntaxError):
        return None


def _record_text(notebook: Mapping[str, Any]) -> str:
    for cell in reversed(notebook["cells"]):
        for output in cell.get("outputs", []):
            if output.get("metadata", {}).get("scrapbook", {}).get("name") == NAME:
                text = output["data"][PREFIX + "text/plain"]
                return ast.literal_eval(text if isinstance(text, str) else "".join(text))
    raise KeyError(NAME)


def write_atomically(path: Path, content: bytes) -> None:
    """Write ``content`` so that a reader sees the old file or the new one, never a part."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_bytes(content)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)

"""The client's side of preloaded runs: a launcher that asks a zygote."""

import json
import os
import subprocess
import sys
import threading
from dataclasses import asdict
from itertools import count

from paperbook.errors import RunError
from paperbook.sweep.jobs import Job

# pandas imports pyarrow, whose allocator would start a thread of its own.
NO_BACKGROUND_THREAD = {"JE_ARROW_MALLOC_CONF": "background_thread:false"}


def available() -> bool:
    """Whether runs can be forked here: Linux, with its /proc."""
    return sys.platform == "linux" and os.path.isdir("/proc/self/task")


class ForkedChild:
    """A run forked by the zygote."""

    def __init__(self) -> None:
        self.pid = 0
        self.code: int | None = None
        self.started = threading.Event()

    def poll(self) -> int | None:
        return self.code

    def release(self) -> None:
        pass


class PreloadedLauncher:
    """Starts every run as a fork of one preloaded process.

    Raises:
        RunError: the preloaded process did not come up, or ended.
    """

    def __init__(self) -> None:
        self._zygote = subprocess.Popen(
            [sys.executable, "-m", "paperbook.sweep.zygote"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            env={"OMP_NUM_THREADS": "1", **os.environ, **NO_BACKGROUND_THREAD},
        )
        self._children: dict[str, ForkedChild] = {}
        self._names = count()
        self._lock = threading.Lock()
        if not self._zygote.stdout.readline():
            raise RunError("the preloaded process did not start")
        threading.Thread(target=self._listen, daemon=True).start()

    def start(self, job: Job) -> ForkedChild:
        child, name = ForkedChild(), str(next(self._names))
        with self._lock:
            self._children[name] = child
            request = json.dumps({"id": name, "job": asdict(job)})
            try:
                self._zygote.stdin.write(request.encode() + b"\n")
                self._zygote.stdin.flush()
            except OSError:
                raise RunError("the preloaded process has ended", again=True) from None
        child.started.wait()
        return child

    def _listen(self) -> None:
        for line in self._zygote.stdout:
            message = json.loads(line)
            child = self._children[message["id"]]
            if "pid" in message:
                child.pid = message["pid"]
                child.started.set()
            else:
                child.code = message["code"]
                del self._children[message["id"]]
        for child in list(self._children.values()):
            child.code = -9 if child.code is None else child.code
            child.started.set()

    def close(self) -> None:
        self._zygote.stdin.close()
        self._zygote.wait()

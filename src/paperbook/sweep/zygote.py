"""A preloaded process that forks runs, so that none waits for its imports.

``python -m paperbook.sweep.zygote`` imports what chapters import, then reads jobs (a JSON object a
line: ``id`` and ``job``) from standard input. For each it forks a runner, which at once, while it
still has one thread, forks the process that will be its kernel. It answers on standard output with
``{"id", "pid"}`` and later ``{"id", "code"}``.

Dangers of forking, and what is done about each:

* a thread pool of the parent is dead in the child, which then hangs: the zygote runs no tensor
  operation and asserts before every fork that it has one thread;
* inline figures vanish when pyplot is imported before the kernel exists: the kernel switches
  them on;
* nobody's child must outlive its owner: the zygote ends with its standard input and takes its
  runners along; a kernel's own poller watches its runner, which is its parent;
* random state is inherited: NumPy's and Python's are seeded afresh. PyTorch's is left alone, since
  a fresh interpreter starts it from a constant, too;
* an edit of the package needs a new zygote: each sweep starts its own;
* CUDA must not be in use before a fork: nothing here touches it.
"""

import ctypes
import json
import os
import random
import selectors
import signal
import sys
from typing import Any

from paperbook.sweep.jobs import Job, end_family, perform

PROVISIONER = "paperbook-fork"
PR_SET_PDEATHSIG = 1


def preload() -> None:
    """Import what a chapter and its runner need; run none of it."""
    import ipykernel.kernelapp
    import matplotlib.pyplot
    import ot
    import papermill
    import torch

    import paperbook.evidence.ledger
    import paperbook.execution
    import paperbook.figures

    del ipykernel, matplotlib, ot, papermill, paperbook, torch


def assert_single_thread() -> None:
    """Raise RuntimeError unless this process has one thread: forking it is unsafe otherwise."""
    threads = len(os.listdir("/proc/self/task"))
    if threads != 1:
        raise RuntimeError(f"the preloaded process has {threads} threads: it must not fork")


def die_with_parent() -> None:
    """Ask the kernel of the operating system to kill this process when its parent ends."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Zygote:
    """The loop of the preloaded process."""

    def __init__(self) -> None:
        self.runners: dict[int, str] = {}
        self.waking, self.wake = os.pipe()
        os.set_blocking(self.wake, False)
        self.buffer = b""

    def serve(self) -> None:
        signal.set_wakeup_fd(self.wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        selector = selectors.DefaultSelector()
        selector.register(0, selectors.EVENT_READ)
        selector.register(self.waking, selectors.EVENT_READ)
        answer({"ready": True})
        while True:
            for key, _ in selector.select():
                if key.fd == self.waking:
                    os.read(self.waking, 4096)
                    self.reap()
                elif not self.read():
                    self.end()
                    return

    def read(self) -> bool:
        """Take what is on standard input; False at its end."""
        block = os.read(0, 65536)
        self.buffer += block
        *lines, self.buffer = self.buffer.split(b"\n")
        for line in lines:
            request = json.loads(line)
            self.fork(request["id"], Job(**request["job"]))
        return bool(block)

    def fork(self, name: str, job: Job) -> None:
        assert_single_thread()
        pid = os.fork()
        if pid == 0:
            run_forked(job)
        self.runners[pid] = name
        answer({"id": name, "pid": pid})

    def reap(self) -> None:
        while self.runners:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            name = self.runners.pop(pid)
            answer({"id": name, "code": os.waitstatus_to_exitcode(status)})

    def end(self) -> None:
        for pid in self.runners:
            os.kill(pid, signal.SIGTERM)


def answer(message: dict[str, Any]) -> None:
    os.write(1, json.dumps(message).encode() + b"\n")


def run_forked(job: Job) -> None:
    """The runner: never returns."""
    code = 1
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        silence()
        die_with_parent()
        reader, writer = os.pipe()
        assert_single_thread()
        kernel = os.fork()
        if kernel == 0:
            os.close(writer)
            become_kernel(reader)
        os.close(reader)
        signal.signal(signal.SIGTERM, end_family)
        os.environ["JUPYTER_DEFAULT_PROVISIONER_NAME"] = PROVISIONER
        os.environ["PAPERBOOK_FORKED_KERNEL"] = f"{kernel}:{writer}"
        code = perform(job)
    finally:
        os._exit(code)


def silence() -> None:
    """Nothing here reads from, or writes to, the zygote's channels."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nothing, fd)
    os.close(nothing)


def become_kernel(reader: int) -> None:
    """Wait for the runner's word, then be its kernel: never returns."""
    try:
        os.setsid()
        die_with_parent()
        with os.fdopen(reader, "rb") as stream:
            text = stream.readline()
        if text:
            start_kernel(**json.loads(text))
    finally:
        os._exit(0)


def start_kernel(argv: list[str], env: dict[str, str], cwd: str | None) -> None:
    import numpy as np
    from ipykernel.kernelapp import IPKernelApp

    os.environ.clear()
    os.environ.update(env)
    if cwd:
        os.chdir(cwd)
    random.seed()
    np.random.seed()  # noqa: NPY002 - the global state is what a fork inherits
    sys.argv = ["ipykernel_launcher", *argv]
    app = IPKernelApp.instance(parent_handle=os.getppid())
    app.initialize(argv)
    app.shell.enable_matplotlib("inline")
    app.start()


if __name__ == "__main__":
    preload()
    assert_single_thread()
    Zygote().serve()

"""What tests of sweeps share."""

import os
import subprocess
import sys
import time

import psutil
import pytest

from paperbook.sweep.plan import all_points
from paperbook.sweep.space import Space
from paperbook.sweep.store import Store


@pytest.fixture
def store(tmp_path):
    made = Store(tmp_path / "sweep")
    made.points.mkdir(parents=True)
    return made


@pytest.fixture
def points(toy_book):
    def make(**grid):
        return all_points("toy", Space(grid, {}), "book")

    return make


@pytest.fixture
def no_orphans(toy_book):
    """After the test no process that works on its book is left, kernels first of all."""
    yield
    deadline = time.monotonic() + 10
    while left := family(str(toy_book)):
        assert time.monotonic() < deadline, left
        time.sleep(0.1)


def family(book):
    """Living processes that were started for the book in folder ``book``."""
    found = []
    for process in psutil.process_iter(["pid", "cmdline"]):
        words = " ".join(process.info["cmdline"] or [])
        ours = any(mark in words for mark in ("ipykernel", "paperbook.sweep", "paperbook sweep"))
        try:
            if ours and process.environ().get("PAPERBOOK_ROOT") == book:
                found.append((process, process.ppid(), words))
        except psutil.Error:
            continue
    return found


def sweep_command(folder, *arguments):
    return [sys.executable, "-m", "paperbook", "sweep", "toy", "-o", str(folder), *arguments]


def start_sweep(folder, *arguments):
    return subprocess.Popen(
        sweep_command(folder, *arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
    )


def wait_for(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)
    return value

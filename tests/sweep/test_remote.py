"""Sweeps on Dask, with a scheduler and workers started as a user would, on loopback."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import psutil
import pytest
from sweeptools import start_sweep, wait_for

from paperbook.errors import PaperbookError
from paperbook.sweep import remote
from paperbook.sweep.children import Limits
from paperbook.sweep.engine import run_locally
from paperbook.sweep.plan import make_plan
from paperbook.sweep.remote import run_on_dask
from paperbook.sweep.results import collect
from paperbook.sweep.store import Store

REPOSITORY = Path(__file__).resolve().parents[2]
COST = ["seconds", "cpu_seconds", "peak_memory_mb"]


class Cluster:
    """A scheduler and workers, each a process of its own."""

    def __init__(self, folder):
        self.file = folder / "scheduler.json"
        self.folder = folder
        # Workers know nothing of the client's book.
        self.env = {k: v for k, v in os.environ.items() if k != "PAPERBOOK_ROOT"}
        self.processes = []
        self.start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        wait_for(self.file.exists)
        self.workers = [self.start_worker() for _ in range(2)]

    def start(self, what, *arguments):
        command = [sys.executable, "-m", "dask", what, "--scheduler-file", str(self.file)]
        process = subprocess.Popen(
            [*command, *arguments],
            cwd=self.folder,
            env=self.env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.processes.append(process)
        return process

    def start_worker(self):
        return self.start("worker", "--nthreads", "1", "--no-nanny", "--no-dashboard")

    @property
    def address(self):
        from distributed import Client

        with Client(scheduler_file=str(self.file), set_as_default=False) as client:
            client.wait_for_workers(2, timeout=60)
            return client.scheduler.address

    def close(self):
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture
def cluster(tmp_path):
    made = Cluster(tmp_path)
    yield made
    made.close()


def test_dask_gives_the_same_table_as_this_machine(cluster, store, points, tmp_path):
    made = points(count=[1, 2, 3])
    local = Store(tmp_path / "local")
    local.points.mkdir(parents=True)
    run_locally(local, made)
    run_on_dask(store, made, cluster.address)
    ours, theirs = (
        collect(s).drop(columns=COST).sort_values(["key", "statistic"], ignore_index=True)
        for s in (local, store)
    )
    pd.testing.assert_frame_equal(ours, theirs)


def test_failures_come_back_with_their_notebooks(cluster, store, points):
    made = points(fail=["raise", "hang"])
    done = []
    run_on_dask(store, made[:1], cluster.address, report=done.append)
    run_on_dask(store, made[1:], cluster.address, limits=Limits(seconds=3), report=done.append)
    failures = {d.point.parameters["fail"]: d.failure for d in done}
    assert "planned failure" in failures["raise"].error
    assert "stopped after 3 s" in failures["hang"].error
    (raising,) = [p for p in made if p.parameters["fail"] == "raise"]
    assert store.failed_notebook(raising).is_file()
    assert len(make_plan(made, store).failed) == 2


def test_a_killed_worker_costs_nothing(cluster, store, points):
    address = cluster.address
    made = points(count=[1, 2, 3, 4, 5], nap=[1.0])
    sweep = start_sweep(store.folder, "-p", "count=1:6", "-p", "nap=1.0", "--dask", address)
    wait_for(lambda: store.points.is_dir() and store.finished(), seconds=90)
    cluster.workers[0].kill()
    output, errors = sweep.communicate(timeout=120)
    assert sweep.returncode == 0, errors
    assert "5 points: 5 done, 0 failed, 0 left" in output
    assert collect(store)["key"].nunique() == len(made)
    wait_for(lambda: not kernels_of_nobody())


def test_ctrl_c_stops_the_workers_runs_and_resuming_finishes(toy_book, cluster, store):
    address = cluster.address
    arguments = ("-p", "count=1:6", "-p", "nap=2.0", "--dask", address)
    sweep = start_sweep(store.folder, *arguments)
    wait_for(lambda: store.points.is_dir() and store.finished(), seconds=90)
    sweep.send_signal(signal.SIGINT)
    _, errors = sweep.communicate(timeout=30)
    assert sweep.returncode == 130
    assert "what was finished is kept" in errors
    wait_for(lambda: not any(psutil.Process(w.pid).children() for w in cluster.workers), seconds=30)
    kept = len(store.finished())
    assert 1 <= kept < 5
    again = start_sweep(store.folder, *arguments)
    output, errors = again.communicate(timeout=120)
    assert again.returncode == 0, errors
    assert output.splitlines()[0] == f"5 points: {kept} done, 0 failed, {5 - kept} left"


def test_the_loopback_recipe_of_the_book_works_as_printed(toy_book, tmp_path):
    text = (REPOSITORY / "book" / "sweeps.md").read_text()
    recipe = re.search(r"On one machine:\n\n```bash\n(.*?)```", text, re.DOTALL).group(1)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    # A port that is free here, and points that take a second.
    recipe = recipe.replace("8786", port).replace("ntk_width --profile smoke", "toy")
    recipe = recipe.replace("seed=0:8", "count=1:3").replace("sweeps/seeds", str(tmp_path / "out"))
    assert recipe.count(port) == 3
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    shell = subprocess.Popen(
        ["bash", "-e", "-c", recipe],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        seen = ""
        for line in shell.stdout:
            seen += line
            if "2 done, 0 failed, 0 left" in line:
                break
        assert "2 points: 2 done, 0 failed, 0 left" in seen
        assert shell.wait(timeout=30) == 0
    finally:
        os.killpg(shell.pid, signal.SIGKILL)


def kernels_of_nobody():
    """Kernels whose runner is gone."""
    found = []
    for process in psutil.process_iter():
        try:
            parent = process.environ().get("JPY_PARENT_PID")
            if parent and not psutil.pid_exists(int(parent)):
                found.append(process.pid)
        except (psutil.Error, ValueError):
            continue
    return found


def test_a_scheduler_that_is_not_there_is_named_in_time(store, points):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        start = time.monotonic()
        with pytest.raises(PaperbookError, match=f"no Dask scheduler at {address}"):
            run_on_dask(store, points(count=[1]), address)
    assert time.monotonic() - start < 10


def test_a_worker_of_another_version_is_refused(cluster, store, points, monkeypatch):
    monkeypatch.setattr(remote, "__version__", "99.0")
    with pytest.raises(PaperbookError, match=r"has paperbook 0\.1\.0, this is 99\.0"):
        run_on_dask(store, points(count=[1]), cluster.address)
    assert store.finished() == []

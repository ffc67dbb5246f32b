"""Sweeps on this machine: what they store, how they resume, and that faults lose nothing."""

import contextlib
import json
import os
import shutil
import signal
import subprocess

import nbformat
import psutil
import pytest
from sweeptools import start_sweep, sweep_command, wait_for

from paperbook.errors import PaperbookError
from paperbook.sweep.children import Limits
from paperbook.sweep.engine import run_locally
from paperbook.sweep.plan import make_plan
from paperbook.sweep.results import collect
from paperbook.sweep.store import Store, read_run

pytestmark = pytest.mark.usefixtures("no_orphans")


def run(store, points, **options):
    done = []
    run_locally(store, points, report=done.append, **options)
    return {d.point.key: d.failure for d in done}


def test_a_sweep_leaves_one_whole_notebook_a_point(store, points):
    made = points(count=[1, 2], scale=[1.0, 3.0])
    assert set(run(store, made).values()) == {None}
    for point in made:
        found = read_run(store.notebook(point))
        assert found.point == point
        assert found.seconds > 0
    table = collect(store)
    assert list(table.query("statistic == 'largest'").sort_values(["count", "scale"])["mean"]) == [
        0.0,
        0.0,
        1.0,
        3.0,
    ]
    assert len(table) == table[["key", "statistic"]].drop_duplicates().shape[0] == 8


@pytest.mark.parametrize("preload", [False, True])
def test_failures_are_told_apart_and_stop_nothing(store, points, preload):
    made = points(fail=["raise", "die", "norecord", ""])
    failures = run(store, made, preload=preload)
    by_mode = {p.parameters["fail"]: failures[p.key] for p in made}
    assert by_mode[""] is None
    assert "cell 4 raised RuntimeError: planned failure" in by_mode["raise"].error
    assert not by_mode["raise"].again
    assert "DeadKernelError" in by_mode["die"].error
    assert by_mode["die"].again
    assert "without its final record" in by_mode["norecord"].error
    (raising,) = [p for p in made if p.parameters["fail"] == "raise"]
    partial = nbformat.read(store.failed_notebook(raising), as_version=4)
    assert any(o.output_type == "error" for c in partial.cells for o in c.get("outputs", []))
    plan = make_plan(made, store)
    assert (len(plan.done), len(plan.failed), len(plan.missing)) == (1, 3, 0)
    assert len(plan.todo(retry_failed=False)) == 0
    assert len(plan.todo(retry_failed=True)) == 3


def test_only_what_may_end_differently_is_tried_again(store, points, monkeypatch):
    starts = []
    import paperbook.sweep.engine as engine

    real = engine.PlainLauncher.start
    monkeypatch.setattr(
        engine.PlainLauncher,
        "start",
        lambda self, job: (starts.append(job.parameters["fail"]), real(self, job))[1],
    )
    run(store, points(fail=["raise", "die"]), retries=2)
    assert (starts.count("raise"), starts.count("die")) == (1, 3)


@pytest.mark.parametrize("preload", [False, True])
@pytest.mark.parametrize(
    ("fail", "limits", "message"),
    [
        ("hang", Limits(seconds=3), "stopped after 3 s"),
        ("memory", Limits(megabytes=1200), "MB (--memory 1200)"),
    ],
)
def test_a_run_that_hangs_or_hoards_is_stopped(store, points, fail, limits, message, preload):
    (bad,) = points(fail=[fail])
    assert message in run(store, [bad], limits=limits, preload=preload)[bad.key].error
    (good,) = points(count=[2])
    assert run(store, [good], limits=Limits(megabytes=1200), preload=preload)[good.key] is None


def test_preloaded_runs_give_the_same_results(store, points, tmp_path):
    made = points(count=[2, 3], plot=[True])
    other = Store(tmp_path / "preloaded")
    other.points.mkdir(parents=True)
    run(store, made)
    run(other, made, preload=True)
    for point in made:
        plain, forked = (content(s.notebook(point)) for s in (store, other))
        assert plain == forked
        assert any("image/png" in output for output in plain)


def content(path):
    """What the cells show, but for what a clock or a meter measured."""
    shown = []
    for cell in nbformat.read(path, as_version=4).cells:
        for output in cell.get("outputs", []):
            data = dict(output.get("data", {}), text=output.get("text", ""))
            if "scrapbook" not in output.get("metadata", {}):
                shown.append(data)
    record = read_run(path).record
    return [*shown, record["claims"], record["numbers"], record["versions"]]


@pytest.mark.parametrize("preload", [(), ("--preload",)])
@pytest.mark.parametrize("victim", ["kernel", "runner"])
def test_a_killed_process_costs_one_point(store, points, victim, preload):
    sweep = start_sweep(store.folder, "-p", "count=1:5", "-p", "nap=1.5", *preload)
    target = wait_for(lambda: find(sweep.pid, victim, bool(preload)))
    target.kill()
    _, errors = sweep.communicate(timeout=120)
    assert sweep.returncode == 1
    assert "1 points failed" in errors
    plan = make_plan(points(count=[1, 2, 3, 4], nap=[1.5]), store)
    assert (len(plan.done), len(plan.failed)) == (3, 1)
    again = subprocess.run(
        sweep_command(store.folder, "-p", "count=1:5", "-p", "nap=1.5", "--retry-failed")
    )
    assert again.returncode == 0
    assert collect(store)["key"].nunique() == 4


def find(pid, victim, preload):
    """A kernel, or the process that runs a notebook, of the sweep that is process ``pid``."""
    try:
        children = psutil.Process(pid).children()
        runners = [r for c in children for r in c.children()] if preload else children
        if victim == "runner":
            return next((r for r in runners if r.children()), None)
        kernels = [k for r in runners for k in r.children() if len(k.net_connections()) >= 5]
        return kernels[0] if kernels else None
    except psutil.Error:
        return None


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize("preload", [(), ("--preload",)])
def test_a_stopped_sweep_resumes_where_it_was(store, points, number, preload):
    arguments = ("-p", "count=1:6", "-p", "nap=0.7", *preload)
    made = points(count=[1, 2, 3, 4, 5], nap=[0.7])
    sweep = start_sweep(store.folder, *arguments)
    wait_for(lambda: len(store.finished()) >= 2)
    sweep.send_signal(number)
    _, errors = sweep.communicate(timeout=20)
    if number == signal.SIGINT:
        assert sweep.returncode == 130
        assert "what was finished is kept" in errors
    kept = {path: path.stat().st_mtime_ns for path in store.finished()}
    assert 2 <= len(kept) < 5
    resumed = subprocess.run(
        sweep_command(store.folder, *arguments), capture_output=True, text=True
    )
    assert resumed.returncode == 0
    assert resumed.stdout.splitlines()[0] == (
        f"5 points: {len(kept)} done, 0 failed, {5 - len(kept)} left"
    )
    assert all(path.stat().st_mtime_ns == time for path, time in kept.items())
    assert collect(store)["key"].nunique() == len(made)
    assert not list(store.points.glob(".*part*"))


def test_a_truncated_notebook_is_run_again(store, points):
    made = points(count=[1, 2])
    run(store, made)
    victim = store.notebook(made[0])
    victim.write_bytes(victim.read_bytes()[:1000])
    plan = make_plan(made, store)
    assert plan.missing == [made[0]]
    run(store, plan.missing)
    assert make_plan(made, store).done == made


def test_runs_of_other_code_are_put_aside(store, points, toy_book):
    run(store, points(count=[1]))
    notebook = toy_book / "notebooks" / "toy.ipynb"
    notebook.write_text(notebook.read_text().replace("scale * i", "2 * scale * i"))
    changed = points(count=[1])
    assert make_plan(changed, store).missing == changed
    assert store.put_aside_stale(changed) == 1
    assert len(list((store.folder / "stale").iterdir())) == 1


def test_a_second_sweep_in_one_folder_is_refused(store, points):
    with store.locked():
        second = subprocess.run(
            sweep_command(store.folder, "-p", "count=1"), capture_output=True, text=True
        )
    assert second.returncode == 2
    assert f"another sweep (process {os.getpid()}) is at work" in second.stderr


def fill(path):
    """Write until the disk is full."""
    with contextlib.suppress(OSError), open(path, "wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)


def test_a_full_disk_loses_nothing_finished(store, points, tmp_path):
    made = points(count=[1])
    run(store, made)
    good = store.notebook(made[0]).read_bytes()
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)]).returncode:
        pytest.skip("needs the right to mount a small disk")
    try:
        full = Store(disk / "sweep")
        full.points.mkdir(parents=True)
        shutil.copy2(store.notebook(made[0]), full.points)
        fill(disk / "filler")
        more = points(count=[2])
        failures = run(full, more)
        assert "No space left" in failures[more[0].key].error
        assert full.notebook(made[0]).read_bytes() == good
        assert not full.notebook(more[0]).exists()
        (disk / "filler").unlink()
        plan = make_plan(made + more, full)
        run(full, plan.todo(retry_failed=True))
        assert len(make_plan(made + more, full).done) == 2
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize(("name", "value"), [("workers", 0), ("retries", -1)])
def test_bad_numbers(store, points, name, value):
    with pytest.raises(PaperbookError, match=f"--{name} must be at least"):
        run_locally(store, points(count=[1]), **{name: value})


def test_a_failure_that_cannot_be_written_leaves_the_point_missing(store, points, monkeypatch):
    made = points(fail=["raise"])
    monkeypatch.setattr(
        "paperbook.sweep.store.write_atomically", lambda *_: (_ for _ in ()).throw(OSError)
    )
    failures = run(store, made)
    assert failures[made[0].key] is not None
    assert make_plan(made, store).missing == made


def test_errors_are_json(store, points):
    made = points(fail=["raise"])
    run(store, made)
    data = json.loads(store.error_file(made[0]).read_text())
    assert data["parameters"]["fail"] == "raise"

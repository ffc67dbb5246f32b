"""What a sweep costs beyond the computation itself.

    python benchmarks/sweep_throughput.py engines [POINTS]   four ways to run the same points
    python benchmarks/sweep_throughput.py growth [POINTS...] cost and memory against the points

``engines`` makes a chapter with ``paperbook new`` in a scratch copy of the book, and runs its smoke
profile at POINTS seeds: (a) papermill in a shell loop, (b) the same two at a time, (c) ``paperbook
sweep --workers 2``, (d) the same with ``--preload``. Quote the ratios, not the seconds.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

REPOSITORY = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
SLUG = "bench_chapter"
WORKERS = "2"


def scratch_book(top: Path) -> dict[str, str]:
    """A copy of the package with one small chapter; returns the environment to run it in."""
    shutil.copytree(REPOSITORY / "src", top / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(REPOSITORY / "_config.yml", top)
    for name in ("notebooks", "tests"):
        (top / name).mkdir()
    env = {
        **os.environ,
        "PAPERBOOK_ROOT": str(top),
        "PYTHONPATH": str(top / "src"),
        "OMP_NUM_THREADS": "1",
    }
    call([str(BIN / "paperbook"), "new", SLUG], env)
    return env


def call(command: list[str], env: dict[str, str]) -> None:
    subprocess.run(
        command, env=env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT
    )


def timed(command: list[str], env: dict[str, str]) -> float:
    start = time.perf_counter()
    call(command, env)
    return time.perf_counter() - start


def own_memory(command: list[str], env: dict[str, str]) -> tuple[float, int]:
    """Wall seconds of a command and the most bytes that it held itself, its children left out."""
    start, most = time.perf_counter(), 0
    process = psutil.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
    while process.poll() is None:
        with contextlib.suppress(psutil.Error):
            most = max(most, process.memory_info().rss)
        time.sleep(0.1)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return time.perf_counter() - start, most


def papermill_loop(top: Path, points: int, at_once: int) -> list[str]:
    """A shell that runs papermill for seeds 0 .. points - 1, ``at_once`` at a time."""
    out = top / f"loop-{at_once}"
    out.mkdir()
    one = (
        f"{BIN}/papermill --no-progress-bar {top}/notebooks/{SLUG}.ipynb {out}/{{}}.ipynb "
        "-p seed {} -p seeds 3 -p max_samples 64"
    )
    return ["sh", "-c", f"seq 0 {points - 1} | xargs -P {at_once} -I {{}} {one}"]


def sweep(top: Path, name: str, points: int, *more: str) -> list[str]:
    grid = ["-p", f"seed=0:{points}", "--profile", "smoke", "--workers", WORKERS]
    return [str(BIN / "paperbook"), "sweep", SLUG, *grid, "-o", str(top / name), *more]


def cell_seconds(folder: Path) -> float:
    """Sum of the wall seconds inside cells: the computation itself."""
    runs = [json.loads(path.read_text()) for path in (folder / "points").glob("*.ipynb")]
    return sum(run["metadata"]["paperbook"]["cell_seconds"] for run in runs)


def engines(points: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        env = scratch_book(top)
        seconds = {
            "a papermill, one by one": timed(papermill_loop(top, points, 1), env),
            "b papermill, two at a time": timed(papermill_loop(top, points, 2), env),
            "c paperbook sweep": timed(sweep(top, "plain", points), env),
            "d paperbook sweep --preload": timed(sweep(top, "forked", points, "--preload"), env),
        }
        busy = cell_seconds(top / "forked") / int(WORKERS)
    base = seconds["b papermill, two at a time"]
    for label, value in seconds.items():
        print(f"{label:<28} {value:8.1f} s   b / this = {base / value:5.2f}")
    forked = seconds["d paperbook sweep --preload"]
    print(f"d against its cells' seconds / 2 workers ({busy:.1f} s): {forked / busy:.2f}")


def growth(sizes: list[int]) -> None:
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        env = scratch_book(top)
        for points in sizes:
            folder = f"grow-{points}"
            command = sweep(top, folder, points, "--preload")
            wall, memory = own_memory(command, env)
            table = timed([str(BIN / "paperbook"), "results", str(top / folder)], env)
            print(
                f"{points:>5} points: {wall:7.1f} s, {wall / points:.2f} s a point; "
                f"client {memory / 2**20:.0f} MB; table rebuilt in {table:.1f} s"
            )


if __name__ == "__main__":
    mode, *numbers = sys.argv[1:] or ["engines"]
    counts = [int(number) for number in numbers]
    if mode == "engines":
        engines(counts[0] if counts else 40)
    elif mode == "growth":
        growth(counts or [10, 100, 1000])
    else:
        sys.exit(__doc__)

"""``paperbook new``: its chapter runs, is in order, and its tests pass."""

import os
import shutil
import subprocess
import sys

import pytest


@pytest.mark.slow
def test_a_new_chapter_passes_the_suite(tmp_path, repository):
    ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(repository / "src", tmp_path / "src", ignore=ignore)
    for name in ("_config.yml", "pyproject.toml"):
        shutil.copy2(repository / name, tmp_path)
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "tests").mkdir()
    env = {**os.environ, "PAPERBOOK_ROOT": str(tmp_path), "PYTHONPATH": str(tmp_path / "src")}

    def call(*arguments):
        command = [sys.executable, "-m", *arguments]
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert "executed" in call("paperbook", "new", "fresh_start")
    assert "1 chapters are in order" in call("paperbook", "check")
    call("pytest", "-q", "tests/fresh_start")
    call("pytest", "-q", "--nbval-lax", "notebooks/fresh_start.ipynb")
    written = ["src/paperbook/fresh_start", "tests"]
    call("ruff", "check", *written)
    call("ruff", "format", "--check", *written)

"""The command line: one-line errors, exit codes, plain output where there is no terminal."""

import csv
import io
import json

import pytest
from typer.testing import CliRunner

from paperbook.cli import app
from paperbook.execution import run_in_place


def call(*arguments):
    return CliRunner().invoke(app, list(arguments))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "tow"], "unknown chapter 'tow'; did you mean toy?"),
        (["run", "toy", "-p", "cont=2"], "unknown parameter 'cont'; did you mean count"),
        (["run", "toy", "-p", "count=two"], "parameter 'count' takes a int, got 'two'"),
        (["run", "toy", "-p", "count"], "expected name=value, got 'count'"),
        (["run", "toy", "--profile", "bok"], "unknown profile 'bok'; did you mean book"),
        (["run", "toy", "-o", "out.txt"], "must end in .ipynb"),
        (["run", "toy", "toy", "-o", "out.ipynb"], "--output takes one chapter"),
        (["run", "toy", "--in-place", "-p", "count=2"], "--in-place stores the book profile"),
        (["build", "--rerun", "some"], "--rerun must be one of all, stale, none"),
        (["build", "--jobs", "0", "--rerun", "all"], "--jobs must be at least 1"),
        (["evidence", "--format", "xml"], "--format must be table, csv or json"),
        (["evidence", "-o", "x"], "--output goes with --format"),
        (["check", "tow"], "unknown chapter 'tow'"),
        (["new", "toy"], "is there already"),
        (["new", "Not-A-Slug"], "use a-z, 0-9 and _"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(toy_book, arguments, message):
    result = call(*arguments)
    assert result.exit_code == 2, result.output
    error = result.stderr.strip()
    assert error.startswith("paperbook: ")
    assert message in error
    assert "\n" not in error


def test_a_failing_cell_is_named_and_the_exit_code_is_1(toy_book):
    result = call("run", "toy", "-p", "fail=raise")
    assert result.exit_code == 1
    assert "cell 4 raised RuntimeError: planned failure" in result.stderr
    assert "toy-book.failed.ipynb" in result.stderr
    assert not (toy_book / "runs" / "toy-book.ipynb").exists()


def test_one_failing_chapter_does_not_stop_the_next(toy_book):
    result = call("run", "toy", "toy", "-p", "fail=raise")
    assert result.stderr.count("planned failure") == 2
    assert "2 of 2 chapters failed" in result.stderr


def test_run_reports_in_plain_lines(toy_book):
    result = call("run", "toy", "--profile", "smoke")
    assert result.exit_code == 0, result.output
    assert "toy: running (smoke)" in result.stdout
    assert "\x1b" not in result.stdout
    assert (toy_book / "runs" / "toy-smoke.ipynb").is_file()


def test_evidence_in_every_format(toy_book):
    run_in_place("toy")
    assert "toy-small" in call("evidence").stdout
    (row,) = csv.DictReader(io.StringIO(call("evidence", "--format", "csv").stdout))
    assert (row["claim"], row["verdict"], row["rule"]) == ("toy-small", "reproduced", "< 100")
    target = toy_book / "evidence.json"
    assert call("evidence", "--format", "json", "-o", str(target)).exit_code == 0
    assert json.loads(target.read_text()) == [row]


def test_list_tells_state_and_cost(toy_book):
    assert "never run" in call("list").stdout
    run_in_place("toy")
    assert "up to date" in call("list").stdout


def test_build_runs_stale_chapters_only(toy_book):
    assert "toy: done" in call("build", "--no-html").stdout
    assert "all chapters are up to date" in call("build", "--no-html").stdout


def test_build_keeps_good_outputs_of_a_chapter_that_fails(toy_book):
    run_in_place("toy")
    path = toy_book / "notebooks" / "toy.ipynb"
    path.write_text(path.read_text().replace('fail: str = \\"\\"', 'fail: str = \\"raise\\"'))
    before = path.read_bytes()
    result = call("build", "--no-html")
    assert result.exit_code == 1
    assert "planned failure" in result.stderr
    assert path.read_bytes() == before
    assert (path.parent / "toy.failed.ipynb").is_file()


def test_check_lists_every_problem(toy_book):
    result = call("check")
    assert result.exit_code == 1
    assert "toy: the outputs hold no record" in result.stdout

"""Tables and figures, and the two commands that users type."""

import math

import nbformat
import pandas as pd
import pytest
from typer.testing import CliRunner

from paperbook.cli import app
from paperbook.errors import PaperbookError
from paperbook.execution import is_stale, run_in_place
from paperbook.sweep import stored
from paperbook.sweep.plotting import summary_figure
from paperbook.sweep.results import collect, summarise
from paperbook.sweep.store import write_atomically


def call(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def filled(store, points, toy_book):
    """A store with 3 x 2 points, made from one real run by changing its record."""
    run_in_place("toy")
    source = (toy_book / "notebooks" / "toy.ipynb").read_text()
    for point in points(count=[1, 2, 3], scale=[1.0, 2.0]):
        notebook = nbformat.reads(source, as_version=4)
        for cell in notebook.cells:
            for output in cell.get("outputs", []):
                if output.get("metadata", {}).get("scrapbook", {}).get("name") == "paperbook":
                    change(output, point)
        write_atomically(store.notebook(point), nbformat.writes(notebook).encode())
    return store


def change(output, point):
    import ast
    import json

    name = "application/papermill.record/text/plain"
    record = json.loads(ast.literal_eval(output["data"][name]))
    record["parameters"] = dict(point.parameters)
    value = point.parameters["count"] * point.parameters["scale"]
    record["numbers"] = {"largest": value}
    output["data"][name] = repr(json.dumps(record))


def test_the_table_is_tidy(filled):
    table = collect(filled)
    assert table.shape[0] == 12
    assert not table.duplicated(["key", "statistic"]).any()
    largest = table[table["statistic"] == "largest"]
    assert (largest["mean"] == largest["count"] * largest["scale"]).all()
    assert set(table["kind"]) == {"claim", "number"}


def test_summaries_average_over_all_else(filled):
    cells = summarise(collect(filled), "largest", ["count"])
    assert list(cells["mean"]) == [1.5, 3.0, 4.5]
    assert list(cells["runs"]) == [2, 2, 2]
    # two values 1 and 2: half-width t(0.975, 1) * 0.5 = 12.706 * 0.5
    assert math.isclose(cells["high"][0] - 1.5, 12.7062 * 0.5, rel_tol=1e-4)


def test_figures_are_lines_over_one_parameter_and_maps_over_two(filled):
    table = collect(filled)
    line = summary_figure(table, statistics=["largest"], by=["count"])
    assert list(line.axes[0].lines[0].get_ydata()) == [1.5, 3.0, 4.5]
    maps = summary_figure(table, statistics=["largest"])
    assert maps.axes[0].images[0].get_array().tolist() == [[1, 2, 3], [2, 4, 6]]


def test_bad_names_are_refused(filled):
    table = collect(filled)
    with pytest.raises(PaperbookError, match="no statistic 'large'"):
        summary_figure(table, statistics=["large"])
    with pytest.raises(PaperbookError, match="unknown parameter 'counts'"):
        summary_figure(table, by=["counts"])
    with pytest.raises(PaperbookError, match="one or two"):
        summary_figure(table, by=["count", "scale", "nap"])


def test_results_are_rebuilt_from_notebooks_alone(filled):
    result = call("results", filled.folder, "--statistic", "largest")
    assert result.exit_code == 0, result.output
    assert "6 points in results.parquet" in result.stdout
    assert len(pd.read_parquet(filled.folder / "results.parquet")) == 12
    assert (filled.folder / "summary.png").stat().st_size > 5000


def test_a_stored_sweep_keeps_what_varies_and_says_what_was_fixed(filled, toy_book):
    assert not is_stale("toy")
    result = call("results", filled.folder, "-s", "largest", "--by", "count", "--store")
    assert "stored as notebooks/sweeps/toy.csv" in result.stdout
    table = stored.load("toy")
    assert list(table.columns[:3]) == ["slug", "count", "scale"]
    assert (table["mean"] == table["count"] * table["scale"]).all()
    assert len(table) == 6
    head = stored.header("toy")
    assert head["fixed"]["plot"] is False
    assert "count" not in head["fixed"]
    assert list(stored.cells("toy", "largest", ["count"])["mean"]) == [1.5, 3.0, 4.5]
    with pytest.raises(PaperbookError, match="unknown parameter 'counts'"):
        stored.cells("toy", "largest", ["counts"])
    line = stored.figure("toy", by=["count"], statistics=["largest"])
    assert list(line.axes[0].lines[0].get_ydata()) == [1.5, 3.0, 4.5]
    assert is_stale("toy")  # its outputs show another sweep, or none
    run_in_place("toy")
    assert not is_stale("toy")


def test_without_a_stored_sweep_there_is_a_placeholder(toy_book):
    assert stored.load("toy").empty
    assert math.isnan(stored.cells("toy", "largest", ["count"])["mean"].max())
    assert "no stored sweep" in stored.figure("toy").texts[0].get_text()


def test_points_of_two_states_of_the_code_are_not_stored_together(filled):
    table = collect(filled)
    table.loc[0, "fingerprint"] = "other"
    with pytest.raises(PaperbookError, match="one fingerprint"):
        stored.write(table)


def test_an_empty_folder_has_no_results(tmp_path):
    assert "no finished points" in call("results", tmp_path).stderr
    assert "no such folder" in call("results", tmp_path / "nothing").stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-p", "cont=1"], "did you mean count"),
        (["-p", "count=x"], "takes a int"),
        (["-p", "count=2:2"], "range 2:2 is empty"),
        (["-p", "count=1", "--workers", "0"], "--workers must be at least 1"),
        (["-p", "count=1", "--profile", "smok"], "did you mean smoke"),
        (["--space", "scale=0:1"], "go together"),
        (["-p", "count=1", "--from", "x.yaml"], "--from takes the place"),
        (["--from", "x.yaml"], "not readable"),
    ],
)
def test_bad_input_is_one_line_and_runs_nothing(toy_book, tmp_path, arguments, message):
    result = call("sweep", "toy", "-o", tmp_path / "s", *arguments)
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert not list((tmp_path / "s").rglob("*.ipynb"))


def test_a_dry_run_counts_and_estimates(toy_book, tmp_path):
    run_in_place("toy")
    result = call("sweep", "toy", "-o", tmp_path / "s", "-p", "count=0:10", "--dry-run")
    assert "10 points: 0 done, 0 failed, 10 left" in result.stdout
    assert "about" in result.stdout
    assert not (tmp_path / "s").exists()


def test_the_card_has_a_default_sweep(toy_book, tmp_path):
    result = call("sweep", "toy", "-o", tmp_path / "s", "--dry-run")
    assert "2 points" in result.stdout

"""Grids, ranges and samples."""

import numpy as np
import pytest

from paperbook import project
from paperbook.errors import PaperbookError
from paperbook.parameters import declared_parameters
from paperbook.sweep.space import Range, Space, parse_grid, parse_ranges, read_space


@pytest.fixture
def declared(toy_book):
    return declared_parameters(project.notebook_path("toy"))


def test_grid_texts(declared):
    texts = ["count=0:3", "scale=1,2.5", "fail=raise,", "flags=[[1], []]"]
    assert parse_grid(declared, texts, "toy") == {
        "count": [0, 1, 2],
        "scale": [1.0, 2.5],
        "fail": ["raise", ""],
        "flags": [[1], []],
    }
    assert parse_grid(declared, ["count=1:9:4"], "toy") == {"count": [1, 5]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("counts=1", "did you mean count"),
        ("count=", "has no values"),
        ("count=3:3", "range 3:3 is empty"),
        ("count=1.5", "takes a int"),
        ("count=a:b", "invalid literal"),
        ("scale=1,x", "takes a finite float"),
        ("scale", "expected name=values"),
    ],
)
def test_bad_grids(declared, text, message):
    with pytest.raises(PaperbookError, match=f"toy: .*{message}"):
        parse_grid(declared, [text], "toy")


def test_a_grid_is_crossed_in_order(declared):
    points = Space({"count": [1, 2], "scale": [1.0, 2.0]}, {}).points(declared, "toy")
    assert [(p["count"], p["scale"]) for p in points] == [(1, 1), (1, 2), (2, 1), (2, 2)]


def test_repeated_points_are_run_once(declared):
    assert len(Space({"count": [1, 1, 2]}, {}).points(declared, "toy")) == 2


@pytest.mark.parametrize("method", ["random", "lhs", "sobol"])
def test_samples_fill_their_ranges(declared, method):
    ranges = {"scale": Range(1e-3, 1e1, log=True), "count": Range(1, 4)}
    points = Space({}, ranges, sample=64, method=method).points(declared, "toy")
    scales = np.array([p["scale"] for p in points])
    assert 1e-3 <= scales.min() < 1e-2
    assert 1 < scales.max() <= 1e1
    assert abs(np.mean(np.log10(scales)) + 1) < 0.5
    counts = [p["count"] for p in points]
    assert {type(c) for c in counts} == {int}
    assert set(counts) == {1, 2, 3, 4}
    again = Space({}, ranges, sample=64, method=method).points(declared, "toy")
    assert again == points
    assert Space({}, ranges, sample=64, method=method, seed=1).points(declared, "toy") != points


def test_integers_on_a_log_scale_reach_both_ends():
    values = [Range(1, 100, log=True).at(u, integer=True) for u in np.linspace(0, 0.9999, 400)]
    assert (min(values), max(values)) == (1, 100)
    assert sum(v <= 10 for v in values) > 200


def test_a_sample_is_crossed_with_the_grid(declared):
    space = Space({"count": [1, 2]}, {"scale": Range(0, 1)}, sample=4)
    points = space.points(declared, "toy")
    assert len(points) == 8
    assert [p["scale"] for p in points[:4]] == [p["scale"] for p in points[4:]]


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (Space({}, {}), "no parameters to sweep"),
        (Space({"count": []}, {}), "has no values"),
        (Space({"cont": [1]}, {}), "did you mean count"),
        (Space({"count": ["x"]}, {}), "takes a int"),
        (Space({}, {"scale": Range(0, 1)}), "go together"),
        (Space({"count": [1]}, {}, sample=3), "go together"),
        (Space({"scale": [1]}, {"scale": Range(0, 1)}, sample=2), "in the grid and in the space"),
        (Space({}, {"fail": Range(0, 1)}, sample=2), "is no number"),
        (Space({}, {"scale": Range(0, 1)}, sample=2, method="sobel"), "did you mean sobol"),
        (Space({}, {"scale": Range(0, 1)}, sample=10**6), "1 to 100000 points"),
    ],
)
def test_bad_spaces(declared, space, message):
    with pytest.raises(PaperbookError, match=message):
        space.points(declared, "toy")


@pytest.mark.parametrize("text", ["scale=2:1", "scale=0:1:log", "scale=1", "scale=1:2:lin"])
def test_bad_ranges(text):
    with pytest.raises(PaperbookError, match="toy: "):
        parse_ranges([text], "toy")


def test_a_file_names_a_space(tmp_path, declared):
    path = tmp_path / "space.yaml"
    path.write_text(
        "profile: smoke\ngrid: {count: [1, 2]}\nspace: {scale: [0.1, 1.0, log]}\nsample: 3\n"
    )
    space, profile = read_space(path)
    assert profile == "smoke"
    assert len(space.points(declared, "toy")) == 6


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("grids: {}", "did you mean grid"),
        ("- 1", "mapping"),
        ("grid: {count: 3}", "takes a list"),
        ("grid: [", "not readable"),
    ],
)
def test_bad_files(tmp_path, text, message):
    path = tmp_path / "space.yaml"
    path.write_text(text)
    with pytest.raises(PaperbookError, match=f"space.yaml: .*{message}"):
        read_space(path)

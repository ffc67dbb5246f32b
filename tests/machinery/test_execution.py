"""Runs: checked before they start, atomic, and honest about how they ended."""

import json

import nbformat
import pytest

from paperbook import project
from paperbook.checks import chapter_problems
from paperbook.errors import PaperbookError, RunError
from paperbook.evidence.record import chapter_record, records
from paperbook.execution import is_stale, run, run_in_place

DEFAULTS = {"scale": 1.0, "fail": "", "nap": 0.0, "plot": False, "flags": []}


@pytest.fixture
def output(tmp_path):
    return tmp_path / "out" / "toy.ipynb"


def test_a_run_writes_a_clean_notebook_with_its_record(toy_book, output):
    seen = []
    record = run("toy", output, progress=lambda done, total: seen.append((done, total)))
    notebook = nbformat.read(output, as_version=4)
    assert chapter_record(notebook) == record
    assert record["profile"] == "book"
    assert record["parameters"] == {**DEFAULTS, "count": 3}
    assert record["claims"][0]["tests"][0]["samples"] == [0.0, 1.0, 2.0]
    assert records(notebook)["largest"] == 2.0
    assert seen[-1] == (7, 7)
    text = output.read_text()
    for noise in ("papermill.record_timing", '"start_time"', '"exception"', str(toy_book)):
        assert noise not in text
    assert list(output.parent.iterdir()) == [output]


def test_profiles_and_overrides_reach_the_notebook(toy_book, output):
    assert run("toy", output, profile="smoke")["parameters"]["count"] == 2
    assert run("toy", output, profile="smoke")["profile"] == "smoke"
    record = run("toy", output, profile="smoke", overrides={"count": 5})
    assert (record["parameters"]["count"], record["profile"]) == (5, "custom")


@pytest.mark.parametrize(
    ("slug", "arguments", "message"),
    [
        ("tow", {}, "unknown chapter 'tow'; did you mean toy"),
        ("toy", {"profile": "smoke!"}, "did you mean smoke"),
        ("toy", {"overrides": {"counts": 2}}, "did you mean count"),
        ("toy", {"overrides": {"count": "two"}}, "takes a int"),
    ],
)
def test_bad_input_starts_no_kernel(toy_book, output, monkeypatch, slug, arguments, message):
    monkeypatch.setattr("paperbook.execution._papermill", pytest.fail)
    with pytest.raises(PaperbookError, match=message):
        run(slug, output, **arguments)
    assert not output.exists()


@pytest.mark.parametrize(
    ("fail", "message"),
    [
        ("raise", "cell 4 raised RuntimeError: planned failure"),
        ("die", "DeadKernelError"),
        ("norecord", "without its final record"),
    ],
)
def test_a_failed_run_keeps_the_good_output_and_the_partial_one(toy_book, output, fail, message):
    run("toy", output)
    good = output.read_bytes()
    with pytest.raises(RunError, match=message):
        run("toy", output, overrides={"fail": fail})
    assert output.read_bytes() == good
    failed = nbformat.read(output.with_name("toy.failed.ipynb"), as_version=4)
    assert any("injected-parameters" in cell.metadata.get("tags", []) for cell in failed.cells)
    assert sorted(path.name for path in output.parent.iterdir()) == [
        "toy.failed.ipynb",
        "toy.ipynb",
    ]


def test_outputs_in_place_are_fresh_until_the_code_changes(toy_book):
    path = project.notebook_path("toy")
    assert is_stale("toy")
    run_in_place("toy")
    assert not is_stale("toy")
    first = path.read_text()
    run_in_place("toy")
    differing = [
        (a, b)
        for a, b in zip(first.splitlines(), path.read_text().splitlines(), strict=True)
        if a != b
    ]
    assert all("cpu_seconds" in a for a, _ in differing)

    edit(path, "ledger.verdicts()", "ledger.verdicts()  # a comment")
    assert not is_stale("toy")
    edit(path, "# Toy", "# Toy, told better")
    assert not is_stale("toy")
    edit(path, "scale * i", "scale * (i + 1)")
    assert is_stale("toy")


def test_a_changed_rule_makes_stale_and_a_changed_note_does_not(toy_book):
    run_in_place("toy")
    card = project.card_path("toy")
    edit(card, "The numbers are small.", "All numbers are small.")
    assert not is_stale("toy")
    edit(card, "< 100", "< 10")
    assert is_stale("toy")


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_hand_edited_evidence_is_found(toy_book):
    run_in_place("toy")
    expected = [p for p in chapter_problems("toy") if "stored verdict" in p or "verdict cell" in p]
    assert expected == []
    path = project.notebook_path("toy")
    good = path.read_text()

    path.write_text(good.replace("reproduced", "not reproduced"))
    assert any("does not follow" in problem for problem in chapter_problems("toy"))

    notebook = nbformat.reads(good, as_version=4)
    for cell in notebook.cells:
        if "nbval-check-output" in cell.metadata.get("tags", []):
            data = cell.outputs[0].data
            data["text/plain"] = data["text/plain"].replace("reproduced", "inconclusive")
    nbformat.write(notebook, path)
    assert any("verdict cell" in problem for problem in chapter_problems("toy"))


def test_a_record_is_plain_json(toy_book, output):
    record = run("toy", output)
    assert json.loads(json.dumps(record)) == record
    assert {"torch", "numpy", "POT", "python"} == set(record["versions"])
    assert record["cpu_seconds"] > 0

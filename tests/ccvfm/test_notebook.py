"""The notebook of chapter ccvfm: every declared parameter, changed, changes its record."""

import pytest
from inprocess import InProcess

from paperbook import ccvfm, project
from paperbook.card import load_card
from paperbook.parameters import declared_parameters

# Small enough to run a dozen times; the smoke profile itself is run by `make smoke`.
TINY = {
    "dataset": "digits",
    "pca_dim": 8,
    "num_atoms": 8,
    "iterations": 2,
    "hidden": 8,
    "num_samples": 40,
    "seeds": 1,
}
CHANGES = {
    "dataset": "mnist10k",
    "pca_dim": 9,
    "num_atoms": 12,
    "epsilon_scale": 0.3,
    "coupling": "plan",
    "start_fraction": 0.5,
    "solver": "euler",
    "iterations": 3,
    "hidden": 9,
    "num_samples": 50,
    "seeds": 2,
    "seed": 1,
}


@pytest.fixture(scope="module")
def notebook() -> InProcess:
    return InProcess("ccvfm", TINY)


@pytest.mark.slow
def test_every_parameter_changes_the_record(notebook, monkeypatch):
    # Cheap stand-ins for exact transport and quadrature, which would take most of the time: what
    # is tested is that parameters reach the record.
    monkeypatch.setattr(ccvfm, "squared_w2", lambda a, b: ccvfm.sliced_w2(a, b, projections=2))
    monkeypatch.setattr(ccvfm, "quadrature_moments", lambda mixture, x, t: (x, t))
    declared = declared_parameters(project.notebook_path("ccvfm"))
    # The device must not change results, and pooling does not apply to the 8x8 digits.
    assert set(declared) - set(CHANGES) == {"device", "pool"}
    assert notebook.without_effect(CHANGES.items()) == []
    mnist = notebook.record({"dataset": "mnist10k"})
    assert notebook.record({"dataset": "mnist10k", "pool": 4}) != mnist


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("solver", "heun", "solver must be"),
        ("dataset", "cifar", "dataset must be"),
        ("coupling", "other", "coupling must be"),
        ("num_atoms", 0, "num_atoms must be"),
        ("seeds", 0, "seeds must be"),
        ("num_samples", 5, "num_samples must be"),
        ("epsilon_scale", -1.0, "scale must be"),
        ("start_fraction", 2.0, "start_fraction must be"),
    ],
)
def test_bad_parameters_are_refused(notebook, name, value, message):
    with pytest.raises(ValueError, match=message):
        notebook.record({name: value})


def test_sweep_and_profiles_name_declared_parameters():
    card = load_card("ccvfm")
    declared = declared_parameters(project.notebook_path("ccvfm"))
    assert set(card.sweep) <= set(declared)
    for profile in card.profiles.values():
        assert set(profile) <= set(declared)

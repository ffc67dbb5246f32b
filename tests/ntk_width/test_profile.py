"""The chapter's parameters: all are used, and those of the paper profile reach a first step."""

import ast

import nbformat
import pytest

from paperbook import ntk_width as nw
from paperbook import project
from paperbook.execution import resolve_parameters
from paperbook.parameters import declared_parameters, parameters_cell

NOTEBOOK = project.notebook_path("ntk_width")


def test_every_parameter_is_used_by_the_code():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    parameters = parameters_cell(notebook)
    used = {
        node.id
        for cell in notebook.cells
        if cell.cell_type == "code" and cell is not parameters
        for node in ast.walk(ast.parse(cell.source))
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    assert set(declared_parameters(NOTEBOOK)) <= used


def first_step(task: nw.Task, width: int) -> None:
    """One step of both methods from a start of the given width lowers the loss."""
    pair = nw.train_both(task, width, 0, tol=0.0, max_steps=1)
    for run in pair:
        assert len(run.loss) == 2
        assert run.loss[1] < run.loss[0]


@pytest.mark.slow
def test_paper_profile_takes_its_first_steps_on_tiny_data():
    defaults = {name: p.default for name, p in declared_parameters(NOTEBOOK).items()}
    p = defaults | resolve_parameters("ntk_width", "paper")
    place = nw.resolve_device(p["device"])
    tiny = {"num_samples": 6, "input_dim": 5, "device": place}
    scale = p["output_scale"]

    def task(**kind):
        return nw.random_task(p["seed"], **tiny, **{"output_dim": 2, "output_scale": scale} | kind)

    for width in {*p["widths"], *p["kernel_widths"], p["width"]}:
        first_step(task(ratio=p["ratio"]), width)
    for rho in p["regimes"]:
        first_step(task(ratio=rho), 64)
    for spike in (*p["spikes"], p["spike"]):
        first_step(task(spike=spike, zero_output=True, output_scale=p["lazy_scale"]), 64)
    for n in {*p["output_dims"], *p["low_rank_dims"], *p["iteration_dims"], p["output_dim"]}:
        first_step(task(output_dim=n), 64)
    for rank in p["ranks"]:
        capped = min(rank, 6)
        first_step(task(output_dim=p["low_rank_dims"][-1], rank=capped, sketched=True), 64)
    for condition in p["conditions"]:
        first_step(task(output_dim=8, rank=2, condition=condition, sketched=True), 64)
    X, Y = nw.digits(p["digit_samples"], seed=p["seed"])
    first_step(nw.Task(X[:20].to(place), Y[:20].to(place), p["ratio"], scale), 64)

"""A book of one small chapter, for tests of the machinery."""

from pathlib import Path

import nbformat
import yaml

from paperbook.scaffold import read_cells

CARD = {
    "slug": "toy",
    "title": "Toy",
    "part": "agents",
    "paper": {"title": "Toys", "authors": ["A. Author"], "year": 2026, "key": "author2026toys"},
    "known_from": "abstract",
    "profiles": {"smoke": {"count": 2}, "book": {}, "paper": {"count": 50}},
    "sweep": {"count": [2, 3]},
    "method": [
        {
            "equation": "(1)",
            "function": "paperbook.project.root",
            "test": "tests/toy/test_method.py::test_toy",
        }
    ],
    "claims": [
        {
            "id": "toy-small",
            "spec": "A1",
            "statement": "The numbers are small.",
            "source": "abstract",
            "kind": "empirical",
            "statistic": "the numbers",
            "rule": "< 100",
        }
    ],
}

NOTEBOOK = """
%% markdown
# Toy
%% code tags=parameters
count: int = 3  # how many numbers
scale: float = 1.0  # size of the numbers
fail: str = ""  # "" or "raise" or "die" or "norecord" or "hang" or "memory"
nap: float = 0.0  # seconds to sleep
plot: bool = False  # draw a figure
flags: list = []  # unused by the numbers
%% code
import os
import signal
import time

from paperbook import evidence

ledger = evidence.Ledger("toy", globals())
%% code
if fail == "raise":
    raise RuntimeError("planned failure")
if fail == "die":
    os.kill(os.getpid(), signal.SIGKILL)
if fail == "hang":
    time.sleep(600)
if fail == "memory":
    hoard = [bytes([i]) * 10_000_000 for i in range(1, 150)]
    time.sleep(600)
time.sleep(nap)
ledger.judge("toy-small", [scale * i for i in range(count)])
ledger.note("largest", scale * (count - 1))
%% code
if plot:
    import matplotlib.pyplot as plt
    import torch

    plt.plot(torch.arange(4.0) @ torch.ones(4, 4))
    plt.show()
%% code tags=nbval-check-output
ledger.verdicts()
%% code
if fail != "norecord":
    ledger.close()
"""


def write_toy_book(top: Path) -> None:
    (top / "notebooks").mkdir(parents=True)
    (top / "_config.yml").write_text("title: toy\n")
    (top / "notebooks" / "toy.yaml").write_text(yaml.safe_dump(CARD))
    nbformat.write(read_cells(NOTEBOOK), top / "notebooks" / "toy.ipynb")
    tests = top / "tests" / "toy"
    tests.mkdir(parents=True)
    (tests / "test_method.py").write_text("def test_toy():\n    assert True\n")

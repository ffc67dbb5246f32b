"""Fixtures shared by the suite."""

from pathlib import Path

import pytest
from toybook import write_toy_book

from paperbook import project

REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.fixture
def toy_book(tmp_path, monkeypatch) -> Path:
    """A book of one chapter, ``toy``, in a folder of its own."""
    write_toy_book(tmp_path)
    monkeypatch.setenv("PAPERBOOK_ROOT", str(tmp_path))
    return tmp_path


@pytest.fixture
def repository(monkeypatch) -> Path:
    monkeypatch.setenv("PAPERBOOK_ROOT", str(REPOSITORY))
    assert project.root() == REPOSITORY
    return REPOSITORY

"""What makes a chapter stale, on a copy of this package."""

import os
import shutil
import subprocess
import sys

import pytest

from paperbook import fingerprint

PRINT = "import sys; from paperbook.fingerprint import fingerprint as f; print(f(sys.argv[1]))"


@pytest.fixture
def copy(tmp_path, repository):
    for name in ("src", "notebooks"):
        shutil.copytree(repository / name, tmp_path / name, ignore=shutil.ignore_patterns("*.npz"))
    shutil.copy2(repository / "_config.yml", tmp_path)
    return tmp_path


def digest(top, slug):
    env = {**os.environ, "PAPERBOOK_ROOT": str(top), "PYTHONPATH": str(top / "src")}
    command = [sys.executable, "-c", PRINT, slug]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout


def test_only_code_that_a_chapter_uses_makes_it_stale(copy):
    before = {slug: digest(copy, slug) for slug in ("ccvfm", "ntk_width")}
    module = copy / "src" / "paperbook" / "ccvfm" / "__init__.py"
    source = module.read_text()

    module.write_text(source.replace('"""', '"""Another docstring. ', 1) + "\n# a comment\n")
    assert digest(copy, "ccvfm") == before["ccvfm"]

    module.write_text(source + "\nCHANGED = 1\n")
    assert digest(copy, "ccvfm") != before["ccvfm"]
    assert digest(copy, "ntk_width") == before["ntk_width"]

    rules = copy / "src" / "paperbook" / "evidence" / "rules.py"
    rules.write_text(rules.read_text() + "\nCHANGED = 1\n")
    assert digest(copy, "ntk_width") != before["ntk_width"]


def test_machinery_that_decides_nothing_is_left_out(copy):
    before = digest(copy, "ntk_width")
    for name in ("cli.py", "building.py", "sphinxext/base.py", "evidence/render.py"):
        path = copy / "src" / "paperbook" / name
        path.write_text(path.read_text() + "\nCHANGED = 1\n")
    assert digest(copy, "ntk_width") == before


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("x = 1  # one", "x = 1", True),
        ('def f():\n    "doc"\n    return 1', "def f():\n\n    return 1", True),
        ("x = (1,\n     2)", "x = (1, 2)", True),
        ("x = 1", "x = 2", False),
        ("x = 1", "x = 1.0", False),
        ("x = 'a'", 'x = "a"', True),
        ("%matplotlib inline", "%matplotlib widget", False),
    ],
)
def test_canonical_form(a, b, same):
    assert (fingerprint.canonical(a) == fingerprint.canonical(b)) is same


def test_every_machinery_module_exists(repository):
    package = repository / "src" / "paperbook"
    planned = {"sweep"}
    for name in set(fingerprint.MACHINERY) - planned:
        assert (package / f"{name}.py").is_file() or (package / name).is_dir(), name

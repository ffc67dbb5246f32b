"""The repository as a whole: pins, licences, and nothing that ties it to one machine."""

import re
import subprocess
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

TEXT = {".py", ".md", ".ipynb", ".yaml", ".yml", ".toml", ".txt", ".cff", ".css", ".bib", ""}
MACHINE_PATH = re.compile(r"(?<![\w.~:/])/(?:home|root|Users|work)/[\w.-]+")


@pytest.fixture
def tracked(repository):
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True)
    if done.returncode:
        pytest.skip("not a git checkout")
    return [repository / name for name in done.stdout.splitlines()]


def test_every_dependency_is_pinned_and_no_index_named(repository):
    lines = (repository / "requirements.txt").read_text().splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", pin) for pin in pins)
    names = {canonicalize_name(pin.partition("==")[0]) for pin in pins}
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    wanted = [*project["dependencies"], *(line for extra in extras for line in extra)]
    assert {canonicalize_name(Requirement(line).name) for line in wanted} <= names


def test_no_path_of_a_machine_is_committed(tracked, repository):
    found = []
    for path in tracked:
        if path.suffix in TEXT and path.is_file() and path.name != "test_repository.py":
            match = MACHINE_PATH.search(path.read_text(encoding="utf-8", errors="ignore"))
            if match:
                found.append(f"{path.relative_to(repository)}: {match.group()}")
    assert found == []


def test_no_large_file_is_committed(tracked):
    limit = 3_000_000
    assert [p.name for p in tracked if p.is_file() and p.stat().st_size > limit] == []


def test_chapters_in_the_table_of_contents_exist(repository):
    listed = re.findall(r"notebooks/(\w+)", (repository / "_toc.yml").read_text())
    assert len(set(listed)) == len(listed)
    for slug in listed:
        assert (repository / "notebooks" / f"{slug}.yaml").is_file()

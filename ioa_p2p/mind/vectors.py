"""What encoders make of texts. For type checkers alone: numpy comes with the extra `semantic`."""

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
"""Shape (dimensions,) of one text, (texts, dimensions) of several."""

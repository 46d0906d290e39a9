"""The example agents are files that find their neighbours by name, as their worker process lets them."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "examples" / "devices"))

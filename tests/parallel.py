"""How a test run is shared out among processes: whole files, for their fixtures and order; the longest first.

All of tests/live is one piece: each of its meshes has real nodes on real clocks, and needs a core's worth for itself.
"""

from typing import Any

from xdist.scheduler import LoadScopeScheduling

LIVE = "tests/live"
LONG = (LIVE, "tests/sim", "tests/node", "tests/net", "tests/contracts")


def piece(test: str) -> str:
    """What the test (its node id) is run together with."""
    return LIVE if test.startswith(f"{LIVE}/") else test.partition("::")[0]


def rank(test: str) -> int:
    """By what the longest pieces stand first: the last process to end then has little left to do."""
    return next((place for place, folder in enumerate(LONG) if test.startswith(f"{folder}/")), len(LONG))


class Pieces(LoadScopeScheduling):
    def __init__(self, config: Any, log: Any) -> None:
        config.option.loadscopereorder = False  # by number of tests; ours are in order already
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        return piece(nodeid)

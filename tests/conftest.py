"""One Hypothesis profile for all: no deadlines (wall time is never asserted), failures print their replay. And Ctrl-C
ends a test run and the processes it starts, even where a shell put it in the background and so had it ignored."""

import os
import signal
from typing import Any

import pytest
from hypothesis import settings

settings.register_profile("house", deadline=None, print_blob=True)
settings.load_profile("house")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Half of the time goes into bounded waits."""
    return 2 * (os.cpu_count() or 1)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from tests.parallel import Pieces  # only here: pytest without processes needs no xdist

    return Pieces(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        from tests.parallel import rank

        items.sort(key=lambda item: rank(item.nodeid))

"""Ten thousand offers to one device: it takes what it may, answers BUSY to the rest, and stays small."""

import tracemalloc

import pytest

from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.team.queue import Queue
from ioa_p2p.team.tasks import LAN
from ioa_p2p.team.worker import Worker
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.step import Assign
from ioa_p2p.wire.team import Report
from tests.team.people import BOB, NOW, Log, no_rows, spec

OFFERS = 10_000
MEMORY_MAX = 32 * 1024 * 1024


def offers(team: int, count: int) -> Log:
    """A team whose coordinator gives Bob so many tasks."""
    log = Log()
    specs = [codec.replace(spec(1), id=bytes([team]) + number.to_bytes(15), goal="x" * 100) for number in range(count)]
    for first in range(0, count, limits.STEP_TASKS_MAX):
        log.add(Assign("async", tuple(specs[first : first + limits.STEP_TASKS_MAX])))
    return log


@pytest.mark.parametrize(("requesters", "accepted"), [(1, 32), (100, 224)])
def test_of_ten_thousand_offers_a_bounded_number_is_taken_and_the_rest_is_busy(requesters: int, accepted: int) -> None:
    queue = Queue(own=BOB.node)
    tracemalloc.start()
    teams = 100
    held: list[tuple[Worker, Log]] = []
    states: list[str] = []
    for number in range(teams):
        requester = NodeKey(bytes([number % requesters, 9]) * 16).node
        log = offers(number, OFFERS // teams)
        worker = Worker(BOB.node, b"%16d" % number, requester, no_rows, LAN, queue)
        deeds = worker.reconcile(NOW, log.state, new=True)
        states += [deed.state for deed in deeds if isinstance(deed, Report)]
        assert all(deed.retry_s > 0 for deed in deeds if isinstance(deed, Report) and deed.state == "busy")
        held.append((worker, log))
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (states.count("accepted"), states.count("busy")) == (accepted, OFFERS - accepted)
    assert grown <= MEMORY_MAX
    assert sum(queue.take(BOB.node) for _ in range(40)) == limits.QUEUE_PER_REQUESTER_MAX, "the owner has its places"

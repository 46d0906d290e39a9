"""What a holder refuses of an honest node it says, for silence would look like death."""

import pytest

from ioa_p2p.wire import limits
from ioa_p2p.wire.dht import Store, Verdict
from tests.dht.frames import NOW, sealed
from tests.dht.test_machine import Driven
from tests.wire.samples import BOB, record


@pytest.mark.parametrize("issued", [limits.CLOCK_SKEW_S + 1, -60 - limits.CLOCK_SKEW_S], ids=["future", "past"])
def test_a_publisher_with_a_wrong_clock_is_told_so_and_not_left_to_think_us_dead(issued: int):
    alice = Driven()
    raw = sealed(record(BOB, issued=int(NOW.wall) + issued, ttl=60), BOB)
    assert alice.answer(Store(1, True, alice.token(), raw)).verdict == Verdict.TIME
    assert alice.machine.faults.total() == 1
    assert alice.machine.held == []


def test_a_publisher_that_stores_too_much_at_once_is_told_to_wait(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "STORE_BUDGET", (2, 1))
    alice = Driven()
    raws = [sealed(record(BOB, agent=f"agent-{number}"), BOB) for number in range(3)]
    verdicts = [alice.answer(Store(1, True, alice.token(), raw)).verdict for raw in raws]
    assert verdicts == [Verdict.KEPT, Verdict.KEPT, Verdict.BUSY]
    assert alice.machine.faults == {"over-budget": 1}

"""Token buckets: what a sender may cost us, and that nobody else pays for it."""

import pytest

from ioa_p2p.dht.budget import Budget, Requests
from ioa_p2p.wire import limits
from ioa_p2p.wire.dht import Contact, Ping
from tests.dht.frames import NOW, later
from tests.dht.test_machine import Driven
from tests.wire.samples import ALICE, BOB, MALLORY, fault_of

HOME = "93.184.216.34"


def spent(budget: Requests, times: int, contact: Contact) -> int:
    """How many of so many requests pass."""
    return sum(fault_of(budget.spend, NOW, contact) is None for _ in range(times))


def test_a_bucket_gives_its_burst_and_then_as_fast_as_it_fills():
    budget = Budget(3, 2, 10)
    passed = [fault_of(budget.spend, later(s), b"a") is None for s in (0, 0, 0, 0, 0.25, 0.5, 0.5, 60, 60, 60, 60)]
    assert passed == [True, True, True, False, False, True, False, True, True, True, False]


def test_one_sender_does_not_pay_for_another_and_the_longest_idle_bucket_goes():
    budget = Budget(1, 0, 2)
    assert [fault_of(budget.spend, NOW, sender) for sender in (b"a", b"b", b"a")] == [None, None, "over-budget"]
    budget.spend(NOW, b"c")
    assert len(budget) == 2
    assert [fault_of(budget.spend, NOW, sender) for sender in (b"a", b"b")] == ["over-budget", None]


def test_many_keys_behind_one_address_share_what_it_has(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "REQUEST_BUDGET_KEY", (4, 0))
    monkeypatch.setattr(limits, "REQUEST_BUDGET_ADDRESS", (10, 0))
    budget = Requests()
    keys = [bytes([number]) * 32 for number in range(5)]
    assert [spent(budget, 6, Contact(key, HOME, 1)) for key in keys] == [4, 4, 2, 0, 0]
    assert spent(budget, 6, Contact(ALICE.node, "93.184.216.35", 1)) == 4


@pytest.mark.parametrize(
    ("hosts", "passed"),
    [(["2606:2800:220::1", "2606:2800:220:1::2"], [3, 0]), (["2606:2800:220::1", "2606:2800:221::1"], [3, 3])],
    ids=["one /48", "two"],
)
def test_an_owner_of_many_ipv6_addresses_is_one(monkeypatch: pytest.MonkeyPatch, hosts, passed):
    monkeypatch.setattr(limits, "REQUEST_BUDGET_ADDRESS", (3, 0))
    budget = Requests()
    assert [spent(budget, 5, Contact(bytes([i]) * 32, host, 1)) for i, host in enumerate(hosts)] == passed


def test_who_asks_too_much_is_not_answered_and_others_are(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "REQUEST_BUDGET_KEY", (5, 1))
    alice = Driven()
    mallory, bob = Contact(MALLORY.node, HOME, 1), Contact(BOB.node, HOME, 2)
    assert [fault_of(alice.answer, Ping(1, True), mallory) for _ in range(7)] == [None] * 5 + ["over-budget"] * 2
    assert alice.answer(Ping(1, True), bob)
    alice.run(1.0)
    assert alice.answer(Ping(1, True), mallory)

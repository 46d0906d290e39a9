"""A put: how many confirmations make it, and from whom."""

import random
from types import SimpleNamespace
from typing import Any

import pytest

from ioa_p2p.dht.agenda import Agenda
from ioa_p2p.dht.calls import Calls
from ioa_p2p.dht.put import Put
from ioa_p2p.effects import Effect, Now, Send
from ioa_p2p.wire import limits
from ioa_p2p.wire.dht import Contact, Stored, Verdict
from tests.dht.frames import NOW


class Stores:
    """A put on so many holders, and how many Stores its end took."""

    def __init__(self, holders: int, *, hurried: bool = False) -> None:
        self.out: list[Effect] = []
        self.done: list[bool] = []
        self.agenda = Agenda("test")
        self.calls = Calls(random.Random(1), self.out, self.agenda, lambda contact, blamed: None)
        contacts = [Contact(bytes([number]) * 32, "127.0.0.1", 1 + number) for number in range(holders)]
        search: Any = SimpleNamespace(holders=contacts, tokens={contact.key: bytes(8) for contact in contacts})
        self.put = Put(self.calls, b"frame", lambda now, put: self.done.append(put.succeeded), hurried=hurried)
        self.put.store(NOW, search)

    def answer(self, verdict: Verdict, count: int) -> None:
        sends = [effect for effect in self.out if isinstance(effect, Send)]
        del self.out[:count]
        for send in sends[:count]:
            answer = Stored(send.message.id, False, verdict)
            self.put.answered(NOW, self.calls.match(send.to, answer), answer)


@pytest.mark.parametrize(("holders", "needed"), [(1, 1), (4, 3), (20, 15), (60, 15)])
def test_three_quarters_of_the_holders_must_confirm_but_of_a_crowd_no_more_than_of_k(holders: int, needed: int):
    stores = Stores(holders)
    assert len(stores.out) == holders
    stores.answer(Verdict.KEPT, needed - 1)
    assert stores.done == []
    stores.answer(Verdict.KNOWN, 1)
    assert stores.done == [True]


def test_holders_that_keep_nothing_make_it_fail():
    stores = Stores(4)
    stores.answer(Verdict.FULL, 4)
    assert stores.done == [False]


def test_with_nobody_it_fails_at_once():
    assert Stores(0).done == [False]


def test_a_hurried_one_waits_for_nobody_who_is_slow_and_no_other_gives_up_so_soon():
    hurried, patient = Stores(4, hurried=True), Stores(4)
    for stores in (hurried, patient):
        stores.answer(Verdict.KEPT, 2)
        assert stores.done == []
        stores.agenda.run(Now(NOW.wall, NOW.boot + limits.DHT_SLOW_S[1]))
    assert (hurried.done, patient.done) == ([False], [])
    hurried.answer(Verdict.KEPT, 2)
    patient.answer(Verdict.KEPT, 2)
    assert (hurried.done, patient.done) == ([False], [True])


def test_a_hurried_one_whose_slow_holder_answers_still_waits_for_the_others():
    stores = Stores(2, hurried=True)
    (first, _) = [effect for effect in stores.out if isinstance(effect, Send)]
    call = next(call for call in stores.calls._calls.values() if call.to == first.to)
    call.slow = True
    stores.put.slow(NOW, call)
    stores.answer(Verdict.FULL, 1)
    assert stores.done == []
    stores.answer(Verdict.FULL, 1)
    assert stores.done == [False]

"""A put: how many confirmations make it, and from whom."""

import random
from types import SimpleNamespace
from typing import Any

import pytest

from ioa_p2p.dht.agenda import Agenda
from ioa_p2p.dht.calls import Calls
from ioa_p2p.dht.put import Put
from ioa_p2p.effects import Effect, Send
from ioa_p2p.wire.dht import Contact, Stored, Verdict
from tests.dht.frames import NOW


class Stores:
    """A put on so many holders, and how many Stores its end took."""

    def __init__(self, holders: int) -> None:
        self.out: list[Effect] = []
        self.done: list[bool] = []
        self.calls = Calls(random.Random(1), self.out, Agenda("test"), lambda contact, blamed: None)
        contacts = [Contact(bytes([number]) * 32, "127.0.0.1", 1 + number) for number in range(holders)]
        search: Any = SimpleNamespace(holders=contacts, tokens={contact.key: bytes(8) for contact in contacts})
        self.put = Put(self.calls, b"frame", lambda now, put: self.done.append(put.succeeded))
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

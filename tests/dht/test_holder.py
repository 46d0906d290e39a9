"""What a holder of a key with many pointers answers."""

import itertools
import random

import pytest

from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.dht.machine import DhtMachine
from ioa_p2p.dht.records import item_of
from ioa_p2p.effects import Send
from ioa_p2p.wire import limits
from ioa_p2p.wire.dht import Contact, FindPointers, Found, Ping, Store, Stored, Verdict
from ioa_p2p.wire.sketch import NUMBERS, pack
from tests.dht.frames import NOW, sealed
from tests.wire.samples import ALICE, BOB, NETWORK, fault_of, pointer

READER = Contact(BOB.node, "127.0.0.1", 4001)


def sketch_of(near: int) -> bytes:
    """The first `near` numbers are 3, the others -3."""
    return pack([1.0] * near + [-1.0] * (NUMBERS - near), 0.5)


class Holding:
    """A holder of pointers, each stored by its own publisher."""

    def __init__(self, count: int) -> None:
        self.machine = DhtMachine(ALICE, NETWORK, lambda space: [], random.Random(1), 1)
        self.machine.start(NOW)
        self.stored = [self.store(number) for number in range(count)]
        self.key = item_of(sealed(pointer())).key

    def store(self, number: int) -> Stored:
        key = NodeKey(number.to_bytes(32))
        publisher = Contact(key.node, "127.0.0.1", 5_000 + number)
        token = self.ask(Ping(1, True), publisher).token
        frame = sealed(pointer(key, agent=f"agent-{number}", sketch=sketch_of(number)), key)
        return self.ask(Store(2, True, token, frame), publisher)

    def ask(self, message, peer: Contact = READER):
        effects = self.machine.handle_message(NOW, peer, message)
        return next(each.message for each in effects if isinstance(each, Send) and each.to == peer)

    def pages(self, request: int, sketch: bytes = b"") -> list[list[int]]:
        """The numbers of the pointers on each page."""
        pages: list[Found] = [self.ask(FindPointers(request, True, self.key, b"", sketch))]
        while pages[-1].cursor:
            pages.append(self.ask(FindPointers(0, True, self.key, pages[-1].cursor, sketch)))
        return [[int(item_of(raw).body.agent[6:]) for raw in page.frames] for page in pages]


def test_a_full_holder_says_split_to_publishers_and_readers(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "STORE_KEY_ITEMS_MAX", 10)
    holding = Holding(12)
    assert [stored.split for stored in holding.stored] == [False] * 9 + [True] * 3
    assert {stored.verdict for stored in holding.stored[:10]} == {Verdict.KEPT}
    assert holding.ask(FindPointers(1, True, holding.key)).split
    assert not holding.ask(FindPointers(1, True, bytes(20))).split


def test_readers_begin_at_different_places_and_each_can_read_everything():
    holding = Holding(30)
    reads = [holding.pages(request) for request in (0, 10, 20)]
    assert len({tuple(pages[0]) for pages in reads}) == 3
    for pages in reads:
        assert sorted(itertools.chain(*pages)) == list(range(30))
        assert min(len(page) for page in pages[:-1]) >= 4


def test_with_a_sketch_the_nearest_come_first_and_some_by_lot():
    """Pointer n agrees with the query in n numbers."""
    holding = Holding(100)
    pages = holding.pages(7, sketch_of(NUMBERS))
    assert [page[:3] for page in pages[:2]] == [[99, 98, 97], [96, 95, 94]]
    assert max(pages[0][3], pages[1][3]) < 94
    assert set(itertools.chain(*pages)) == set(range(100))


def test_every_page_with_the_largest_pointers_still_holds_four():
    holding = Holding(0)
    key = NodeKey(bytes(32))
    token = holding.ask(Ping(1, True)).token
    for number in range(12):
        body = pointer(key, agent="a" * 29 + f"-{number:02}", sketch=bytes(64), endpoint=bytes(15) + b"\x01\x0f\xa1")
        holding.ask(Store(2, True, token, sealed(body, key)))
    found = holding.ask(FindPointers(1, True, holding.key, b"", bytes(64)))
    assert len(found.frames) == 4


def test_a_cursor_of_another_length_is_a_peers_fault():
    assert fault_of(Holding(1).ask, FindPointers(1, True, bytes(20), b"abc")) == "bad-cursor"

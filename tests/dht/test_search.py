"""Searches over disjoint paths: who agrees with whom, what ends a read, what a lookup in vain does."""

import random

import pytest

from ioa_p2p.dht import space
from ioa_p2p.dht.commands import SearchRecord
from ioa_p2p.dht.machine import DhtMachine
from ioa_p2p.dht.records import item_of
from ioa_p2p.dht.search import RecordSearch
from ioa_p2p.effects import Emit, Now, Send
from ioa_p2p.wire import ids, limits
from ioa_p2p.wire.dht import Contact, FindRecord, Found, pack_contact
from tests.dht.frames import NOW, later, sealed
from tests.wire.samples import ALICE, BOB, NETWORK, record

KEY = ids.record_key(BOB.node, "analyst")
NEW, OLD = (sealed(record(BOB, seq=seq), BOB) for seq in (9, 8))
SUBNET = "93.184.216."


def peer(number: int, host: str = "127.0.0.1") -> Contact:
    return Contact(ids.blake(b"peer %d" % number), host, 1_000 + number)


def from_key(contact: Contact) -> int:
    return space.position(contact.key) ^ space.at(KEY)


class Read:
    """A read by a machine that knows `peers`; what it asks and is told."""

    def __init__(
        self, peers: list[Contact], thorough: bool = False, radius: int = 0, held: tuple[bytes, ...] = ()
    ) -> None:
        self.machine = DhtMachine(ALICE, NETWORK, lambda space: [], random.Random(1), 1)
        self.machine._calls.client = False
        self.machine.start(NOW)
        for frame in held:
            self.machine._store.put(NOW, item_of(frame), BOB.node)
        for contact in peers:
            self.machine._peers.table.enter(contact, NOW.boot)
        if radius:
            self.machine._means.density.note(bytes(20), radius)
        self.asked: list[Contact] = []
        self.found: list = []
        self.requests: dict[Contact, int] = {}
        self._note(self.machine.handle_command(NOW, SearchRecord(1, BOB.node, "analyst", thorough)))

    def search_again(self, now: Now) -> None:
        self._note(self.machine.handle_command(now, SearchRecord(2, BOB.node, "analyst")))

    def answer(self, contact: Contact, *frames: bytes, names: tuple[Contact, ...] = ()) -> None:
        found = Found(self.requests[contact], False, bytes(8), frames, tuple(pack_contact(one) for one in names))
        self._note(self.machine.handle_message(NOW, contact, found))

    def wait(self, seconds: float) -> None:
        self._note(self.machine.handle_timer(later(seconds), "dht"))

    def _note(self, effects: list) -> None:
        for effect in effects:
            if isinstance(effect, Send) and isinstance(effect.message, FindRecord):
                self.asked.append(effect.to)
                self.requests[effect.to] = effect.message.id
            if isinstance(effect, Emit) and getattr(effect.event, "request", None) == 1:
                self.found.append(effect.event)


@pytest.fixture
def peers() -> list[Contact]:
    """12, nearest to the key first."""
    made = [peer(number) for number in range(12)]
    return sorted(made, key=from_key)


def test_two_holders_on_different_paths_that_agree_end_a_read(peers: list[Contact]):
    read = Read(peers)
    assert read.asked == peers[: limits.DHT_AGREE]
    for contact in peers[: limits.DHT_AGREE]:
        assert not read.found
        read.answer(contact, NEW)
    assert read.found[0].record.seq == 9
    assert read.asked == peers[: limits.DHT_AGREE]


def test_holders_on_one_path_do_not_agree_with_each_other():
    search = RecordSearch(Read([]).machine._means, KEY, lambda *_: None)
    item = search._read(NOW, NEW)
    assert item is not None
    for _ in range(3):
        search._count(item, 2)
    assert not search._enough()
    search._count(item, 3)
    assert search._enough()


def test_a_newer_record_makes_all_who_agreed_on_the_older_start_anew(peers: list[Contact]):
    read = Read(peers)
    read.answer(peers[0], OLD)
    read.answer(peers[1], NEW)
    assert not read.found
    read.answer(read.asked[2], NEW)
    assert read.found[0].record.seq == 9


def test_who_is_far_from_the_key_agrees_with_nobody_but_what_it_says_counts(peers: list[Contact]):
    """Liars on the way could else end a read with an old record before a holder is asked."""
    read = Read(peers, radius=1)
    for contact in peers[:2]:
        read.answer(contact, NEW)
    assert not read.found
    for contact in peers[2:]:
        read.answer(contact)
    assert read.found[0].record.seq == 9


def test_a_thorough_read_hears_every_holder_over_eight_paths(peers: list[Contact]):
    read = Read(peers, thorough=True)
    assert len(read.asked) == limits.DHT_PATHS_WRITE
    for contact in peers:
        assert not read.found
        read.answer(contact, OLD if contact != peers[-1] else NEW)
    assert read.found[0].record.seq == 9
    assert (read.found[0].copies, read.found[0].answered) == (1, 12)


@pytest.mark.parametrize("own", [False, True])
def test_a_thorough_read_counts_who_else_has_the_newest_record_whether_we_hold_it_or_not(
    peers: list[Contact], own: bool
):
    read = Read(peers, thorough=True, held=(OLD, NEW) if own else ())
    for number, contact in enumerate(peers):
        read.answer(contact, *([NEW] if number % 3 else [OLD] if number else []))
    assert (read.found[0].copies, read.found[0].answered) == (8, 12)


def test_who_is_slow_is_not_waited_for_and_more_are_asked(peers: list[Contact]):
    read = Read(peers)
    assert len(read.asked) == 2
    read.wait(limits.DHT_SLOW_S[1] + 0.01)
    assert len(read.asked) >= 2 + limits.DHT_PATHS_READ


def test_a_read_in_vain_asks_all_that_our_table_has_left():
    """Liars fill the window of every path with nodes that answer nothing: the rest of our own table is asked too."""
    known = sorted((peer(number) for number in range(18)), key=from_key)
    made_up = [one for one in map(peer, range(1_000, 9_000)) if from_key(one) < from_key(known[0])]
    read = Read(known)
    lies = {contact: tuple(made_up[16 * number :][:16]) for number, contact in enumerate(known[:4])}
    told = 0
    while not read.found:
        contact = read.asked[told]
        told += 1
        read.answer(contact, *((NEW,) if contact == known[-1] else ()), names=lies.get(contact, ()))
    assert read.found[0].record.seq == 9
    assert told <= limits.DHT_LOOKUP_CALLS_MAX


def test_of_one_answer_at_most_three_of_a_subnet_are_taken():
    read = Read([peer(1)], thorough=True)
    read.answer(peer(1), names=tuple(peer(number, f"{SUBNET}{number}") for number in range(10, 20)))
    for seconds in range(1, 10):
        read.wait(seconds)
    assert len([one for one in read.asked if one.host.startswith(SUBNET)]) == limits.DHT_SUBNET_TABLE_MAX


def test_a_node_that_a_liar_names_where_nobody_is_stays_one_to_ask_where_it_is():
    honest, liar = peer(2), peer(1)
    read = Read([liar])
    read.answer(liar, names=(honest._replace(port=9),))
    read.wait(limits.DHT_CALL_S + 0.1)
    assert honest._replace(port=9) in read.asked
    read.machine._peers.table.enter(honest, later(3).boot)
    read.search_again(later(4))
    assert honest in read.asked

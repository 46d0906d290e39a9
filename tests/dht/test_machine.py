"""One machine, its effects in full."""

import itertools
import random
from typing import Any

import pytest

from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.dht import commands, events
from ioa_p2p.dht.machine import TIMER, DhtMachine
from ioa_p2p.dht.records import item_of
from ioa_p2p.effects import Effect, Emit, Save, Send, SetTimer
from ioa_p2p.errors import UsageError
from ioa_p2p.wire import codec, ids, limits
from ioa_p2p.wire.dht import (
    PADDING,
    Contact,
    DialBack,
    FindNode,
    FindPointers,
    FindRecord,
    Found,
    Had,
    Have,
    Introduce,
    Ping,
    Pong,
    Store,
    Stored,
    Verdict,
    pack_contact,
    pack_endpoint,
)
from tests.dht.frames import NOW, forged, later, sealed
from tests.dht.mesh import card
from tests.wire.samples import ALICE, BOB, MALLORY, NETWORK, fault_of, pointer, record

HOME = pack_endpoint("127.0.0.1", 4001)
PUBLIC = pack_endpoint("93.184.216.34", 4001)


def contact(key: NodeKey, host: str = "127.0.0.1") -> Contact:
    return Contact(key.node, host, 4001)


BOBS = contact(BOB)
MALLORYS = contact(MALLORY)


class Driven:
    """A started machine of Alice's."""

    def __init__(self, rows: dict[str, list[tuple[bytes, bytes]]] | None = None) -> None:
        saved = rows or {}
        self.machine = DhtMachine(ALICE, NETWORK, lambda space: saved.get(space, []), random.Random(1), 1)
        self.timer_s: float | None = None
        self.now = NOW
        self.started = self.noted(self.machine.start(NOW))

    def noted(self, effects: list[Effect]) -> list[Effect]:
        for effect in effects:
            if isinstance(effect, SetTimer):
                self.timer_s = effect.at
        return effects

    def hear(self, peer: Any, message: Any) -> list[Effect]:
        return self.noted(self.machine.handle_message(self.now, peer, message))

    def command(self, command: Any) -> list[Effect]:
        return self.noted(self.machine.handle_command(self.now, command))

    def run(self, seconds: float) -> list[tuple[float, Effect]]:
        """Let time pass; what the timer brought, and how many seconds after NOW."""
        end_s, happened = self.now.boot + seconds, list[tuple[float, Effect]]()
        while self.timer_s is not None and self.timer_s <= end_s:
            self.now, self.timer_s = later(self.timer_s - NOW.boot), None
            effects = self.noted(self.machine.handle_timer(self.now, TIMER))
            happened += [(self.now.boot - NOW.boot, effect) for effect in effects]
        self.now = later(end_s - NOW.boot)
        return happened

    def answer(self, message: Any, peer: Contact = BOBS) -> Any:
        """What `peer` is answered."""
        effects = [effect for effect in self.hear(peer, message) if isinstance(effect, Send) and effect.to == peer]
        return effects[0].message

    def token(self, peer: Contact = BOBS) -> bytes:
        return self.answer(Ping(1, True), peer).token

    def met(self, peer: Contact = BOBS) -> "Driven":
        """`peer` is in the table: it pinged, was pinged back and answered."""
        effects = self.hear(peer, Ping(1, False))
        ping = next(
            effect.message for effect in effects if isinstance(effect, Send) and isinstance(effect.message, Ping)
        )
        self.hear(peer, Pong(ping.id, False, bytes(8), HOME))
        return self


def sends(effects: list[Effect], kind: type[Any]) -> list[Send]:
    return [effect for effect in effects if isinstance(effect, Send) and isinstance(effect.message, kind)]


def emitted(effects: list[Effect]) -> list[Any]:
    return [effect.event for effect in effects if isinstance(effect, Emit)]


@pytest.fixture
def alice() -> Driven:
    return Driven()


def test_a_start_sets_the_one_timer_and_nothing_else(alice: Driven):
    assert alice.started == [SetTimer(TIMER, NOW.boot + limits.CLOCK_WATCH_S)]


def test_a_join_pings_the_seeds_as_a_client(alice: Driven):
    effects = alice.command(commands.Join((BOBS,)))
    assert [(type(effect), getattr(effect, "to", None)) for effect in effects] == [(Send, BOBS), (SetTimer, None)]
    assert effects[0].message == Ping(effects[0].message.id, True)
    assert effects[1] == SetTimer(TIMER, NOW.boot + limits.DHT_SLOW_S[1])


def test_a_seed_that_answers_is_asked_for_ourselves_and_we_are_no_client_on_loopback(alice: Driven):
    ping = alice.command(commands.Join((BOBS,)))[0].message
    effects = alice.hear(BOBS, Pong(ping.id, False, bytes(8), HOME))
    find = effects[0].message
    find_us = Send(BOBS, FindNode(find.id, False, ids.dht_id(ALICE.node), PADDING))
    assert effects == [find_us, SetTimer(TIMER, NOW.boot + limits.DHT_SLOW_S[0])]
    effects = alice.hear(BOBS, Found(find.id, False, bytes(8)))
    assert emitted(effects) == [events.Filled()]
    happened = [effect for _, effect in alice.run(limits.DIGEST_WAIT_S)]
    assert emitted(happened) == [events.Ready(1, True, False)]


def test_without_seeds_and_peers_a_node_is_ready_alone(alice: Driven):
    assert emitted(alice.command(commands.Join())) == [events.Ready(0, False, False)]


def test_a_silent_seed_is_tried_for_ever_ever_less_often(alice: Driven):
    alice.command(commands.Join((BOBS,)))
    times = [second for second, effect in alice.run(600) if sends([effect], Ping)]
    waits = [after - before for before, after in itertools.pairwise([0.0, *times])]
    assert waits[0] <= limits.DHT_CALL_S + limits.DHT_SEED_RETRY_S[0]
    assert all(48 <= wait <= 62 for wait in waits[6:])
    assert len(waits) >= 12


def test_a_ping_is_answered_with_a_token_and_what_we_see(alice: Driven):
    effects = alice.hear(BOBS, Ping(7, True))
    assert effects == [Send(BOBS, Pong(7, False, effects[0].message.token, HOME, int(NOW.wall)))]


def test_a_stranger_that_is_no_client_is_pinged_back_and_then_in_the_table(alice: Driven):
    effects = alice.hear(BOBS, Ping(7, False))
    back = effects[1].message
    assert [effect.message for effect in effects[:2]] == [effects[0].message, Ping(back.id, False)]
    assert alice.machine.contacts == []
    alice.hear(BOBS, Pong(back.id, False, bytes(8), HOME))
    assert alice.machine.contacts == [BOBS]


def test_a_client_never_gets_into_the_table(alice: Driven):
    assert sends(alice.hear(BOBS, Ping(7, True)), Ping) == []
    ping = alice.command(commands.Join((BOBS,)))[0].message
    alice.hear(BOBS, Pong(ping.id, True, bytes(8), HOME))
    assert alice.machine.contacts == []


def test_a_peer_that_becomes_a_client_leaves_the_table(alice: Driven):
    alice.met()
    find = sends(alice.command(commands.SearchRecord(1, MALLORY.node, "x")), FindRecord)[0].message
    alice.hear(BOBS, Found(find.id, True, bytes(8)))
    assert alice.machine.contacts == []


def test_a_store_with_a_token_is_kept_and_found_again(alice: Driven):
    raw = sealed(record(BOB), BOB)
    stored = alice.answer(Store(2, True, alice.token(), raw))
    assert stored == Stored(2, False, Verdict.KEPT)
    found = alice.answer(FindRecord(3, True, ids.record_key(BOB.node, "analyst")))
    assert found == Found(3, False, found.token, (raw,))


def test_a_store_without_a_token_of_its_own_address_is_refused(alice: Driven):
    raw = sealed(record(BOB), BOB)
    moved = BOBS._replace(port=9)
    for peer, token in ((BOBS, bytes(8)), (moved, alice.token()), (BOBS, alice.token(MALLORYS))):
        assert alice.answer(Store(2, True, token, raw), peer).verdict == Verdict.TOKEN
    assert alice.machine.held == []


def test_a_forged_store_is_a_peers_fault_with_no_effect(alice: Driven):
    token = alice.token()
    assert fault_of(alice.hear, BOBS, Store(2, True, token, forged(record()))) == "bad-signature"
    assert alice.machine.held == []


def test_pointers_come_in_pages_of_at_least_four_with_a_cursor(alice: Driven):
    token = alice.token()
    raws = {sealed(pointer(agent=f"agent-{number}")) for number in range(11)}
    for raw in raws:
        alice.answer(Store(2, True, token, raw))
    key = item_of(next(iter(raws))).key
    pages: list[Found] = [alice.answer(FindPointers(3, True, key))]
    while pages[-1].cursor:
        pages.append(alice.answer(FindPointers(3, True, key, pages[-1].cursor)))
    assert sorted(raw for page in pages for raw in page.frames) == sorted(raws)
    assert min(len(page.frames) for page in pages[:-1]) >= 4
    assert all(len(codec.encode(page)) <= limits.DATAGRAM_BODY_BYTES_MAX for page in pages)


def test_have_says_which_frames_are_held(alice: Driven):
    raw = sealed(record(BOB), BOB)
    alice.answer(Store(2, True, alice.token(), raw))
    had = alice.answer(Have(3, True, bytes(8) + ids.blake(raw)[:8]))
    assert had == Had(3, False, had.token, b"\x00\x01")


def test_answers_name_the_closest_but_never_the_asker(alice: Driven):
    alice.met().met(MALLORYS)
    found = alice.answer(FindNode(3, True, ids.dht_id(BOB.node)))
    assert found.contacts == (pack_contact(MALLORYS),)


def test_behind_a_public_address_we_ask_to_be_dialled_back_and_stay_a_client(alice: Driven):
    ping = alice.command(commands.Join((BOBS,)))[0].message
    effects = alice.hear(BOBS, Pong(ping.id, False, bytes(8), PUBLIC))
    assert len(sends(effects, DialBack)) == 1
    assert sends(effects, FindNode)[0].message.client
    assert alice.machine.seen_endpoint == ("93.184.216.34", 4001)


def test_a_ping_of_one_we_never_wrote_to_proves_us_and_of_another_does_not(alice: Driven):
    alice.command(commands.Join((BOBS,)))
    assert alice.answer(Ping(1, False)).client
    assert not alice.answer(Ping(1, False), MALLORYS).client


def test_who_asks_to_be_dialled_back_is_introduced_to_a_third_peer(alice: Driven):
    alice.met()
    effects = alice.hear(MALLORYS, DialBack(5, True))
    assert effects == [Send(BOBS, Introduce(effects[0].message.id, False, pack_contact(MALLORYS)))]
    assert alice.hear(MALLORYS, DialBack(6, True)) == []


def test_an_introduced_stranger_is_pinged_if_a_known_peer_asks(alice: Driven):
    introduce = Introduce(5, False, pack_contact(MALLORYS))
    assert alice.hear(BOBS, introduce) == []
    alice.met()
    assert [effect.to for effect in sends(alice.hear(BOBS, introduce), Ping)] == [MALLORYS]


def test_contacts_in_our_own_network_are_not_taken_from_outside():
    """Nobody afar may aim us at machines near us."""
    alice, outside = Driven(), contact(BOB, "93.184.216.34")
    alice.met(outside)
    find = sends(alice.command(commands.SearchRecord(1, MALLORY.node, "x")), FindRecord)[0].message
    near = (contact(MALLORY, "127.0.0.1"), contact(MALLORY, "192.168.1.1"), contact(ALICE, "93.184.216.35"))
    effects = alice.hear(outside, Found(find.id, False, bytes(8), (), tuple(pack_contact(one) for one in near)))
    assert [effect for effect in effects if isinstance(effect, Send)] == []


def test_a_publish_saves_its_seq_before_anything_is_sent(alice: Driven):
    effects = alice.met().command(commands.Publish(card("stat", "x.y")))
    seq = int(NOW.wall * 1_000)
    assert effects[0] == Save("dht/seq", b"stat", seq.to_bytes(8))
    assert [effect.to for effect in sends(effects, FindRecord)] == [BOBS]


def test_a_seq_is_larger_than_the_saved_one_even_if_the_clock_went_back():
    saved = int(NOW.wall * 1_000) + 5_000_000
    alice = Driven({"dht/seq": [(b"stat", saved.to_bytes(8))]})
    assert alice.command(commands.Publish(card("stat")))[0] == Save("dht/seq", b"stat", (saved + 1).to_bytes(8))


def test_a_larger_seq_found_out_there_is_passed_and_a_newer_start_of_ours_raises_the_alarm(alice: Driven):
    effects = alice.met().command(commands.Publish(card("stat")))
    find = sends(effects, FindRecord)[0].message
    theirs = int(NOW.wall * 1_000) + 77
    other = sealed(record(agent="stat", seq=theirs, issued=int(NOW.wall), boot=2))
    effects = alice.hear(BOBS, Found(find.id, False, bytes(8), (other,)))
    assert Save("dht/seq", b"stat", (theirs + 1).to_bytes(8)) in effects
    assert emitted(effects) == [events.CloneAlarm(ALICE.node, "stat", theirs)]


def test_saved_peers_are_tried_at_the_next_join():
    alice = Driven({"dht/peers": [(BOB.node, pack_contact(BOBS)), (b"damaged", b"row")]})
    effects = alice.command(commands.Join())
    assert [effect.to for effect in sends(effects, Ping)] == [BOBS]


@pytest.mark.parametrize(("seeds", "wait_s"), [((contact(MALLORY),), 60), ((), 360)], ids=["a dead seed", "no seed"])
def test_saved_peers_are_tried_again_as_long_as_nobody_answers(seeds: tuple[Contact, ...], wait_s: int):
    alice = Driven({"dht/peers": [(BOB.node, pack_contact(BOBS))]})
    alice.command(commands.Join(seeds))
    times = [second for second, effect in alice.run(900) if BOBS in [each.to for each in sends([effect], Ping)]]
    assert len(times) >= 2
    assert all(after - before <= wait_s + limits.DHT_CALL_S for before, after in itertools.pairwise([0.0, *times, 900]))


def test_good_peers_are_saved_once_and_an_empty_table_forgets_nobody(alice: Driven):
    alice.met()
    first = [effect for _, effect in alice.run(limits.DHT_SAVE_PEERS_S)]
    assert [effect for effect in first if isinstance(effect, Save)] == [Save("dht/peers", BOB.node, pack_contact(BOBS))]
    assert emitted(first) == [events.PeersChanged(1)]
    rest = [effect for _, effect in alice.run(1_800)]
    assert alice.machine.contacts == []
    assert [effect for effect in rest if isinstance(effect, Save)] == []
    assert emitted(rest) == [events.PeersChanged(0)]


def test_after_a_suspend_nobody_is_blamed_and_everything_is_looked_at_anew(alice: Driven):
    """Public failures 8 and 19: an hour passes on the boot clock while a request is under way."""
    alice.met()
    alice.command(commands.Publish(card("stat")))
    alice.now = later(3_600)
    effects = alice.noted(alice.machine.handle_timer(alice.now, TIMER))
    assert alice.machine.contacts == [BOBS]
    assert len([effect for effect in effects if isinstance(effect, Save) and effect.space == "dht/seq"]) >= 1
    assert BOBS in [effect.to for effect in sends(effects, FindNode)]


def test_an_unknown_command_is_the_callers_fault(alice: Driven):
    with pytest.raises(UsageError, match="str"):
        alice.command("what")


def test_searches_beyond_the_limit_wait_and_beyond_that_are_refused(alice: Driven, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "DHT_SEARCHES_MAX", 1)
    monkeypatch.setattr(limits, "DHT_QUEUE_MAX", 1)
    alice.met()
    first = sends(alice.command(commands.SearchRecord(1, MALLORY.node, "x")), FindRecord)[0].message
    assert alice.command(commands.SearchRecord(2, MALLORY.node, "y")) == []
    with pytest.raises(UsageError, match="too many"):
        alice.command(commands.SearchRecord(3, MALLORY.node, "z"))
    effects = alice.hear(BOBS, Found(first.id, False, bytes(8)))
    assert emitted(effects) == [events.RecordFound(1, None, 1, 1)]
    assert len(sends(effects, FindRecord)) == 1


def test_a_frame_of_our_own_that_is_none_is_the_callers_fault(alice: Driven):
    for frame in (b"", bytes(200), sealed(record())[:-1]):
        with pytest.raises(UsageError, match="no record or pointer"):
            alice.command(commands.PutFrame(1, frame))


def test_putting_a_frame_with_nobody_there_fails_and_says_so(alice: Driven):
    assert emitted(alice.command(commands.PutFrame(5, sealed(record())))) == [events.FramePut(5, False, 0, 0)]


def test_a_read_asks_two_and_ends_when_they_agree_and_the_third_only_if_one_lacks_it(alice: Driven):
    peers = [Contact(bytes([number]) * 32, "127.0.0.1", 4001) for number in (7, 8, 9)]
    for peer in peers:
        alice.met(peer)
    raw = sealed(record(BOB), BOB)
    for second, event in (((raw,), 2), ((), 3)):
        asked = sends(alice.command(commands.SearchRecord(1, BOB.node, "analyst")), FindRecord)
        assert len(asked) == limits.DHT_AGREE
        assert sends(alice.hear(asked[0].to, Found(asked[0].message.id, False, bytes(8), (raw,))), FindRecord) == []
        effects = alice.hear(asked[1].to, Found(asked[1].message.id, False, bytes(8), second))
        if not second:
            more = sends(effects, FindRecord)
            effects = alice.hear(more[0].to, Found(more[0].message.id, False, bytes(8), (raw,)))
        found = [one for one in emitted(effects) if isinstance(one, events.RecordFound)]
        assert [(one.record, one.asked) for one in found] == [(record(BOB), event)]


def test_a_record_of_another_is_told_of_once_it_is_proven_and_our_own_never(alice: Driven):
    raw = sealed(record(BOB), BOB)
    stored = alice.hear(BOBS, Store(4, True, alice.token(), raw))
    assert emitted(stored) == [events.Heard(record(BOB), raw)]
    assert emitted(alice.hear(BOBS, Store(5, True, alice.token(), raw))) == []
    for frame in (sealed(record(ALICE)), sealed(pointer(BOB), BOB)):
        told = emitted(alice.hear(BOBS, Store(6, True, alice.token(), frame)))
        assert [event for event in told if isinstance(event, events.Heard)] == []
    liar = forged(record(MALLORY), MALLORY, BOB)
    assert fault_of(alice.hear, BOBS, Store(8, True, alice.token(), liar)) == "bad-signature"
    assert emitted(alice.hear(BOBS, Ping(9, True))) == []


def test_a_record_that_is_read_on_the_way_is_told_of_too(alice: Driven):
    alice.met()
    raw = sealed(record(MALLORY), MALLORY)
    (asked,) = sends(alice.command(commands.SearchRecord(1, MALLORY.node, "analyst")), FindRecord)
    effects = alice.hear(BOBS, Found(asked.message.id, False, bytes(8), (raw,)))
    assert events.Heard(record(MALLORY), raw) in emitted(effects)


def test_what_ends_while_it_is_searched_for_is_not_found(alice: Driven):
    """One holder answers in time, the other stays silent until the record's time is over."""
    peers = [Contact(bytes([number]) * 32, "127.0.0.1", 4001) for number in (7, 8)]
    for peer in peers:
        alice.met(peer)
    raw = sealed(record(BOB, issued=int(NOW.wall) - 60 - limits.CLOCK_SKEW_S + 1, ttl=60), BOB)
    alice.run(0.95)
    asked = sends(alice.command(commands.SearchRecord(1, BOB.node, "analyst")), FindRecord)
    alice.hear(asked[0].to, Found(asked[0].message.id, False, bytes(8), (raw,)))
    told = [event for _, effect in alice.run(15) for event in emitted([effect])]
    assert [one.record for one in told if isinstance(one, events.RecordFound)] == [None]


def test_what_is_alive_here_leaves_out_what_is_past_its_time(alice: Driven):
    raws = [sealed(record(BOB, agent=f"agent-{ttl}", ttl=ttl), BOB) for ttl in (60, 600)]
    for raw in raws:
        alice.answer(Store(2, True, alice.token(), raw))
    assert [item.raw for item in alice.machine.alive(later(59.9))] == raws
    assert [item.raw for item in alice.machine.alive(later(60))] == raws[1:]

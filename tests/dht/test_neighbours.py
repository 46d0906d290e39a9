"""Neighbours compare directories, and fetch cards, over links."""

from typing import Any

import pytest

from ioa_p2p.dht import commands, events
from ioa_p2p.dht.records import item_of
from ioa_p2p.effects import Send
from ioa_p2p.wire import codec, ids, limits
from ioa_p2p.wire.dht import CardGiven, CardWanted, Digest, Records, Store, Want
from tests.dht.frames import forged, sealed
from tests.dht.mesh import Mesh, card
from tests.dht.test_machine import Driven, emitted, sends
from tests.wire.samples import BOB, fault_of, record

B = BOB.node
STATS = card("stat", "stats.outliers")
STATS_BYTES = codec.encode(STATS)
STATS_HASH = ids.blake(STATS_BYTES)


@pytest.fixture
def alice() -> Driven:
    alice = Driven()
    alice.command(commands.NeighbourUp(B))
    return alice


def of_bob(agent: str, seq: int = 10) -> bytes:
    return sealed(record(BOB, agent=agent, seq=seq, boot=1), BOB)


def digest(*raws: bytes) -> Digest:
    return Digest(tuple((item_of(raw).slot, item_of(raw).body.seq) for raw in raws))


def test_a_new_neighbour_is_sent_what_we_hold():
    alice = Driven()
    own = alice.command(commands.Publish(STATS)) and alice.machine.held
    effects = alice.command(commands.NeighbourUp(B))
    assert effects == [Send(B, Digest(tuple((one.slot, one.body.seq) for one in own)))]
    assert own[0].body.agent == "stat"


def test_what_a_neighbour_has_and_we_lack_is_wanted_and_kept(alice: Driven):
    raws = [of_bob("one"), of_bob("two")]
    effects = alice.hear(B, digest(*raws))
    assert effects == [Send(B, Want(tuple(item_of(raw).slot for raw in raws)))]
    assert sends(alice.hear(B, Records(tuple(raws))), Want) == []
    assert {one.raw for one in alice.machine.held} == set(raws)


def test_what_we_have_as_new_is_not_wanted(alice: Driven):
    raw = of_bob("one", seq=11)
    alice.hear(B, digest(raw))
    alice.hear(B, Records((raw,)))
    assert alice.hear(B, digest(of_bob("one", seq=10), raw)) == []
    assert len(alice.hear(B, digest(of_bob("one", seq=12)))) == 1


def test_a_neighbour_that_hands_over_forged_or_unasked_frames_gains_nothing(alice: Driven):
    fake = forged(record(agent="fake"))
    alice.hear(B, digest(fake))
    alice.hear(B, Records((fake, of_bob("unasked"), b"garbage")))
    assert alice.machine.held == []
    assert alice.machine.faults == {"bad-signature": 1, "unasked-record": 1, "short-frame": 1}


def test_the_rest_is_wanted_again_until_a_neighbour_brings_nothing_new(alice: Driven):
    raws = [of_bob("one"), of_bob("two"), of_bob("three")]
    alice.hear(B, digest(*raws))
    effects = alice.hear(B, Records((raws[1],)))
    assert sends(effects, Want) == [Send(B, Want((item_of(raws[0]).slot, item_of(raws[2]).slot)))]
    assert alice.hear(B, Records(())) == []


def test_as_much_is_handed_over_as_fits_one_answer(alice: Driven, monkeypatch: pytest.MonkeyPatch):
    raws = [of_bob(f"agent-{number}") for number in range(6)]
    alice.hear(B, digest(*raws))
    alice.hear(B, Records(tuple(raws)))
    monkeypatch.setattr(limits, "RECORDS_BYTES_MAX", 3 * len(raws[0]) + 10)
    wanted = tuple(item_of(raw).slot for raw in raws)
    assert alice.hear(B, Want((bytes(20), *wanted))) == [Send(B, Records(tuple(raws[:3])))]


def test_a_newcomer_is_told_of_a_part_and_later_of_more_the_newest_first(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "DIGEST_JOIN_MAX", 2)
    monkeypatch.setattr(limits, "DIGEST_ENTRIES_MAX", 3)
    alice = Driven()
    alice.command(commands.NeighbourUp(B))
    raws = [sealed(record(BOB, agent=f"agent-{number}", issued=1_800_000_000 - number), BOB) for number in range(4)]
    for raw in raws:
        alice.hear(B, digest(raw))
        alice.hear(B, Records((raw,)))
    assert alice.command(commands.NeighbourUp(B)) == [Send(B, digest(*raws[:2]))]
    told = [effect for _, effect in alice.run(1.2 * limits.DHT_REFRESH_S)]
    assert [effect for effect in told if isinstance(effect, Send)] == [Send(B, digest(*raws[:3]))]


def test_who_moved_or_ended_is_told_to_neighbours_at_once_and_what_is_only_newer_is_not(alice: Driven):
    first, renewed = (sealed(record(BOB, seq=seq), BOB) for seq in (10, 11))
    moved = sealed(record(BOB, seq=12, endpoint="127.0.0.1:4002"), BOB)
    gone = sealed(record(BOB, seq=13, endpoint="127.0.0.1:4002", gone=True), BOB)
    told = list[Any]()
    for raw in (first, renewed, moved, gone):
        alice.answer(Store(1, False, alice.token(), raw))
        told.append([effect for _, effect in alice.run(1.0) if isinstance(effect, Send) and effect.to == B])
    assert told == [[], [], [Send(B, digest(moved))], [Send(B, digest(gone))]]


def test_news_wait_for_nothing_that_was_wanted_before(alice: Driven):
    raws = [of_bob("one"), of_bob("two"), of_bob("three")]
    alice.hear(B, digest(*raws[:2]))
    assert alice.hear(B, digest(raws[2])) == [Send(B, Want((item_of(raws[2]).slot,)))]
    for raw in raws:
        alice.hear(B, Records((raw,)))
    assert {one.raw for one in alice.machine.held} == set(raws)


def test_a_neighbour_cannot_have_us_check_frames_without_end(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "DIGEST_BUDGET", (3, 1))
    alice = Driven()
    alice.command(commands.NeighbourUp(B))
    fakes = [forged(record(agent=f"fake-{number}")) for number in range(5)]
    alice.hear(B, digest(*fakes))
    alice.hear(B, Records(tuple(fakes)))
    assert alice.machine.faults == {"bad-signature": 3, "over-budget": 2}


@pytest.mark.parametrize("message", [Digest(()), Want(()), Records(())])
def test_who_has_no_link_here_is_not_compared_with(message):
    assert fault_of(Driven().hear, B, message) == "no-neighbour"


def test_ready_waits_for_one_exchange_when_there_is_a_neighbour():
    mesh = Mesh(5, 2)
    a, b = mesh.contacts
    mesh.join(a, [b])
    mesh.join(b, [a])
    mesh.world.run(1)
    assert mesh.events_of(a, events.Ready) == []
    mesh.link(a, b)
    mesh.world.run(1)
    assert mesh.events_of(a, events.Ready) == [events.Ready(1, True, True)]


def test_a_record_reaches_a_neighbour_without_any_holder_in_between():
    mesh = Mesh(6, 2)
    a, b = mesh.contacts
    mesh.world.command(a, commands.Publish(STATS))
    mesh.link(a, b)
    mesh.world.run(1)
    assert "stat" in {one.body.agent for one in mesh.machine(b).held}


# -- cards


def test_a_card_is_asked_of_its_node_once_and_kept(alice: Driven):
    effects = alice.command(commands.FetchCard(1, B, STATS_HASH))
    assert effects[0] == Send(B, CardWanted(STATS_HASH))
    assert [effect for effect in alice.command(commands.FetchCard(2, B, STATS_HASH)) if isinstance(effect, Send)] == []
    effects = alice.hear(B, CardGiven(STATS_HASH, STATS_BYTES))
    heard = events.CardHeard(STATS_HASH, STATS_BYTES)
    assert emitted(effects) == [heard, events.CardFound(1, STATS), events.CardFound(2, STATS)]
    assert emitted(alice.command(commands.FetchCard(3, B, STATS_HASH))) == [events.CardFound(3, STATS)]


@pytest.mark.parametrize(
    ("given", "code"),
    [
        (CardGiven(STATS_HASH, codec.encode(card("other"))), "wrong-card"),
        (CardGiven(ids.blake(b"x"), b"x"), "unasked-card"),
    ],
)
def test_a_card_that_is_not_what_was_asked_for_is_refused_and_the_true_one_still_counts(alice, given, code: str):
    alice.command(commands.FetchCard(1, B, STATS_HASH))
    assert fault_of(alice.hear, B, given) == code
    heard = events.CardHeard(STATS_HASH, STATS_BYTES)
    assert emitted(alice.hear(B, CardGiven(STATS_HASH, STATS_BYTES))) == [heard, events.CardFound(1, STATS)]


def test_bytes_that_are_no_card_are_refused_whatever_their_hash(alice: Driven):
    junk = b"\xc1 not a card"
    alice.command(commands.FetchCard(1, B, ids.blake(junk)))
    assert fault_of(alice.hear, B, CardGiven(ids.blake(junk), junk)) == "undecodable"


def test_a_card_that_nobody_has_or_that_never_comes_is_not_found(alice: Driven):
    alice.command(commands.FetchCard(1, B, STATS_HASH))
    assert emitted(alice.hear(B, CardGiven(STATS_HASH, b""))) == [events.CardFound(1, None)]
    alice.command(commands.FetchCard(2, B, STATS_HASH))
    assert emitted([effect for _, effect in alice.run(limits.CARD_WAIT_S)]) == [events.CardFound(2, None)]


def test_our_own_cards_are_given_to_who_asks():
    alice = Driven()
    alice.command(commands.Publish(STATS))
    assert alice.hear(B, CardWanted(STATS_HASH)) == [Send(B, CardGiven(STATS_HASH, STATS_BYTES))]
    assert alice.hear(B, CardWanted(bytes(32))) == [Send(B, CardGiven(bytes(32), b""))]


def test_so_many_cards_are_kept_and_the_longest_unused_goes(alice: Driven, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "CARDS_KEPT_MAX", 2)
    encoded = [codec.encode(card(f"agent-{number}")) for number in range(3)]
    for number, one in enumerate(encoded):
        alice.command(commands.FetchCard(number, B, ids.blake(one)))
        alice.hear(B, CardGiven(ids.blake(one), one))
    given = [alice.hear(B, CardWanted(ids.blake(one)))[0].message.card for one in encoded]
    assert given == [b"", encoded[1], encoded[2]]

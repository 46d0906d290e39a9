"""Seeing to copies: who is asked, and who is given what."""

import pytest

from ioa_p2p.dht import commands
from ioa_p2p.dht.records import item_of
from ioa_p2p.effects import Send
from ioa_p2p.wire.dht import Contact, Had, Have, Store
from tests.dht.frames import later, sealed
from tests.dht.mesh import card
from tests.dht.test_machine import Driven
from tests.wire.samples import BOB, record

PEERS = [Contact(bytes([number]) * 32, "127.0.0.1", 4001) for number in (7, 8)]
RAW = sealed(record(BOB), BOB)
TOKEN = b"a token."


@pytest.fixture
def alice() -> Driven:
    """She knows two peers and holds a record of Bob's, which she got from one of them."""
    alice = Driven()
    for peer in PEERS:
        alice.met(peer)
    alice.answer(Store(1, False, alice.token(PEERS[0]), RAW), PEERS[0])
    return alice


def next_check(alice: Driven) -> list[Send]:
    """Every Have of a check made now."""
    alice.machine._keeper.check(alice.now)
    effects = alice.noted(alice.machine._effects())
    return [effect for effect in effects if isinstance(effect, Send) and isinstance(effect.message, Have)]


def stores_after(alice: Driven, haves: list[Send], held: list[bool]) -> list[Send]:
    effects = [
        effect
        for have, has in zip(haves, held, strict=True)
        for effect in alice.hear(have.to, Had(have.message.id, False, TOKEN, bytes([has])))
    ]
    return [effect for effect in effects if isinstance(effect, Send)]


@pytest.mark.parametrize(("held", "given"), [([True, False], 0), ([True, True], 0), ([False, False], 2)])
def test_a_holder_gives_unchanged_bytes_to_who_lacks_them_unless_half_have_them(alice: Driven, held, given: int):
    haves = next_check(alice)
    assert [have.message.hashes for have in haves] == [item_of(RAW).hash[:8]] * 2
    stores = stores_after(alice, haves, held)
    assert [(store.message.token, store.message.frame) for store in stores] == [(TOKEN, RAW)] * given


def test_a_publisher_gives_its_own_to_everybody_who_lacks_it():
    alice = Driven()
    alice.command(commands.Publish(card("stat")))
    own = [item.raw for item in alice.machine.held]
    for peer in PEERS:
        alice.met(peer)
    haves = next_check(alice)
    effects = [
        effect
        for have, answer in zip(haves, [b"\x01" * len(own), b"\x00" * len(own)], strict=True)
        for effect in alice.hear(have.to, Had(have.message.id, False, TOKEN, answer))
    ]
    stores = [effect for effect in effects if isinstance(effect, Send) and isinstance(effect.message, Store)]
    assert {store.to for store in stores} == {haves[1].to}
    assert [store.message.frame for store in stores] == own


def test_what_ends_between_question_and_answer_is_not_passed_on():
    alice = Driven()
    for peer in PEERS:
        alice.met(peer)
    short = sealed(record(BOB, ttl=60), BOB)
    alice.answer(Store(1, False, alice.token(PEERS[0]), short), PEERS[0])
    alice.now = later(59)
    haves = next_check(alice)
    assert len(haves) == 2
    alice.now = later(60)
    assert stores_after(alice, haves, [False, False]) == []

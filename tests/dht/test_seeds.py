"""Seeds come and go: a Join names all there are."""

from ioa_p2p.dht import commands
from ioa_p2p.wire.dht import Ping, Pong
from tests.dht.test_machine import BOBS, HOME, MALLORYS, Driven, sends

HALF_AN_HOUR_S = 1_800


def pinged(alice: Driven, seconds: float) -> set[bytes]:
    """Whom she pings while time passes."""
    return {each.to.key for _, effect in alice.run(seconds) for each in sends([effect], Ping)}


def test_a_seed_that_is_named_no_more_is_let_go_and_the_new_one_is_tried():
    alice = Driven()
    alice.command(commands.Join((BOBS,)))
    alice.run(60)
    alice.command(commands.Join((MALLORYS,)))
    alice.run(60)
    assert pinged(alice, HALF_AN_HOUR_S) == {MALLORYS.key}


def test_a_seed_named_again_at_the_same_place_is_not_asked_anew():
    alice = Driven()
    first = sends(alice.command(commands.Join((BOBS,))), Ping)
    again = sends(alice.command(commands.Join((BOBS, MALLORYS))), Ping)
    assert ([each.to for each in first], [each.to for each in again]) == ([BOBS], [MALLORYS])


def test_a_seed_that_moved_is_tried_at_its_new_place():
    alice = Driven()
    alice.command(commands.Join((BOBS,)))
    moved = BOBS._replace(port=4002)
    assert [each.to for each in sends(alice.command(commands.Join((moved,))), Ping)] == [moved]


def test_it_is_known_which_seeds_answer():
    alice = Driven()
    ping = sends(alice.command(commands.Join((BOBS, MALLORYS))), Ping)[0].message
    assert alice.machine.seeds_heard == set()
    alice.hear(BOBS, Pong(ping.id, False, bytes(8), HOME))
    assert alice.machine.seeds_heard == {BOBS.key}

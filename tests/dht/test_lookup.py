"""The shortlist alone: whom it asks, what it waits for, when it stops."""

import random

from hypothesis import given
from hypothesis import strategies as st

from ioa_p2p.dht import space
from ioa_p2p.dht.lookup import Lookup
from ioa_p2p.wire import ids, limits
from ioa_p2p.wire.dht import Contact

TARGET = random.Random(7).getrandbits(160)


def contacts(count: int) -> list[Contact]:
    """Nearest to TARGET first."""
    made = [Contact(ids.blake(b"peer %d" % number), "127.0.0.1", 1 + number) for number in range(count)]
    return sorted(made, key=lambda contact: space.position(contact.key) ^ TARGET)


def lookup(known: list[Contact], k: int = 3, alpha: int = 2, **options) -> Lookup:
    made = Lookup(TARGET, k=k, alpha=alpha, **options)
    for contact in random.Random(1).sample(known, len(known)):
        made.learn(contact)
    return made


def asked(made: Lookup) -> list[Contact]:
    """All it would ask now."""
    return list(iter(made.next, None))


def test_it_asks_the_nearest_first_alpha_at_once():
    near = contacts(5)
    made = lookup(near)
    assert asked(made) == near[:2]
    made.answered(near[1].key)
    assert asked(made) == [near[2]]


def test_it_is_done_when_the_k_nearest_have_answered_and_asks_no_more():
    near = contacts(5)
    made = lookup(near, alpha=9)
    assert asked(made) == near[:3]
    for contact in near[:3]:
        assert not made.done
        made.answered(contact.key)
    assert made.done
    assert made.closest() == near[:3]


def test_a_nearer_one_heard_of_late_is_asked_too():
    near = contacts(5)
    made = lookup(near[1:], alpha=9)
    asked(made)
    for contact in near[1:4]:
        made.answered(contact.key)
    made.learn(near[0])
    assert not made.done
    assert asked(made) == near[:1]


def test_a_slow_peer_frees_its_place_and_is_not_waited_for():
    near = contacts(5)
    made = lookup(near)
    asked(made)
    made.slow(near[0].key)
    assert asked(made) == [near[2]]
    made.answered(near[1].key)
    assert asked(made) == [near[3]]
    made.answered(near[2].key)
    made.answered(near[3].key)
    assert asked(made) == []
    assert made.done
    assert made.closest() == near[1:4]


def test_a_late_answer_of_a_slow_peer_still_counts():
    near = contacts(5)
    made = lookup(near)
    asked(made)
    made.slow(near[0].key)
    made.answered(near[0].key)
    made.answered(near[1].key)
    assert made.closest() == near[:2]
    assert asked(made) == [near[2]]


def test_a_lost_peer_is_replaced_by_the_next_nearest():
    near = contacts(4)
    made = lookup(near, alpha=9)
    asked(made)
    made.lost(near[0].key)
    assert asked(made) == [near[3]]


def test_a_lost_peer_heard_of_at_another_endpoint_is_tried_there():
    """Public failure 10: an old address must not hide the one that works."""
    near = contacts(2)
    made = lookup(near, alpha=9)
    asked(made)
    made.lost(near[0].key)
    moved = near[0]._replace(port=9_999)
    assert made.wants(near[0].key)
    made.learn(moved)
    assert asked(made) == [moved]


def test_while_all_hope_is_on_the_slow_it_is_not_done():
    near = contacts(2)
    made = lookup(near)
    asked(made)
    for contact in near:
        made.slow(contact.key)
    assert not made.done
    made.lost(near[0].key)
    made.answered(near[1].key)
    assert made.done


def test_suspects_are_asked_only_when_nobody_else_answers():
    near = contacts(3)
    made = Lookup(TARGET, k=3, alpha=1)
    made.learn(near[0], suspect=True)
    made.learn(near[1])
    assert asked(made) == [near[1]]
    made.lost(near[1].key)
    assert asked(made) == [near[0]]


def test_it_stops_after_so_many_requests():
    near = contacts(50)
    made = lookup(near, k=20, alpha=3, calls_max=5)
    while contact := made.next():
        made.lost(contact.key)
    assert made.calls == 5
    assert made.done


def test_lookups_that_share_what_was_asked_never_ask_a_peer_twice():
    """The seam for disjoint paths."""
    near = contacts(6)
    shared: set[bytes] = set()
    one = lookup(near, alpha=9, asked=shared)
    other = lookup(near, alpha=9, asked=shared)
    assert asked(one) == near[:3]
    assert asked(other) == near[3:6]


@given(st.integers(0, 2**32 - 1))
def test_over_a_random_mesh_with_silent_peers_it_finds_the_nearest_that_answer(seed: int):
    """The property that puts rest on: k nearest live ones, whoever is silent and whatever order answers come in."""
    dice = random.Random(seed)
    everyone = contacts(60)
    silent = set(dice.sample(everyone, 15))
    knows = {contact: dice.sample(everyone, 30) for contact in everyone}
    made = Lookup(TARGET, k=8, alpha=3)
    for contact in dice.sample(everyone, 3):
        made.learn(contact)
    live = [contact for contact in everyone if contact not in silent]
    made.learn(dice.choice(live))
    under_way: list[Contact] = []
    while not made.done:
        under_way += asked(made)
        contact = under_way.pop(dice.randrange(len(under_way)))
        if contact in silent:
            made.lost(contact.key)
        else:
            made.answered(contact.key)
            for known in knows[contact]:
                made.learn(known)
    assert len(made._order) <= limits.DHT_SHORTLIST
    heard = {known for contact in made.closest() for known in knows[contact]} - silent
    assert made.closest() == sorted(heard | set(made.closest()), key=near_first)[:8]


def near_first(contact: Contact) -> int:
    return space.position(contact.key) ^ TARGET

"""A lookup alone: whom it asks, on which path, what it waits for, when it stops."""

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


def lookup(known: list[Contact], k: int = 3, alpha: int = 2, paths: int = 1, **options) -> Lookup:
    made = Lookup(TARGET, paths, k=k, alpha=alpha, **options)
    made.start(random.Random(1).sample(known, len(known)))
    return made


def asked(made: Lookup) -> list[Contact]:
    """All it would ask now."""
    return list(iter(made.next, None))


def test_it_asks_the_nearest_first_alpha_at_once():
    near = contacts(5)
    made = lookup(near)
    assert asked(made) == near[:2]
    made.answered(near[1])
    assert asked(made) == [near[2]]


def test_it_is_done_when_the_k_nearest_have_answered_and_asks_no_more():
    near = contacts(5)
    made = lookup(near, alpha=9)
    assert asked(made) == near[:3]
    for contact in near[:3]:
        assert not made.done
        made.answered(contact)
    assert made.done
    assert made.closest() == near[:3]


def test_a_nearer_one_heard_of_late_is_asked_too():
    near = contacts(5)
    made = lookup(near[1:], alpha=9)
    asked(made)
    for contact in near[1:4]:
        made.answered(contact)
    made.path(0).learn(near[0])
    assert not made.done
    assert asked(made) == near[:1]


def test_a_slow_peer_frees_its_place_and_is_not_waited_for():
    near = contacts(5)
    made = lookup(near)
    asked(made)
    made.slow(near[0])
    assert asked(made) == [near[2]]
    made.answered(near[1])
    assert asked(made) == [near[3]]
    made.answered(near[2])
    made.answered(near[3])
    assert asked(made) == []
    assert made.done
    assert made.closest() == near[1:4]


def test_a_late_answer_of_a_slow_peer_still_counts():
    near = contacts(5)
    made = lookup(near)
    asked(made)
    made.slow(near[0])
    made.answered(near[0])
    made.answered(near[1])
    assert made.closest() == near[:2]
    assert asked(made) == [near[2]]


def test_a_lost_peer_is_replaced_by_the_next_nearest():
    near = contacts(4)
    made = lookup(near, alpha=9)
    asked(made)
    made.lost(near[0])
    assert asked(made) == [near[3]]


def test_a_lost_peer_heard_of_at_another_endpoint_is_tried_there():
    """Public failure 10: an old address must not hide the one that works."""
    near = contacts(2)
    made = lookup(near, alpha=9)
    asked(made)
    made.lost(near[0])
    moved = near[0]._replace(port=9_999)
    assert made.path(0).wants(near[0].key)
    made.path(0).learn(moved)
    assert asked(made) == [moved]


def test_while_all_hope_is_on_the_slow_it_is_not_done():
    near = contacts(2)
    made = lookup(near)
    asked(made)
    for contact in near:
        made.slow(contact)
    assert not made.done
    made.lost(near[0])
    made.answered(near[1])
    assert made.done


def test_suspects_are_asked_only_when_nobody_else_answers():
    near = contacts(3)
    made = lookup(near[:2], alpha=1)
    made.suspect(near[0])
    assert asked(made) == [near[1]]
    made.lost(near[1])
    assert asked(made) == [near[0]]


def test_it_stops_after_so_many_requests():
    near = contacts(50)
    made = lookup(near, k=20, alpha=3, calls_max=5)
    while contact := made.next():
        made.lost(contact)
    assert made.calls == 5
    assert made.done


@given(st.integers(0, 2**32 - 1))
def test_over_a_random_mesh_with_silent_peers_it_finds_the_nearest_that_answer(seed: int):
    """The property that puts rest on: k nearest live ones, whoever is silent and whatever order answers come in."""
    dice = random.Random(seed)
    everyone = contacts(60)
    silent = set(dice.sample(everyone, 15))
    knows = {contact: dice.sample(everyone, 30) for contact in everyone}
    live = [contact for contact in everyone if contact not in silent]
    made = lookup([*dice.sample(everyone, 3), dice.choice(live)], k=8, alpha=3, paths=dice.choice((1, 2, 4, 8)))
    walk(made, dice, knows, silent)
    heard = {known for contact in made.closest() for known in knows[contact]} - silent
    assert made.closest() == sorted(heard | set(made.closest()), key=near_first)[:8]


# -- disjoint paths


@given(st.integers(0, 2**32 - 1), st.sampled_from((2, 4, 8)))
def test_a_node_serves_one_path_and_is_asked_once(seed: int, paths: int):
    dice = random.Random(seed)
    everyone = contacts(60)
    knows = {contact: dice.sample(everyone, 20) for contact in everyone}
    made = lookup(dice.sample(everyone, 10), k=8, alpha=3, paths=paths)
    asked_once = walk(made, dice, knows, set(dice.sample(everyone, 15)))
    assert len(asked_once) == len({contact.key for contact in asked_once}) == made.calls
    assert {made.path_of(contact) for contact in asked_once} == set(range(paths))


@given(st.integers(0, 2**32 - 1))
def test_what_one_path_was_told_no_other_path_asks(seed: int):
    """On path 0 everybody names but nodes that a liar made up, nearer than all, and they answer: no other path asks
    one of them, or is kept by them from asking."""
    dice = random.Random(seed)
    everyone = contacts(200)
    made_up, honest = everyone[:100], everyone[100:]
    knows = {contact: dice.sample(honest, 20) for contact in honest}
    made = lookup(dice.sample(honest, 10), k=8, paths=4, alpha=4)
    for contact in made_up:
        made.path(0).learn(contact)
        knows[contact] = made_up
    asked = walk(made, dice, knows, set(), names=lambda contact: contact in made_up or made.path_of(contact) != 0)
    assert {made.path_of(contact) for contact in asked if contact in made_up} == {0}
    assert sum(contact in honest for contact in asked) >= 8


def test_paths_start_with_different_nodes_the_nearest_first():
    near = contacts(6)
    made = lookup(near, k=6, paths=4)
    assert asked(made) == near[:4]
    assert [made.path_of(contact) for contact in near[:4]] == [0, 1, 2, 3]


def test_a_starved_path_claims_what_is_left_of_the_pool():
    near = contacts(6)
    made = lookup(near, k=6, paths=2)
    asked(made)
    made.lost(near[0])
    assert asked(made) == [near[2]]
    assert made.path_of(near[2]) == 0


def test_a_pool_that_is_asked_to_the_end_is_asked_side_by_side():
    near = contacts(12)
    made = lookup(near[:2], k=2, paths=2)
    for contact in asked(made):
        made.answered(contact)
    assert made.done
    made.widen(near)
    assert asked(made) == near[2 : 2 + 2 * limits.DHT_ALPHA]


def test_a_path_does_not_wait_for_another():
    near = contacts(6)
    made = lookup(near, k=6, paths=2)
    asked(made)
    for contact in near[1:5]:
        made.answered(contact)
        asked(made)
    assert [made.path_of(contact) for contact in near[1:6]] == [1] * 5


def test_a_node_named_at_a_made_up_endpoint_is_asked_at_the_real_one_by_another_path():
    near = contacts(4)
    made_up = near[0]._replace(port=9_999)
    made = lookup(near[2:], k=3, paths=2)
    asked(made)
    made.path(0).learn(made_up)
    made.path(1).learn(near[0])
    made.answered(near[2])
    assert asked(made) == [made_up]
    made.answered(near[3])
    made.slow(made_up)
    assert near[0] in asked(made)
    made.answered(near[0])
    made.lost(made_up)
    assert made.closest()[0] == near[0]


def test_a_path_led_astray_leaves_the_others_their_share_of_requests():
    """A liar that answers at once and always names nearer ones gets twice a path's share, while honest ones take
    their time."""
    everyone = contacts(100)
    made_up, honest = everyone[:60], everyone[60:]
    made = lookup(honest, k=20, paths=8, calls_max=24)
    asked(made)
    made.answered(honest[0])
    for contact in made_up:
        made.path(0).learn(contact)
    while (contact := made.next()) is not None:
        made.answered(contact)
    assert sum(made.path_of(contact) == 0 for contact in everyone) == 6


def test_at_most_three_of_one_subnet_are_asked():
    everyone = contacts(20)
    near = [contact._replace(host=f"93.184.216.{number + 1}") for number, contact in enumerate(everyone[:10])]
    far = everyone[10:]
    made = lookup(near + far, k=8, paths=4)
    walk(made, random.Random(1), {contact: [] for contact in near + far}, set())
    assert [contact for contact in made.closest() if contact in near] == near[:3]
    assert [contact for contact in made.closest() if contact in far] == far[:5]


# -- regions


def test_a_crowd_close_to_the_key_does_not_push_the_others_out():
    near = contacts(40)
    radius = near_first(near[29])
    made = lookup(near, k=3, paths=4, radius=radius)
    walk(made, random.Random(1), {contact: [] for contact in near}, set())
    assert made.closest() == near[:30]


def test_where_nobody_crowds_the_k_nearest_are_enough():
    near = contacts(40)
    made = lookup(near, k=3, paths=4, radius=near_first(near[2]) + 1)
    walk(made, random.Random(1), {contact: [] for contact in near}, set())
    assert made.closest() == near[:3]
    assert made.calls == 3


def test_a_region_has_its_bound():
    near = contacts(110)
    made = lookup(near, k=3, paths=4, radius=1 << 160)
    walk(made, random.Random(1), {contact: [] for contact in near}, set())
    assert made.closest() == near[: limits.DHT_REGION_MAX]


def walk(made: Lookup, dice: random.Random, knows: dict, silent: set[Contact], names=lambda contact: True):
    """Carry it out; answers come in any order. names(contact): whether its answer names anybody. Who was asked."""
    under_way: list[Contact] = []
    everyone: list[Contact] = []
    while not made.done:
        fresh = asked(made)
        everyone += fresh
        under_way += fresh
        contact = under_way.pop(dice.randrange(len(under_way)))
        path = made.path_of(contact)
        assert path is not None
        if contact in silent:
            made.lost(contact)
            continue
        made.answered(contact)
        for known in knows[contact] if names(contact) else ():
            made.path(path).learn(known)
    return everyone


def near_first(contact: Contact) -> int:
    return space.position(contact.key) ^ TARGET

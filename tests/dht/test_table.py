"""The routing table: who gets in, who is handed out, who leaves."""

import itertools
import random

import pytest

from ioa_p2p.dht import space
from ioa_p2p.dht.table import Table
from ioa_p2p.wire import ids, limits
from ioa_p2p.wire.dht import Contact

OWN = space.position(b"own" + bytes(29))


def contact(number: int, host: str = "127.0.0.1") -> Contact:
    return Contact(ids.blake(b"peer %d" % number), host, 1_000 + number)


def place(number: int) -> int:
    return space.position(contact(number).key)


def filled(count: int, k: int = limits.DHT_K) -> Table:
    table = Table(OWN, k)
    for number in range(count):
        table.enter(contact(number), 0.0)
    return table


def in_top_bucket(count: int, start: int = 0) -> list[int]:
    """Numbers of peers in the half of the space that is not ours."""
    numbers = (number for number in range(start, 10_000) if (place(number) ^ OWN) >> 159)
    return [next(numbers) for _ in range(count)]


def test_the_closest_are_exactly_the_closest_of_all_in_the_table():
    """kademlia's own find_neighbors misses the true closest in half of such tries."""
    table, dice = filled(300), random.Random(1)
    everyone = [entry.long_id for entry in table]
    for _ in range(300):
        target = dice.getrandbits(160)
        found = [entry.long_id for entry in table.closest(target, 20)]
        assert found == sorted(everyone, key=lambda one: one ^ target)[:20]


def test_a_full_bucket_takes_no_more_and_keeps_the_old():
    table = Table(OWN, 3)
    first, last = in_top_bucket(3), in_top_bucket(1, 5_000)[0]
    assert [table.enter(contact(number), 0.0) for number in first] == [True] * 3
    assert not table.has_room_for(place(last))
    assert not table.enter(contact(last), 1.0)
    assert {entry.long_id for entry in table} == {place(number) for number in first}


def test_a_first_miss_leaves_it_out_and_a_waiting_replacement_takes_its_place():
    table = Table(OWN, 3)
    *first, waiting = in_top_bucket(4)
    for number in (*first, waiting):
        table.enter(contact(number), 0.0)
    table.missed(place(first[0]))
    assert {entry.long_id for entry in table} == {place(number) for number in (*first[1:], waiting)}


def test_without_a_replacement_it_stays_until_the_third_miss_and_is_handed_to_nobody():
    table = filled(5)
    gone = place(0)
    for _ in range(2):
        table.missed(gone)
        assert table.get(gone) is not None
        assert gone not in [entry.long_id for entry in table.closest(gone, 5)]
        assert table.good == 4
    table.missed(gone)
    assert table.get(gone) is None


def test_who_is_not_to_blame_is_kept_out_of_answers_and_stays_in_the_table():
    """Our own outage: for all we know everybody is still there."""
    table = filled(5)
    for _ in range(2 * limits.DHT_MISSES_MAX):
        table.missed(place(0), blamed=False)
    assert table.get(place(0)) is not None
    assert table.good == 4
    table.missed(place(0))
    assert table.get(place(0)) is not None


def test_nobody_takes_the_place_of_one_that_is_not_to_blame():
    table = Table(OWN, 3)
    *first, waiting = in_top_bucket(4)
    for number in (*first, waiting):
        table.enter(contact(number), 0.0)
    table.missed(place(first[0]), blamed=False)
    assert {entry.long_id for entry in table} == {place(number) for number in first}


def test_an_answer_clears_its_misses():
    table = filled(5)
    table.missed(place(0))
    assert not table.enter(contact(0), 9.0)
    assert table.closest(place(0), 1)[0].contact == contact(0)
    assert table.good == 5


def test_a_proven_newcomer_takes_the_place_of_one_that_missed():
    table = Table(OWN, 3)
    *first, late = in_top_bucket(4)
    for number in first:
        table.enter(contact(number), 0.0)
    table.missed(place(first[1]))
    assert table.has_room_for(place(late))
    assert table.enter(contact(late), 1.0)
    assert place(first[1]) not in {entry.long_id for entry in table}


def test_a_peer_at_a_new_endpoint_has_one_entry_the_new_one():
    table = filled(3)
    moved = contact(0)._replace(port=9)
    assert not table.enter(moved, 1.0)
    assert [entry.contact for entry in table if entry.contact.key == moved.key] == [moved]
    assert len(table) == 3


def test_we_are_not_in_our_own_table():
    table = Table(space.position(contact(1).key))
    assert not table.has_room_for(place(1))
    assert not table.enter(contact(1), 0.0)
    assert len(table) == 0


def test_at_most_two_of_a_subnet_in_a_bucket_and_three_in_the_table():
    table = Table(OWN)
    hosts = (f"93.184.216.{number % 250 + 1}" for number in range(400))
    for number, host in enumerate(hosts):
        table.enter(contact(number, host), 0.0)
    assert len(table) == limits.DHT_SUBNET_TABLE_MAX
    top = [entry for entry in table if (entry.long_id ^ OWN) >> 159]
    assert len(top) <= limits.DHT_SUBNET_BUCKET_MAX


def test_the_caps_of_a_subnet_count_what_is_in_now():
    table = Table(OWN)
    numbers = in_top_bucket(3)
    for number in numbers[:2]:
        table.enter(contact(number, "93.184.216.1"), 0.0)
    assert not table.enter(contact(numbers[2], "93.184.216.2"), 0.0)
    table.remove(place(numbers[0]))
    assert table.enter(contact(numbers[2], "93.184.216.2"), 0.0)


def test_a_replacement_that_would_break_the_caps_goes_on_waiting():
    """All three wait; by the time there is a place, two of the newest one's subnet are in."""
    table = Table(OWN, 3)
    first, second, third, other, same = in_top_bucket(5)
    table.enter(contact(first, "93.184.216.1"), 0.0)
    table.enter(contact(second), 0.0)
    table.enter(contact(third), 0.0)
    table.enter(contact(other), 0.0)
    table.enter(contact(same, "93.184.216.2"), 0.0)
    table.missed(place(second))
    assert place(same) in {entry.long_id for entry in table}
    table.missed(place(third))
    assert place(other) in {entry.long_id for entry in table}


@pytest.mark.parametrize("host", ["127.0.0.1", "10.1.2.3", "192.168.1.7", "::1", "fe80::1"])
def test_loopback_and_private_addresses_are_exempt(host: str):
    table = Table(OWN)
    for number in range(10):
        table.enter(contact(number, host), 0.0)
    assert len(table) == 10


def test_three_hundred_peers_that_join_and_vanish_do_not_shut_out_the_next():
    """Public failure 11. Replacements that waited are as dead as those they replace."""
    table = filled(300)
    while table.good:
        for entry in list(table):
            table.missed(entry.long_id)
    assert table.enter(contact(301), 10.0)
    assert [entry.contact for entry in table.closest(place(301), 20)] == [contact(301)]


def test_rank_counts_who_is_nearer_than_we():
    table = filled(50)
    assert table.rank(OWN) == 0
    far = OWN ^ ((1 << 160) - 1)
    assert table.rank(far) == len(table)


def test_near_a_crowd_others_are_named_too():
    """Ids made to be the closest to a place crowd around it: whoever asks hears of half as many, and of others."""
    table = filled(500)
    target = OWN ^ (table.reach >> 1)
    assert table.around(target, 8) == table.closest(target, 8)
    tried = (Contact(ids.blake(b"crowd %d" % number), "127.0.0.1", 1) for number in itertools.count())
    crowd = set(itertools.islice((one for one in tried if space.position(one.key) ^ target < table.reach >> 5), 8))
    for one in crowd:
        table.enter(one, 0.0)
    assert {entry.contact for entry in table.closest(target, 8)} == crowd
    named = [entry.contact for entry in table.around(target, 8)]
    assert set(named[:4]) <= crowd
    assert len(set(named)) == 8
    assert len(set(named) - crowd) >= 2

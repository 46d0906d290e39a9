"""What a holder keeps, for how long, and what it does when it is full."""

import random
from collections import Counter

import pytest

from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.dht.store import Item, Store
from ioa_p2p.effects import Now
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.dht import Verdict
from tests.dht.frames import NOW, WALL, item, later
from tests.wire.samples import ALICE, pointer, record

SOURCE, OTHER = b"192.0.2", b"198.51.100"
TTL = 600


class Kept(Store):
    """A store that lists its clone alarms."""

    def __init__(self) -> None:
        self.clones: list[Item] = []
        super().__init__(self.clones.append, random.Random(1))


def owner(number: int) -> NodeKey:
    return NodeKey(bytes([number]) * 32)


@pytest.fixture
def store() -> Kept:
    return Kept()


def one(seq: int = 10, **changes) -> Item:
    return item(record(seq=seq, **{"ttl": TTL, **changes}))


def test_the_newest_seq_wins_whatever_comes_first(store: Kept):
    old, new = one(10), one(11)
    assert store.put(NOW, new, SOURCE) is Verdict.KEPT
    assert store.put(NOW, old, SOURCE) is Verdict.OLDER
    assert store.get(NOW, old.slot).item is new
    newer = one(12)
    assert store.put(NOW, newer, SOURCE) is Verdict.KEPT
    assert [held.item for held in store] == [newer]


def test_of_two_frames_with_one_seq_all_holders_serve_the_lower_hash_and_raise_the_alarm():
    twins = [one(10), one(10, endpoint="127.0.0.1:2")]
    lower = min(twins, key=lambda twin: twin.hash)
    for order in (twins, twins[::-1]):
        store = Kept()
        for twin in order:
            store.put(NOW, twin, SOURCE)
        assert store.get(NOW, lower.slot).item.hash == lower.hash
        assert len(store.clones) == 1


def test_putting_the_same_bytes_again_is_known_and_no_clone(store: Kept):
    store.put(NOW, one(), SOURCE)
    assert store.put(later(1), one(), OTHER) is Verdict.KNOWN
    assert store.clones == []


def test_an_item_is_kept_for_its_ttl_from_when_it_was_first_seen(store: Kept):
    kept = one(issued=WALL)
    store.put(NOW, kept, SOURCE)
    assert store.get(later(TTL - 0.001), kept.slot) is not None
    assert store.get(later(TTL), kept.slot) is None


def test_putting_the_same_bytes_again_never_extends_it(store: Kept):
    kept = one()
    for second in range(0, TTL, 60):
        store.put(later(second), kept, SOURCE)
    assert store.get(later(TTL), kept.slot) is None


def test_no_item_is_kept_past_issue_and_ttl_and_skew(store: Kept):
    kept = one(issued=WALL - 600, ttl=TTL)
    store.put(NOW, kept, SOURCE)
    assert store.get(later(599), kept.slot) is not None
    assert store.get(later(600), kept.slot) is None
    assert store.put(later(600), kept, SOURCE) is Verdict.OLDER


def test_a_jump_of_the_wall_clock_frees_nothing(store: Kept):
    kept = one()
    store.put(NOW, kept, SOURCE)
    assert store.get(Now(NOW.wall + 1e6, NOW.boot + 1), kept.slot) is not None


def test_time_asleep_counts(store: Kept):
    """Public failure 19: boot time runs on in suspend."""
    kept = one(ttl=60)
    store.put(NOW, kept, SOURCE)
    assert store.get(Now(NOW.wall, NOW.boot + 3_600), kept.slot) is None


def test_gone_replaces_what_it_withdraws_and_outlives_it(store: Kept):
    store.put(NOW, one(10), SOURCE)
    gone = one(11, gone=True, ttl=TTL + limits.GONE_EXTRA_TTL_S)
    store.put(NOW, gone, SOURCE)
    assert store.get(later(TTL + 1), gone.slot).item.body.gone


def test_expired_items_never_stand_in_the_way_of_new_ones(store: Kept, monkeypatch: pytest.MonkeyPatch):
    """Public failure 6."""
    monkeypatch.setattr(limits, "STORE_ITEMS_MAX", 50)
    for number in range(50):
        assert store.put(NOW, one(agent=f"old-{number}", ttl=60), b"%d" % number) is Verdict.KEPT
    assert store.put(later(59), one(agent="new", issued=WALL), SOURCE) is Verdict.FULL
    for number in range(50):
        assert store.put(later(60), one(agent=f"new-{number}"), b"%d" % number) is Verdict.KEPT
    assert len(store) == 50


def renewed(old: Item, **changes) -> Item:
    """The same slot's item with some fields changed, signed by its owner."""
    keys = {key.node: key for key in (ALICE, *map(owner, range(1, 8)))}
    return item(codec.replace(old.body, **changes), keys[old.body.node])


def test_one_holder_has_room_for_all_that_one_node_may_publish():
    assert limits.AGENTS_MAX * (1 + limits.INDEX_KEYS_MAX) <= limits.STORE_NODE_ITEMS_MAX


QUOTAS = pytest.mark.parametrize(
    ("limit", "value", "make"),
    [
        (
            "STORE_ITEMS_MAX",
            3,
            lambda number: item(record(NodeKey(bytes([number]) * 32)), NodeKey(bytes([number]) * 32)),
        ),
        ("STORE_BYTES_MAX", 3 * len(one().raw) + 10, lambda number: one(agent=f"agent-{number}"[:7])),
        ("STORE_NODE_ITEMS_MAX", 3, lambda number: one(agent=f"agent-{number}")),
        ("STORE_SUBNET_ITEMS_MAX", 3, lambda number: one(agent=f"agent-{number}")),
    ],
)


@QUOTAS
def test_each_quota_is_free_again_when_what_filled_it_has_expired(store: Kept, monkeypatch, limit, value, make):
    """Public failure 6, for every count there is."""
    monkeypatch.setattr(limits, limit, value)
    assert [store.put(NOW, make(number), SOURCE) for number in range(1, 5)] == [Verdict.KEPT] * 3 + [Verdict.FULL]
    expired = later(make(1).body.ttl)
    fresh = [renewed(make(number), issued=WALL + make(1).body.ttl) for number in range(4, 7)]
    assert [store.put(expired, one, SOURCE) for one in fresh] == [Verdict.KEPT] * 3


@QUOTAS
def test_each_quota_holds_and_a_newer_version_still_replaces(store: Kept, monkeypatch, limit, value, make):
    """Public failure 2: what a holder keeps is bounded in count, size and per owner."""
    monkeypatch.setattr(limits, limit, value)
    verdicts = [store.put(NOW, make(number), SOURCE) for number in range(1, 8)]
    assert verdicts == [Verdict.KEPT] * 3 + [Verdict.FULL] * 4
    first = make(1)
    assert store.put(NOW, renewed(first, seq=first.body.seq + 1), SOURCE) is Verdict.KEPT
    assert len(store) == 3


def test_a_full_subnet_does_not_shut_out_another(store: Kept, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "STORE_SUBNET_ITEMS_MAX", 1)
    assert store.put(NOW, one(agent="a"), SOURCE) is Verdict.KEPT
    assert store.put(NOW, one(agent="b"), SOURCE) is Verdict.FULL
    assert store.put(NOW, one(agent="b"), OTHER) is Verdict.KEPT


def test_a_frame_is_known_by_the_first_bytes_of_its_hash(store: Kept):
    kept = one()
    store.put(NOW, kept, SOURCE)
    assert store.known(NOW, kept.hash[:8]).item is kept
    assert store.known(NOW, bytes(8)) is None
    assert store.known(later(TTL), kept.hash) is None


def test_twenty_subnets_that_take_all_they_get_leave_room_for_the_next(store: Kept, monkeypatch: pytest.MonkeyPatch):
    """And what is held can still be renewed."""
    monkeypatch.setattr(limits, "STORE_ITEMS_MAX", 400)
    monkeypatch.setattr(limits, "STORE_SUBNET_ITEMS_MAX", 50)
    for subnet in range(20):
        for number in range(50):
            store.put(NOW, one(agent=f"a{subnet}-{number}"), b"%d" % subnet)
    assert 300 < len(store) < 380
    assert store.put(NOW, one(agent="late"), b"late") is Verdict.KEPT
    for held in list(store):
        newer = renewed(held.item, seq=held.item.body.seq + 1)
        assert store.put(NOW, newer, held.source) is Verdict.KEPT


def crowd(sources: int, each: int) -> list[tuple[Item, bytes]]:
    """Pointers under one key, each source's own."""
    keys = {number: owner(number + 1) for number in range(sources)}
    return [
        (item(pointer(key, agent=f"agent-{agent}"), key), b"source-%d" % number)
        for number, key in keys.items()
        for agent in range(each)
    ]


def test_a_crowded_key_says_so_and_keeps_its_bound_and_a_share_for_each_source(store: Kept, monkeypatch):
    monkeypatch.setattr(limits, "STORE_KEY_ITEMS_MAX", 12)
    offers = crowd(6, 5)
    verdicts = [store.put(NOW, one, source) for one, source in offers]
    key = offers[0][0].key
    held = list(store.under(NOW, key))
    assert len(held) == len(store) == 12
    assert Counter(one.source for one in held) == {b"source-%d" % number: 2 for number in range(6)}
    assert store.crowded(key)
    assert not store.crowded(bytes(20))
    assert set(verdicts) == {Verdict.KEPT, Verdict.FULL}


def test_who_is_refused_by_a_crowded_key_is_not_held(store: Kept, monkeypatch):
    monkeypatch.setattr(limits, "STORE_KEY_ITEMS_MAX", 3)
    for one, source in crowd(1, 20):
        verdict = store.put(NOW, one, source)
        assert (store.get(NOW, one.slot) is not None) == (verdict is Verdict.KEPT)


def test_a_crowded_key_takes_a_newer_version_of_what_it_holds(store: Kept, monkeypatch):
    monkeypatch.setattr(limits, "STORE_KEY_ITEMS_MAX", 12)
    offers = crowd(6, 5)
    for one, source in offers:
        store.put(NOW, one, source)
    held = list(store.under(NOW, offers[0][0].key))
    for one in held:
        assert store.put(NOW, renewed(one.item, seq=one.item.body.seq + 1), one.source) is Verdict.KEPT
    assert {one.item.slot for one in store.under(NOW, held[0].item.key)} == {one.item.slot for one in held}


def test_in_a_crowded_key_what_expired_makes_room_before_anybody_is_weighed(store: Kept, monkeypatch):
    """Public failure 6, for a key."""
    monkeypatch.setattr(limits, "STORE_KEY_ITEMS_MAX", 12)
    offers = crowd(6, 5)
    for one, source in offers:
        store.put(NOW, one, source)
    expired = later(offers[0][0].body.ttl)
    fresh = [(renewed(one, issued=WALL + one.body.ttl), source) for one, source in offers[-12:]]
    assert [store.put(expired, one, source) for one, source in fresh] == [Verdict.KEPT] * 12


def test_a_pointer_passed_on_by_a_stranger_counts_as_its_publishers_when_that_one_comes(store: Kept, monkeypatch):
    """Or Mallory, who puts what others published, could have it pushed out as a part of her share."""
    monkeypatch.setattr(limits, "STORE_KEY_ITEMS_MAX", 3)
    (replayed, home), *others = crowd(4, 1)
    store.put(NOW, replayed, b"mallory")
    store.move(store.get(NOW, replayed.slot), home)
    for one, _ in crowd(1, 6)[1:]:
        store.put(NOW, one, b"mallory")
    for one, source in others[:1]:
        store.put(NOW, one, source)
    assert store.get(NOW, replayed.slot).source == home
    assert sum(held.source == b"mallory" for held in store) == 1


def test_two_holders_keep_different_samples_and_nobody_can_foresee_which(monkeypatch):
    monkeypatch.setattr(limits, "STORE_KEY_ITEMS_MAX", 10)
    kept = []
    for seed in (1, 2):
        store = Store(lambda item: None, random.Random(seed))
        for one, source in crowd(40, 1):
            store.put(NOW, one, source)
        kept.append({held.item.slot for held in store})
    assert len(kept[0] & kept[1]) < 8

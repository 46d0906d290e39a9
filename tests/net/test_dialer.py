"""Whom to dial and when."""

import random

import pytest

from ioa_p2p.net.dialer import Dialer
from ioa_p2p.wire import limits

PEER = b"p" * 32


@pytest.fixture
def dialer() -> Dialer:
    return Dialer(random.Random(1))


def _next_due(dialer: Dialer, now: float) -> float:
    """When the next dial is due; looks far enough."""
    while not dialer.due(now):
        now += 0.01
    return now


def test_a_wanted_peer_is_due_at_once_and_only_once(dialer: Dialer) -> None:
    dialer.connect(5.0, PEER, ["here"])
    assert dialer.due(5.0) == [(PEER, ("here",))]
    assert dialer.due(500.0) == []
    assert dialer.dialling(PEER)


def test_failed_dials_back_off_twice_as_long_each_time_up_to_the_bound(dialer: Dialer) -> None:
    dialer.connect(0.0, PEER, ["here"])
    now, waits = _next_due(dialer, 0.0), []
    for _ in range(12):
        dialer.failed(now, PEER)
        due = _next_due(dialer, now)
        waits.append(due - now)
        now = due
    for tries, wait in enumerate(waits):
        usual = min(limits.LINK_BACKOFF_S * 2**tries, limits.LINK_BACKOFF_S_MAX)
        assert usual * 0.5 <= wait <= usual * 1.5 + 0.02


def test_two_nodes_do_not_come_back_at_the_same_moment() -> None:
    waits = set()
    for seed in range(20):
        dialer = Dialer(random.Random(seed))
        dialer.connect(0.0, PEER, ["here"])
        dialer.due(0.0)
        dialer.failed(0.0, PEER)
        waits.add(round(_next_due(dialer, 0.0), 2))
    assert len(waits) > 10


def test_new_addresses_are_due_at_once_and_the_same_ones_change_nothing(dialer: Dialer) -> None:
    dialer.connect(0.0, PEER, ["old"])
    dialer.due(0.0)
    dialer.failed(0.0, PEER)
    dialer.connect(0.1, PEER, ["old"])
    assert dialer.due(0.1) == []
    dialer.connect(0.1, PEER, ["new"])
    assert dialer.due(0.1) == [(PEER, ("new",))]


def test_addresses_that_come_during_a_dial_are_tried_right_after_it(dialer: Dialer) -> None:
    dialer.connect(0.0, PEER, ["old"])
    dialer.due(0.0)
    dialer.connect(1.0, PEER, ["new"])
    assert dialer.due(1.0) == []
    dialer.failed(2.0, PEER)
    assert dialer.due(2.0) == [(PEER, ("new",))]


def test_a_linked_peer_is_not_dialled_and_a_lost_one_soon(dialer: Dialer) -> None:
    dialer.connect(0.0, PEER, ["here"])
    dialer.linked(1.0, PEER)
    assert dialer.due(100.0) == []
    dialer.lost(100.0, PEER)
    assert _next_due(dialer, 100.0) <= 100.0 + 1.5 * limits.LINK_BACKOFF_S + 0.02


def test_a_peer_that_accepts_and_cuts_does_not_make_us_spin(dialer: Dialer) -> None:
    dialer.connect(0.0, PEER, ["here"])
    now = 0.0
    for _ in range(8):
        now = _next_due(dialer, now)
        dialer.linked(now, PEER)
        dialer.lost(now + 0.1, PEER)
    assert now > 30


def test_a_forgotten_peer_is_dialled_no_more(dialer: Dialer) -> None:
    dialer.connect(0.0, PEER, ["here"])
    dialer.due(0.0)
    dialer.forget(PEER)
    dialer.failed(1.0, PEER)
    assert dialer.due(1_000.0) == []
    assert not dialer.wants(PEER)


def test_wants_are_bounded(dialer: Dialer) -> None:
    accepted = [dialer.connect(0.0, bytes([i // 256, i % 256]), ["a"]) for i in range(limits.LINK_WANTS_MAX + 1)]
    assert accepted.count(False) == 1
    assert not accepted[-1]

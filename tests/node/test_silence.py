"""Which nodes are left alone after they did not answer, for how long, and what ends it."""

import pytest

from ioa_p2p.effects import Now
from ioa_p2p.node.silence import Silence
from ioa_p2p.wire import limits
from tests.node.market import card, node, record

LEAST, MOST = limits.SILENT_S


class Clock:
    def __init__(self) -> None:
        self.boot = 100.0

    def __call__(self) -> Now:
        return Now(1_700_000_000.0 + self.boot, self.boot)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def silence(clock: Clock) -> Silence:
    return Silence(clock)


def lasts(silence: Silence, clock: Clock, *, blamed: bool = True) -> float:
    silence.note(node(1), blamed=blamed)
    began = clock.boot
    while silence.has(node(1)):
        clock.boot += LEAST / 4
    return clock.boot - began


def test_each_time_a_node_is_left_alone_for_twice_as_long_up_to_a_bound(silence: Silence, clock: Clock) -> None:
    assert [lasts(silence, clock) for _ in range(6)] == [LEAST, 2 * LEAST, 4 * LEAST, 8 * LEAST, 16 * LEAST, MOST]


def test_nobody_is_left_alone_for_longer_while_our_own_network_may_be_out(silence: Silence, clock: Clock) -> None:
    assert [lasts(silence, clock, blamed=False) for _ in range(3)] == [LEAST] * 3


def test_whoever_is_heard_is_asked_again_at_once_and_begins_anew(silence: Silence, clock: Clock) -> None:
    for _ in range(3):
        lasts(silence, clock)
    silence.note(node(1))
    silence.heard(node(1))
    assert not silence.has(node(1))
    assert lasts(silence, clock) == LEAST


@pytest.mark.parametrize(("age_s", "gone", "still"), [(-5, False, False), (-5, True, True), (5, False, True)])
def test_a_record_issued_since_says_that_its_node_lives(age_s: float, gone: bool, still: bool) -> None:
    silence = Silence()
    silence.note(node(1))
    silence.news(record(node(1), card("meter"), gone=gone, age_s=age_s))
    assert silence.has(node(1)) == still


def test_only_so_many_are_remembered(silence: Silence) -> None:
    for number in range(limits.SILENT_NODES_MAX + 1):
        silence.note(node(number))
    assert len(silence) == limits.SILENT_NODES_MAX
    assert not silence.has(node(0))
    silence.clear()
    assert len(silence) == 0

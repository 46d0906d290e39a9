"""Trusting our own clock: who can make us doubt it, and what a doubt stops."""

from typing import Any

import pytest

from ioa_p2p.dht import commands, events
from ioa_p2p.dht.agenda import Agenda
from ioa_p2p.dht.clock import Clock
from ioa_p2p.effects import Effect, Emit, Now, Save
from ioa_p2p.wire import limits
from ioa_p2p.wire.dht import Contact
from tests.dht.frames import NOW, WALL, later
from tests.dht.mesh import Mesh, card
from tests.dht.test_machine import Driven, emitted

DAY = 86_400


class Watch:
    """A Clock and what it said."""

    def __init__(self) -> None:
        self.out: list[Effect] = []
        self.jumps = self.turns = 0
        self.clock = Clock(Agenda("dht"), self.out, self.jumped, self.turned)
        self.clock.watch(NOW)

    def jumped(self, now: Now) -> None:
        self.jumps += 1

    def turned(self, now: Now) -> None:
        self.turns += 1

    def hear(self, offset_s: float, *hosts: str, now: Now = NOW) -> None:
        for number, host in enumerate(hosts):
            self.clock.heard(
                now, Contact(f"{offset_s}{host}{number}".encode().ljust(32)[:32], host, 1), WALL + offset_s
            )

    @property
    def said(self) -> list[Any]:
        return [effect.event for effect in self.out if isinstance(effect, Emit)]


@pytest.fixture
def watch() -> Watch:
    return Watch()


def public(number: int) -> list[str]:
    """Addresses of so many subnets."""
    return [f"93.184.{subnet}.7" for subnet in range(number)]


def test_one_liar_is_not_believed_whatever_it_says(watch: Watch):
    for lie in (-DAY, DAY, limits.CLOCK_SKEW_S + 3):
        watch.hear(lie, "93.184.216.34")
        assert watch.said == []


def test_two_of_three_are_believed(watch: Watch):
    watch.hear(DAY, *public(2))
    assert watch.said == [events.ClockDoubted(DAY)]
    assert watch.clock.doubted


def test_a_crowd_in_one_subnet_is_one_voice(watch: Watch):
    watch.hear(DAY, *[f"93.184.216.{number}" for number in range(100)])
    assert watch.said == []
    watch.hear(0, *public(1))
    assert not watch.clock.doubted


def test_on_a_private_net_each_peer_is_a_voice(watch: Watch):
    watch.hear(-DAY, "192.168.1.2", "192.168.1.3")
    assert watch.said == [events.ClockDoubted(-DAY)]


@pytest.mark.parametrize("honest", [3, 7, 20])
def test_less_than_half_cannot_make_us_doubt_and_more_than_half_are_right(honest: int):
    for liars, doubted in ((honest, False), (honest + 2, True)):
        watch = Watch()
        watch.hear(0, *public(honest))
        watch.hear(DAY, *[f"81.2.{subnet}.7" for subnet in range(liars)])
        assert watch.clock.doubted == doubted


def test_ten_minutes_either_way_are_no_reason(watch: Watch):
    for offset_s in (limits.CLOCK_SKEW_S, -limits.CLOCK_SKEW_S):
        watch.hear(offset_s, *public(9))
        assert watch.said == []


def test_a_peer_whose_clock_was_never_set_and_one_that_tells_none_are_no_voices(watch: Watch):
    watch.hear(-WALL, *public(9))
    watch.hear(-WALL + 100, *public(9))
    assert watch.said == []


def test_a_clock_before_the_software_was_made_needs_no_witness():
    watch = Watch()
    watch.clock.check(Now(100.0, NOW.boot))
    assert watch.said == [events.ClockDoubted(limits.WALL_S_MIN - 100.0)]


def test_once_it_is_set_right_peers_are_asked_again_and_their_word_ends_the_doubt(watch: Watch):
    watch.hear(DAY, *public(3))
    right = Now(NOW.wall + DAY, NOW.boot + 1)
    watch.clock.check(right)
    assert (watch.jumps, watch.clock.doubted) == (1, True)
    watch.hear(DAY, *public(1), now=right)
    assert watch.said == [events.ClockDoubted(DAY), events.ClockTrusted()]
    assert watch.turns == 2


def test_in_doubt_our_own_voice_does_not_count(watch: Watch):
    watch.hear(DAY, *public(3))
    watch.clock.check(later(DAY / 2)._replace(boot=NOW.boot + 1))
    watch.hear(DAY, *public(1), now=later(DAY / 2)._replace(boot=NOW.boot + 1))
    assert watch.clock.doubted


def test_only_so_many_voices_are_kept(watch: Watch, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "CLOCK_VOICES_MAX", 3)
    watch.hear(DAY, *public(9))
    assert len(watch.clock._voices) == 3


def test_what_a_wrong_clock_would_sign_is_queued_and_nothing_is_signed():
    alice = Driven()
    alice.now = Now(100.0, NOW.boot)
    effects = alice.command(commands.Publish(card("stat")))
    assert emitted(effects) == [events.ClockDoubted(limits.WALL_S_MIN - 100.0), events.Queued("stat", "clock")]
    assert [effect for effect in effects if isinstance(effect, Save)] == []
    assert alice.machine.held == []


def test_a_node_that_is_a_day_off_publishes_nothing_says_so_and_publishes_once_it_is_right():
    mesh = Mesh(31, 6)
    odd, others = mesh.contacts[5], mesh.contacts[:5]
    mesh.world.hosts[odd].wall_offset_s = DAY
    mesh.join_all()
    mesh.world.command(odd, commands.Publish(card("stat")))
    mesh.world.run(30)
    (doubt,) = mesh.events_of(odd, events.ClockDoubted)
    assert doubt.offset_s == pytest.approx(-DAY, abs=2)
    assert mesh.events_of(odd, events.Queued)[-1] == events.Queued("stat", "clock")
    assert mesh.find(others[0], odd, "stat").record is None
    assert [event for other in others for event in mesh.events_of(other, events.ClockDoubted)] == []
    mesh.world.hosts[odd].wall_offset_s = 0.0
    mesh.world.run(2 * limits.CLOCK_WATCH_S)
    assert mesh.events_of(odd, events.ClockTrusted)
    assert mesh.find(others[0], odd, "stat").record is not None


def test_a_clock_that_is_set_wrong_while_a_node_runs_is_told_within_half_a_minute():
    mesh = Mesh(32, 6)
    mesh.join_all()
    mesh.publish(mesh.contacts[5], card("stat"))
    mesh.world.hosts[mesh.contacts[5]].wall_offset_s = -DAY
    mesh.world.run(30)
    assert len(mesh.events_of(mesh.contacts[5], events.ClockDoubted)) == 1

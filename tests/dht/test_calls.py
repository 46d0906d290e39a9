"""Requests under way: patience, misses, matching, and one timer for all of them."""

import random
from typing import Any

import pytest

from ioa_p2p.dht.agenda import Agenda
from ioa_p2p.dht.calls import Call, Calls, Suspects
from ioa_p2p.effects import Effect, Now, Send, SetTimer
from ioa_p2p.wire import limits
from ioa_p2p.wire.dht import Contact, Ping, Pong, Stored
from tests.dht.frames import NOW, later
from tests.wire.samples import fault_of

PEER = Contact(bytes(32), "127.0.0.1", 1)
SILENT = Contact(b"silent" + bytes(26), "127.0.0.1", 2)


def peer(number: int) -> Contact:
    return Contact(bytes([number]) * 32, "127.0.0.1", 1_000 + number)


class Log:
    """An Asker that writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def answered(self, now: Now, call: Call, answer: Any) -> None:
        self.told.append("answered")

    def slow(self, now: Now, call: Call) -> None:
        self.told.append("slow")

    def lost(self, now: Now, call: Call) -> None:
        self.told.append("lost")


class Bench:
    def __init__(self) -> None:
        self.out: list[Effect] = []
        self.missed: list[tuple[Contact, bool]] = []
        self.agenda = Agenda("test")
        self.calls = Calls(random.Random(1), self.out, self.agenda, lambda *missed: self.missed.append(missed))
        self.log = Log()

    def ping(self, now: Now = NOW, peer: Contact = PEER) -> int:
        self.calls.ask(now, peer, Ping, Pong, self.log, None)
        effect = self.out[-1]
        assert isinstance(effect, Send)
        return effect.message.id

    def answer(self, now: Now, request: int) -> None:
        pong = Pong(request, False, bytes(8), bytes(6))
        self.calls.heard(now, self.calls.match(PEER, pong))


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_request_goes_out_as_a_client_until_we_are_proven(bench: Bench):
    request = bench.ping()
    assert bench.out == [Send(PEER, Ping(request, True))]
    bench.calls.client = False
    assert bench.out[-1:] != [Send(PEER, Ping(bench.ping(), True))]


def test_silence_is_first_slow_then_a_miss(bench: Bench):
    bench.ping()
    bench.agenda.run(later(0.19))
    assert bench.log.told == []
    bench.agenda.run(later(0.21))
    assert bench.log.told == ["slow"]
    assert bench.calls.suspects.has(PEER, NOW.boot + 1)
    assert bench.missed == []
    bench.agenda.run(later(limits.DHT_CALL_S + 0.01))
    assert bench.log.told == ["slow", "lost"]
    assert bench.missed == [(PEER, False)]
    assert len(bench.calls) == 0


def test_an_answer_ends_it_and_clears_the_suspicion(bench: Bench):
    request = bench.ping()
    bench.agenda.run(later(0.5))
    bench.answer(later(0.6), request)
    bench.agenda.run(later(10))
    assert bench.log.told == ["slow"]
    assert not bench.calls.suspects.has(PEER, NOW.boot + 1)
    assert bench.missed == []


@pytest.mark.parametrize(
    ("peer", "answer"),
    [
        (PEER._replace(port=2), lambda request: Pong(request, False, bytes(8), bytes(6))),
        (PEER._replace(key=bytes(31) + b"\x01"), lambda request: Pong(request, False, bytes(8), bytes(6))),
        (PEER, lambda request: Pong(request ^ 1, False, bytes(8), bytes(6))),
        (PEER, lambda request: Stored(request, False, 0)),
    ],
    ids=["another endpoint", "another key", "another request", "another kind"],
)
def test_an_answer_nobody_asked_for_is_refused_and_the_real_one_still_counts(bench: Bench, peer, answer):
    request = bench.ping()
    assert fault_of(bench.calls.match, peer, answer(request)) == "unasked-answer"
    bench.answer(NOW, request)
    assert fault_of(bench.calls.match, PEER, Pong(request, False, bytes(8), bytes(6))) == "unasked-answer"


def test_patience_follows_the_round_trips_between_its_bounds(bench: Bench):
    least, first, most = limits.DHT_SLOW_S
    assert bench.calls.patience_s == first
    for trip_s, bound in ((0.001, least), (3.0, most)):
        for number in range(60):
            bench.answer(later(number * 10 + trip_s), bench.ping(later(number * 10)))
        assert bench.calls.patience_s == bound


def test_with_too_many_under_way_a_new_one_is_lost_at_once(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "DHT_CALLS_MAX", 2)
    bench.ping()
    bench.ping()
    bench.ping()
    assert len(bench.out) == 2
    assert bench.log.told == ["lost"]
    assert bench.missed == []


def test_after_sleep_all_is_lost_and_nobody_is_blamed(bench: Bench):
    bench.ping()
    bench.calls.suspects.add(PEER, NOW.boot)
    bench.calls.abandon(later(3_600))
    bench.agenda.run(later(3_600))
    assert bench.log.told == ["lost"]
    assert bench.missed == []
    assert not bench.calls.suspects.has(PEER, NOW.boot)


def test_suspicion_ends_by_itself_and_is_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "DHT_SUSPECTS_MAX", 3)
    suspects = Suspects()
    for number in range(5):
        suspects.add(peer(number), 0.0)
    assert [suspects.has(peer(number), 1.0) for number in range(5)] == [False, False, True, True, True]
    assert not suspects.has(peer(4), limits.DHT_SUSPECT_S[0] + 1.0)


def test_who_is_silent_while_others_answer_is_to_blame(bench: Bench):
    bench.calls.ask(NOW, SILENT, Ping, Pong, bench.log, None)
    bench.answer(later(0.1), bench.ping())
    bench.agenda.run(later(limits.DHT_CALL_S + 0.01))
    assert bench.missed == [(SILENT, True)]


def test_nobody_is_to_blame_for_silence_while_nobody_answers(bench: Bench):
    bench.answer(later(0.1), bench.ping())
    bench.calls.ask(later(1), SILENT, Ping, Pong, bench.log, None)
    bench.ping(later(1))
    bench.agenda.run(later(10))
    assert sorted(bench.missed) == [(PEER, False), (SILENT, False)]


def test_the_silent_are_left_alone_for_twice_as_long_each_time_and_an_answer_ends_it():
    suspects, least, most = Suspects(), *limits.DHT_SUSPECT_S
    now_s = 0.0
    for number in range(8):
        suspects.add(PEER, now_s)
        suspects.add(PEER, now_s + 1)  # another request under way then: one silence, not two
        wait_s = min(most, least * 2**number)
        assert suspects.has(PEER, now_s + wait_s - 1)
        now_s += wait_s
        assert not suspects.has(PEER, now_s)
    suspects.clear(PEER)
    suspects.add(PEER, now_s)
    assert not suspects.has(PEER, now_s + least)


def test_our_own_outage_makes_no_silence_longer():
    suspects, least = Suspects(), limits.DHT_SUSPECT_S[0]
    for number in range(4):
        suspects.add(PEER, number * least, blamed=False)
    assert not suspects.has(PEER, 4 * least)


def test_one_timer_serves_all_deadlines_and_moves_only_to_come_earlier():
    agenda, done = Agenda("test"), list[str]()
    assert agenda.wake() is None
    agenda.at(5.0, lambda now: done.append("late"))
    assert agenda.wake() == SetTimer("test", 5.0)
    agenda.at(7.0, lambda now: done.append("last"))
    assert agenda.wake() is None
    agenda.at(3.0, lambda now: done.append("early"))
    assert agenda.wake() == SetTimer("test", 3.0)
    agenda.run(Now(0, 5.0))
    assert done == ["early", "late"]
    assert agenda.wake() == SetTimer("test", 7.0)
    assert agenda.late_s(10.0) == 3.0


def test_what_was_dropped_is_not_done_and_wakes_nobody():
    agenda, done = Agenda("test"), list[str]()
    first = agenda.at(3.0, lambda now: done.append("dropped"))
    agenda.at(5.0, lambda now: done.append("kept"))
    first.drop()
    assert agenda.late_s(4.0) == 0
    assert agenda.wake() == SetTimer("test", 5.0)
    agenda.run(Now(0, 6.0))
    assert done == ["kept"]
    assert agenda.wake() is None


def test_an_answered_call_leaves_nothing_to_wake_for(bench: Bench):
    bench.answer(NOW, bench.ping())
    assert bench.agenda.wake() is None

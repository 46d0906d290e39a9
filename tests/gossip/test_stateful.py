"""Hypothesis plays three members and a liar: any mix of saying, losing, repeating, restarting and waking.

Always: every member shows each author's lines in order, once, and never before what their author had seen.
At the end, with all mail delivered: all show the same.
"""

import contextlib
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ioa_p2p.effects import Effect, Emit, Now, Send, SetTimer
from ioa_p2p.errors import PeerError
from ioa_p2p.gossip.commands import LinkPeer, OpenChannel, Wake
from ioa_p2p.gossip.events import Forked, Gap, Said
from ioa_p2p.wire.gossip import Entries, Entry, Frontier, Head, Held, Want
from ioa_p2p.wire.ids import blake
from tests.gossip.team import KEYS, NODES, NOW, TEAM, Member, say, signed

MEMBERS = st.integers(0, 2)
LIAR = 3
SEQS = st.one_of(st.integers(1, 6), st.just((1 << 63) - 1))


class Channels(RuleBasedStateMachine):
    """Mail lies in `mail` until a rule delivers, repeats or loses it."""

    def __init__(self) -> None:
        super().__init__()
        self.boot = NOW.boot
        self.members = [Member(number) for number in range(3)]
        self.mail: list[tuple[bytes, bytes, Any]] = []
        self.timers: list[dict[str, float]] = [{}, {}, {}]
        self.shown: list[dict[bytes, int]] = [{}, {}, {}]
        self.gaps: list[list[Gap]] = [[], [], []]  # of each: lines counted as met though nobody had them
        self.ends: list[dict[bytes, int]] = [{}, {}, {}]
        self.lines: dict[tuple[bytes, int], Entry] = {}
        self.liar_frames = [bytes(32)]

    @initialize()
    def open(self) -> None:
        for number in range(3):
            self._play(number, lambda member: member.do(OpenChannel(TEAM, tuple(NODES[:4])), self._now()))
            self._link(number)

    @rule(number=MEMBERS)
    def speak(self, number: int) -> None:
        self._play(number, lambda member: say(member, b"%d" % len(self.lines)))

    @rule(place=st.integers(0, 1_000), fate=st.sampled_from(["deliver", "deliver", "deliver", "repeat", "lose"]))
    def post(self, place: int, fate: str) -> None:
        if self.mail:
            place %= len(self.mail)
            mail = self.mail[place] if fate == "repeat" else self.mail.pop(place)
            if fate != "lose":
                self._deliver(*mail)

    @rule(seconds=st.sampled_from([0.1, 1.0, 5.0, 40.0]))
    def wait(self, seconds: float) -> None:
        self.boot += seconds
        for number, timers in enumerate(self.timers):
            for name in sorted(name for name, at in timers.items() if at <= self.boot):
                del timers[name]
                self._play(number, lambda member, name=name: member.time(name, self._now()))

    @rule(number=MEMBERS)
    def restart(self, number: int) -> None:
        self.members[number] = again = self.members[number].restarted(self._now())
        self.timers[number] = {}
        self._carry(number, again.effects)
        self._link(number)

    @rule(number=MEMBERS)
    def wake(self, number: int) -> None:
        self._play(number, lambda member: member.do(Wake(), self._now()))

    @rule(number=MEMBERS, seq=SEQS, previous=st.integers(0, 9), seen=st.lists(st.tuples(st.integers(0, 3), SEQS)))
    def lie(self, number: int, seq: int, previous: int, seen: list[tuple[int, int]]) -> None:
        """A valid signature under whatever the liar likes."""
        link = self.liar_frames[previous % len(self.liar_frames)]
        marks = tuple((NODES[author], mark) for author, mark in seen)
        raw = signed(KEYS[LIAR], seq, link, b"%d" % len(self.liar_frames), seen=marks)
        self.liar_frames.append(blake(raw))
        self.mail.append((NODES[LIAR], NODES[number], Entries(raw)))

    @rule(number=MEMBERS, author=st.integers(0, 3), member=st.integers(0, 3), seq=SEQS)
    def claim(self, number: int, author: int, member: int, seq: int) -> None:
        claims = (
            Held(TEAM, ((NODES[member], NODES[author], seq),)),
            Want(TEAM, NODES[author], 1, seq),
            Frontier(TEAM, (Head(NODES[author], seq, bytes(8), True),)),
        )
        self.mail += [(NODES[LIAR], NODES[number], message) for message in claims]

    @invariant()
    def nobody_shows_more_than_was_said(self) -> None:
        for number, shown in enumerate(self.shown):
            for author in NODES[:3]:
                said = range(1, shown.get(author, 0) + 1)
                assert all((author, seq) in self.lines or self._gives_up(number, author, seq) for seq in said)

    def teardown(self) -> None:
        """With all mail delivered, and a minute to repair what was lost, the honest members agree."""
        for _ in range(16):
            self._deliver_all()
            self.wait(5.0)
        said = [{author: shown.get(author, 0) for author in NODES[:3]} for shown in self.shown]
        assert said[0] == said[1] == said[2]

    # -- parts

    def _now(self) -> Now:
        return Now(NOW.wall, self.boot)

    def _link(self, number: int) -> None:
        """Both ends see the link go and come."""
        for other in [other for other in range(4) if other != number]:
            self._play(number, lambda member, other=other: member.do(LinkPeer(NODES[other], True), self._now()))
            for up in (False, True):
                if other != LIAR:
                    self._play(other, lambda member, up=up: member.do(LinkPeer(NODES[number], up), self._now()))

    def _deliver_all(self) -> None:
        for _ in range(5_000):
            if not self.mail:
                return
            self._deliver(*self.mail.pop(0))
        raise AssertionError("the mail never ends")

    def _deliver(self, source: bytes, target: bytes, message: Any) -> None:
        with contextlib.suppress(PeerError):
            number = NODES.index(target)
            if number != LIAR:
                self._play(number, lambda member: member.hear(source, message, self._now()))

    def _play(self, number: int, act: Any) -> None:
        self._carry(number, act(self.members[number]))

    def _carry(self, number: int, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Send(to, message):
                    self.mail.append((NODES[number], to, message))
                case SetTimer(name, at):
                    self.timers[number][name] = at or 0.0
                case Emit(Forked() as forked):
                    self.ends[number][forked.author] = forked.seq
                    assert forked.author == NODES[LIAR]
                case Emit(Gap() as gap):
                    self.gaps[number].append(gap)
                case Emit(Said() as said):
                    self._check(number, said.entry)
                case _:
                    pass

    def _check(self, number: int, entry: Entry) -> None:
        shown, last = self.shown[number], self.shown[number].get(entry.node, 0)
        missing = range(last + 1, entry.seq)
        assert entry.seq > last or self._gives_up(number, entry.node, entry.seq), "said once"
        assert all(self._gives_up(number, entry.node, seq) for seq in missing), "in its author's order"
        if entry.node != NODES[LIAR]:
            assert self.lines.setdefault((entry.node, entry.seq), entry) == entry
            assert all(self._met(number, author, seq) for author, seq in entry.seen)
        shown[entry.node] = max(last, entry.seq)

    def _met(self, number: int, author: bytes, seq: int) -> bool:
        said = self.shown[number].get(author, 0) >= seq or self._gives_up(number, author, seq)
        return said or seq > self.ends[number].get(author, seq)

    def _gives_up(self, number: int, author: bytes, seq: int) -> bool:
        return any(gap.author == author and gap.first <= seq <= gap.last for gap in self.gaps[number])


TestChannels = Channels.TestCase
TestChannels.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)

"""A member that was away gets what was said at hardly more than its bytes, from whoever is there.

    authors talk ── and leave ──> two keepers, now one, now the other ──> who was away, and only it, pulls

Rule R1: docs/invariants.md.
"""

from typing import Any

from ioa_p2p.storage.memory import MemoryStorage
from ioa_p2p.wire import limits
from ioa_p2p.wire.gossip import Entries, GossipMessage, pack
from tests.gossip.team import TEAM
from tests.sim.gossip import HEAL_S, Team
from tests.sim.scenario import Violation
from tests.sim.world import Weather, World

RATIO_MAX = 1.3
CATCH_UP_S = 30.0
TURN_S = 0.7
TURNS = 24  # of the keepers while one is away: an hour of a day each
GAP_S = limits.CHAT_GAP_S  # as it stands, whatever a planted fault makes of it
BODY = bytes(200)
IN_ORDER = Weather(delay_s=(0.02, 0.02))  # as a link: nothing overtakes


class Toll:
    """Bytes that arrive at one member."""

    def __init__(self, team: Team, member: bytes) -> None:
        self.all_bytes = 0
        self._member = member
        team.world.on_deliver.append(self._count)

    def _count(self, world: World, source: Any, target: Any, message: GossipMessage) -> None:
        if target == self._member:
            self.all_bytes += len(pack(message)[1])

    def check(self, entry_bytes: int) -> None:
        if self.all_bytes > RATIO_MAX * entry_bytes:
            raise Violation("R1", f"{self.all_bytes} bytes for {entry_bytes} of entries")


def long_away(entries: int = 900, seconds: float = 600.0) -> Team:
    """T16: three authors say `entries` lines in `seconds` while one is away, and leave. The keepers are there in turns,
    all the time; when it is back each for less than two answers' time."""
    team = Team(1, 6, IN_ORDER)
    *authors, one, other, away = team.nodes
    team.link_all()
    team.crash(away)
    team.crash(other)
    for turn in range(TURNS):
        on, off = (one, other) if turn % 2 else (other, one)
        team.world.after(seconds / TURNS * (turn + 0.5), lambda on=on, off=off: _swap(team, on, off))
    _talk(team, authors, entries, seconds / entries)
    for author in authors:
        team.crash(author)
    toll = Toll(team, away)
    _swap(team, one, other)
    team.restart(away)
    team.world.weather = Weather(delay_s=(0.2, 0.2))
    for turn in range(int(CATCH_UP_S / TURN_S)):
        on, off = (one, other) if turn % 2 else (other, one)
        team.world.after(TURN_S * (turn + 1), lambda on=on, off=off: _swap(team, on, off))
    team.must_be_equal_within(CATCH_UP_S)
    toll.check(_entry_bytes(team, away))
    return team


def two_away() -> Team:
    """Two members without a link to the authors catch up from the same two at once, over slow links."""
    team = Team(1, 6, IN_ORDER)
    *authors, _, _, away, too = team.nodes
    team.link_all()
    team.crash(away)
    team.crash(too)
    _talk(team, authors, 600)
    for author in authors:
        team.crash(author)
    tolls = Toll(team, away), Toll(team, too)
    team.world.weather = Weather(delay_s=(0.9, 0.9))
    for node in (away, too):
        team.restart(node)
    team.must_be_equal_within(CATCH_UP_S)
    for toll, node in zip(tolls, (away, too), strict=True):
        toll.check(_entry_bytes(team, node))
    return team


def nobody_has_it() -> Team:
    """A line is lost on its way to all, and its author's disk with it: after a minute all talk on over a marked gap;
    one finds the line, and then all have it."""
    team = Team(1, 4, IN_ORDER)
    author, *others = team.nodes
    team.link_all()
    team.world.run(1.0)
    lost = _say_unheard(team, author, others)
    team.say(author)
    team.world.run(0.03)
    team.crash(author)
    team.world.hosts[author].disk = MemoryStorage()
    team.world.run(GAP_S / 2)
    _must_say(team, others, author, 0)
    team.crash(others[0])
    team.restart(others[0])
    team.world.run(GAP_S)
    _must_say(team, others[1:], author, 2)
    team.world.deliver(others[1], others[2], Entries(lost))
    if not team.world.run(HEAL_S, until=lambda: not any(team.gaps[node] for node in others[1:])):
        raise Violation("L3", "a gap is not filled though somebody has its line")
    return team


def _say_unheard(team: Team, author: bytes, others: list[bytes]) -> bytes:
    """A line that nobody hears: its frame."""
    for other in others:
        team.world.cut(author, other)
    team.say(author)
    team.world.run(0.05)
    team.world.mend()
    disk = team.world.hosts[author].disk
    [(_, raw)] = disk.scan(f"chat/{TEAM.hex()}/{author.hex()}/0")
    return raw


def _must_say(team: Team, nodes: list[bytes], author: bytes, seq: int) -> None:
    said = [team.said[node].get(author, 0) for node in nodes]
    if said != [seq] * len(nodes):
        raise Violation("L3", f"with a line missing {said} are said, not {seq}")


def _talk(team: Team, authors: list[bytes], entries: int, apart_s: float = 0.05) -> None:
    """In turns, so that each line has seen the one before."""
    for number in range(entries):
        author = authors[number % len(authors)]
        team.world.after(number * apart_s, lambda author=author: team.say(author, BODY))
    team.world.run(entries * apart_s + 35.0)


def _swap(team: Team, on: bytes, off: bytes) -> None:
    team.restart(on)
    team.crash(off)


def _entry_bytes(team: Team, node: bytes) -> int:
    disk = team.world.hosts[node].disk
    spaces = [space for space in disk.spaces("chat/") if space.count("/") == 3]
    return sum(len(raw) for space in spaces for _, raw in disk.scan(space))

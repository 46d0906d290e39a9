"""Old entries that circle back: what was told once is never news again. Public failure 5."""

from collections.abc import Callable

import pytest

from ioa_p2p.effects import Now, Save
from ioa_p2p.gossip.commands import CloseChannel, LinkPeer, OpenChannel
from ioa_p2p.gossip.events import Said
from ioa_p2p.wire import limits
from ioa_p2p.wire.gossip import Entries
from tests.gossip.team import KEYS, NODES, NOW, TEAM, Member, chain, events, opened, sends

AUTHOR, RECEIVER, MALLORY = range(3)
LONG = limits.CHAT_TAIL_ENTRIES + 10  # more than is kept in memory
OLD = Now(NOW.wall + 600, NOW.boot + 600)


def reader(lines: list[bytes]) -> Member:
    member = opened(RECEIVER)
    for raw in lines:
        member.hear(NODES[AUTHOR], Entries(raw))
    return member


def running(member: Member) -> Member:
    return member


def restarted(member: Member) -> Member:
    again = member.restarted(OLD)
    again.do(LinkPeer(NODES[MALLORY], True), OLD)
    return again


def reopened(member: Member) -> Member:
    member.do(CloseChannel(TEAM), OLD)
    member.do(OpenChannel(TEAM, tuple(NODES[:3])), OLD)
    return member


@pytest.mark.parametrize("later", [running, restarted, reopened], ids=lambda later: later.__name__)
@pytest.mark.parametrize("place", [0, LONG // 2, LONG - 1], ids=["first", "middle", "last"])
def test_an_entry_injected_again_is_not_told_saved_or_passed_on(later: Callable[[Member], Member], place: int) -> None:
    lines = chain(KEYS[AUTHOR], LONG)
    member = later(reader(lines))
    effects = member.hear(NODES[MALLORY], Entries(lines[place]), OLD)
    assert events(effects, Said) == []
    assert [effect for effect in effects if isinstance(effect, Save)] == []
    assert [message for message in sends(effects) if isinstance(message, Entries)] == []


def test_the_next_new_entry_is_told_once_all_the_same() -> None:
    lines = chain(KEYS[AUTHOR], LONG + 1)
    member = restarted(reader(lines[:-1]))
    effects = [member.hear(NODES[MALLORY], Entries(raw), OLD) for raw in (lines[0], lines[-1], lines[-1])]
    assert [[said.seq for said in events(each, Said)] for each in effects] == [[], [LONG + 1], []]

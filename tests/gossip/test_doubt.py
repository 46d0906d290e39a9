"""A member that lost its memory says nothing under a number it may have used."""

import pytest

from ioa_p2p.errors import UsageError
from ioa_p2p.gossip.commands import OpenChannel
from ioa_p2p.wire.gossip import Entries, Frontier, Head
from ioa_p2p.wire.ids import blake
from tests.gossip.team import KEYS, NODES, TEAM, Member, chain, lines, opened, say


def doubting() -> Member:
    """One of three whose own chain is empty on its disk; the others have links with it."""
    member = opened(0)
    member.do(OpenChannel(TEAM, tuple(NODES[:3]), doubted=True))
    return member


def frontier(seq: int) -> Frontier:
    """How much of our chain somebody holds."""
    short = blake(chain(KEYS[0], seq)[-1])[:8] if seq else bytes(8)
    return Frontier(TEAM, (Head(NODES[0], seq, short, True),), b"")


def test_nothing_is_said_until_half_of_the_others_were_heard() -> None:
    member = doubting()
    with pytest.raises(UsageError) as refused:
        say(member)
    assert refused.value.code == "chain-damaged"
    member.hear(NODES[1], frontier(0))
    assert lines(say(member)) == [(NODES[0], 1)]


def test_lines_of_ours_that_others_hold_come_back_before_we_speak() -> None:
    member = doubting()
    member.hear(NODES[1], frontier(2))
    with pytest.raises(UsageError):
        say(member)
    member.hear(NODES[1], Entries(b"".join(chain(KEYS[0], 2))))
    assert lines(say(member, b"three")) == [(NODES[0], 3)]


def test_who_doubts_nothing_speaks_at_once() -> None:
    assert lines(say(opened(0))) == [(NODES[0], 1)]

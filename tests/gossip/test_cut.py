"""Who was removed counts up to its cut: no line above, on no member, and none below is lost."""

import pytest

from ioa_p2p.errors import PeerError
from ioa_p2p.gossip import transcript
from ioa_p2p.gossip.commands import ForgetTeam, LinkPeer, OpenChannel
from ioa_p2p.wire import limits
from ioa_p2p.wire.gossip import Entries, Frontier, Head, Served, Want
from ioa_p2p.wire.ids import blake
from tests.gossip.team import KEYS, NODES, TEAM, Member, chain, key, lines, opened, sends, signed

GONE = NODES[2]
LINES = chain(KEYS[2], 6)
CUT = 4


def remove(member: Member, cut: int = CUT) -> Member:
    member.do(OpenChannel(TEAM, NODES[:2], cuts=((GONE, cut),)))
    return member


def heard(count: int) -> Member:
    """A member that heard so many of its lines before it was removed."""
    member = opened(0)
    for raw in LINES[:count]:
        member.hear(GONE, Entries(raw))
    return member


def bring(member: Member, first: int, last: int) -> list[tuple[bytes, int]]:
    """Another member sends these lines; those that are told."""
    return [line for raw in LINES[first - 1 : last] for line in lines(member.hear(NODES[1], Entries(raw)))]


def told(author: bytes, seq: int) -> Frontier:
    short = blake(LINES[seq - 1])[:8] if seq else bytes(8)
    return Frontier(TEAM, (Head(author, seq, short, False),), b"")


def test_lines_up_to_the_cut_are_still_taken_and_those_above_never_again() -> None:
    assert bring(remove(heard(2)), 3, 6) == [(GONE, 3), (GONE, 4)]


def test_they_are_pulled_of_others_and_no_further_than_the_cut() -> None:
    member = remove(heard(2))
    wants = [one for one in sends(member.hear(NODES[1], told(GONE, 6))) if isinstance(one, Want)]
    assert wants == [Want(TEAM, GONE, 3, CUT)]
    bring(member, 3, 4)
    assert not [one for one in sends(member.hear(NODES[1], told(GONE, 6))) if isinstance(one, Want)]


def test_what_was_heard_above_the_cut_is_passed_on_to_nobody() -> None:
    member = remove(heard(6))
    served = sends(member.hear(NODES[1], Want(TEAM, GONE, 1, 6)))
    assert [one for one in served if isinstance(one, Served)] == [Served(TEAM, GONE, 1, CUT)]
    assert b"".join(one.raw for one in served if isinstance(one, Entries)) == b"".join(LINES[:CUT])
    heads = next(one for one in sends(member.time(f"tell/{TEAM.hex()}")) if isinstance(one, Frontier)).heads
    assert [(head.seq, head.hash) for head in heads if head.author == GONE] == [(CUT, blake(LINES[CUT - 1])[:8])]


def test_it_is_heard_no_more_itself() -> None:
    member = remove(heard(2))
    with pytest.raises(PeerError) as refused:
        member.hear(GONE, Entries(LINES[2]))
    assert refused.value.code == "not-a-member"


def test_a_restart_remembers_the_cut_and_reads_nothing_above_it() -> None:
    member = remove(heard(6)).restarted()
    assert member.machine.seq(TEAM, GONE) == CUT
    assert [entry.seq for entry in transcript.read(member._rows, TEAM, NODES[:2])] == [1, 2, 3, 4]
    assert bring(remove(heard(2)).restarted(), 3, 6) == [(GONE, 3), (GONE, 4)]


def test_a_newcomer_gets_the_lines_of_who_left_before_it_came() -> None:
    late = Member(3)
    late.do(LinkPeer(NODES[1], True))
    late.do(OpenChannel(TEAM, (NODES[1], NODES[3]), cuts=((GONE, CUT),)))
    assert [one for one in sends(late.hear(NODES[1], told(GONE, CUT))) if isinstance(one, Want)]
    assert bring(late, 1, 6) == [(GONE, seq) for seq in range(1, CUT + 1)]


def test_lines_that_waited_beyond_a_hole_are_dropped_above_the_cut() -> None:
    member = opened(0)
    for seq in (1, 3, 4, 5, 6):
        member.hear(GONE, Entries(LINES[seq - 1]))
    remove(member)
    assert bring(member, 2, 2) == [(GONE, 2), (GONE, 3), (GONE, 4)]


def test_who_answered_a_line_above_the_cut_is_not_held_up_by_it() -> None:
    member = remove(heard(2))
    answer = signed(KEYS[1], 1, body=b"answer", seen=((GONE, 6),))
    assert lines(member.hear(NODES[1], Entries(answer))) == [(NODES[1], 1)]


def test_who_answered_a_line_below_the_cut_waits_for_it() -> None:
    member = remove(heard(2))
    answer = signed(KEYS[1], 1, body=b"answer", seen=((GONE, CUT),))
    assert lines(member.hear(NODES[1], Entries(answer))) == []
    assert bring(member, 3, 4) == [(GONE, 3), (GONE, 4), (NODES[1], 1)]


def test_an_answer_that_waited_for_a_line_above_the_cut_is_told_with_the_removal() -> None:
    member = heard(2)
    member.hear(NODES[1], Entries(signed(KEYS[1], 1, body=b"answer", seen=((GONE, 6),))))
    assert (NODES[1], 1) in lines(member.do(OpenChannel(TEAM, NODES[:2], cuts=((GONE, 2),))))


def test_the_first_cut_stays() -> None:
    member = remove(remove(heard(2)), 6)
    assert bring(member, 3, 6) == [(GONE, 3), (GONE, 4)]
    assert bring(remove(remove(heard(2)).restarted(), 6), 3, 6) == [(GONE, 3), (GONE, 4)]


def test_two_histories_below_the_cut_end_an_author_earlier() -> None:
    member = remove(heard(2))
    member.hear(NODES[1], Entries(signed(KEYS[2], 2, blake(LINES[0]), b"another")))
    assert bring(member, 3, 6) == []
    assert [entry.seq for entry in transcript.read(member.restarted()._rows, TEAM, NODES[:2])] == [1]


def test_a_forgotten_team_leaves_no_line_of_who_was_removed() -> None:
    member = remove(heard(4))
    member.do(ForgetTeam(TEAM, NODES[:2], ()))
    assert not transcript.cuts(member._rows, TEAM)
    assert list(transcript.read(member._rows, TEAM, NODES[:3])) == []


def test_of_many_that_left_a_frontier_names_as_many_as_fit_and_all_members() -> None:
    gone = tuple((key(number).node, 1) for number in range(100, 100 + limits.CHAT_MEMBERS_MAX))
    member = opened(0)
    member.do(OpenChannel(TEAM, NODES[:2], cuts=gone))
    frontier = next(one for one in sends(member.time(f"tell/{TEAM.hex()}")) if isinstance(one, Frontier))
    assert len(frontier.heads) == limits.CHAT_MEMBERS_MAX
    assert {head.author for head in frontier.heads[:2]} == set(NODES[:2])

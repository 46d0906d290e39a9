"""Whom a fresh entry goes to."""

import random

from ioa_p2p.gossip.frontier import Marks
from ioa_p2p.gossip.reach import Reach
from ioa_p2p.wire import limits
from tests.gossip.team import NODES

ME, A, B, C = NODES[:4]


def reach(members: list[bytes], links: list[bytes], marks: Marks | None = None) -> Reach:
    made = Reach(ME, marks or Marks(), random.Random(3))
    made.relink(members, links)
    return made


def test_own_lines_go_to_every_linked_member_and_to_nobody_else() -> None:
    assert reach([ME, A, B], [A, B, C]).pushes(1) == ([A, B], [])


def test_anothers_entry_goes_to_members_that_have_no_link_with_its_author() -> None:
    made = reach([ME, A, B, C], [A, B, C])
    assert made.relays(A, 1, A) == [B, C]
    made.hear(B, {A, ME})
    assert made.relays(A, 1, A) == [C]
    made.hear(C, {A, ME})
    assert made.relays(A, 1, A) == []


def test_an_entry_does_not_go_back_to_its_source_or_to_who_has_it() -> None:
    marks = Marks()
    made = reach([ME, A, B, C], [A, B, C], marks)
    assert made.relays(A, 5, B) == [C]
    marks.rise(A, C, 5)
    assert made.relays(A, 5, B) == []


def test_a_member_that_lags_is_left_alone_until_it_caught_up() -> None:
    marks = Marks()
    made = reach([ME, A, B], [A, B], marks)
    marks.rise(ME, A, 1)
    assert made.pushes(limits.CHAT_UNANSWERED_MAX) == ([A, B], [])
    assert made.pushes(limits.CHAT_UNANSWERED_MAX + 1) == ([A], [])
    assert made.lags(B, limits.CHAT_UNANSWERED_MAX + 1)


def test_a_large_team_gets_six_pushes_and_digests() -> None:
    members = [bytes([number]) * 32 for number in range(limits.CHAT_PUSH_ALL_MAX)]
    whole, digest = reach([ME, *members], members).pushes(1)
    assert len(whole) == limits.CHAT_PUSH_SOME
    assert sorted(whole + digest) == members
    assert len(reach([ME, *members], members).relays(members[0], 1, members[1])) == limits.CHAT_PUSH_SOME
    assert reach([ME, *members[1:]], members).pushes(1) == (members[1:], [])


def test_a_fresh_link_is_relayed_to() -> None:
    made = reach([ME, A, B, C], [A, B])
    assert made.relays(A, 1, A) == [B]
    made.relink([ME, A, B, C], [A, B, C])
    assert made.relays(A, 1, A) == [B, C]


def test_relinking_tells_who_is_fresh_and_who_is_gone() -> None:
    made = reach([ME, A, B], [A])
    assert made.relink([ME, A, B, C], [B, C]) == ([B, C], [A])
    assert made.relink([ME, A, B, C], [B, C]) == ([], [])

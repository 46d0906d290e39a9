"""The gossip machine: channels open and close, commands are checked, timers find their channel."""

import pytest

from ioa_p2p.effects import Emit, Save, SetTimer
from ioa_p2p.errors import UsageError
from ioa_p2p.gossip.blobs import name_of, read
from ioa_p2p.gossip.commands import (
    CloseChannel,
    DropBlob,
    ForgetTeam,
    GetBlob,
    LinkPeer,
    OpenChannel,
    PutBlob,
    Say,
    SetDecisions,
    Wake,
)
from ioa_p2p.gossip.events import Refused
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.gossip import Entries, Frontier
from tests.gossip.team import KEYS, NODES, NOW, TEAM, Member, chain, opened, say, sends

OTHER = b"another team id."


def code(member: Member, command: object) -> str:
    with pytest.raises(UsageError) as refused:
        member.do(command)
    assert refused.value.hint
    return refused.value.code


def test_opening_a_channel_is_durable_and_greets_linked_members() -> None:
    member = Member(0)
    member.do(LinkPeer(NODES[2], True))
    [save, timer, greeting, soon] = member.do(OpenChannel(TEAM, tuple(NODES[:3])))
    assert save == Save("chat", TEAM, codec.encode(tuple(sorted(NODES[:3]))))
    assert isinstance(timer, SetTimer)
    assert soon == SetTimer(timer.name, NOW.boot + limits.CHAT_TELL_AGAIN_S)
    assert (greeting.to, type(greeting.message)) == (NODES[2], Frontier)


def test_opening_again_with_the_same_members_does_nothing() -> None:
    member = opened(0)
    assert member.do(OpenChannel(TEAM, tuple(reversed(NODES[:3])))) == []


def test_a_channel_needs_its_own_node_and_at_most_64_members() -> None:
    many = tuple(bytes([number]) * 32 for number in range(limits.CHAT_MEMBERS_MAX))
    assert code(Member(0), OpenChannel(TEAM, tuple(NODES[1:3]))) == "bad-members"
    assert code(Member(0), OpenChannel(TEAM, (NODES[0], *many))) == "bad-members"
    assert Member(0).do(OpenChannel(TEAM, (NODES[0], *many[1:])))


def test_an_open_channel_is_open_again_after_a_restart_and_a_closed_one_is_not() -> None:
    member = opened(0)
    assert say(member.restarted())
    assert member.do(CloseChannel(TEAM)) == [Save("chat", TEAM, None)]
    assert member.do(CloseChannel(TEAM)) == []
    assert code(member, Say(TEAM, "text", b"")) == "unknown-team"
    assert code(member.restarted(), Say(TEAM, "text", b"")) == "unknown-team"


def test_what_was_said_before_a_channel_closed_is_there_when_it_opens_again() -> None:
    member = opened(0)
    say(member)
    member.do(CloseChannel(TEAM))
    member.do(OpenChannel(TEAM, tuple(NODES[:3])))
    assert say(member)[0].key == (2).to_bytes(8)


def test_lines_too_large_are_refused_with_a_hint_and_the_largest_fits_one_link_frame() -> None:
    member = opened(0)
    assert code(member, Say(TEAM, "text", bytes(limits.CHAT_BODY_BYTES_MAX + 1))) == "line-too-large"
    assert code(member, Say(TEAM, "k" * 25, b"")) == "line-too-large"
    effects = member.do(Say(TEAM, "k" * 24, bytes(limits.CHAT_BODY_BYTES_MAX)))
    assert len(sends(effects)[0].raw) + limits.LINK_HEADER_BYTES <= limits.LINK_FRAME_BYTES_MAX


def test_commands_for_a_team_that_is_not_open_are_refused() -> None:
    for command in (Say(OTHER, "text", b""), SetDecisions(OTHER, b""), GetBlob(OTHER, bytes(32))):
        assert code(opened(0), command) == "unknown-team"


def test_a_message_for_a_team_that_is_not_open_is_dropped_and_told() -> None:
    assert opened(0).hear(NODES[1], Frontier(OTHER, ())) == [Emit(Refused(NODES[1], "unknown-team"))]


def test_timers_of_a_channel_that_was_closed_are_ignored() -> None:
    member = opened(0)
    member.do(CloseChannel(TEAM))
    assert member.time(f"tell/{TEAM.hex()}") == []


def test_the_decision_logs_head_travels_in_the_frontier() -> None:
    member = opened(0)
    assert member.do(SetDecisions(TEAM, b"term 3")) == []
    assert {message.decisions for message in sends(member.do(Wake()))} == {b"term 3"}


def test_dropping_a_blob_that_is_not_there_does_nothing() -> None:
    assert opened(0).do(DropBlob(bytes(32))) == []


def test_of_a_forgotten_team_no_line_and_no_file_stays_and_others_are_left_alone() -> None:
    member = opened(0)
    member.do(PutBlob(b"theirs"))
    member.do(PutBlob(b"ours"))
    for number in range(limits.CHAT_BLOCK_ENTRIES + 1):
        say(member, b"line %d" % number)
    member.hear(NODES[1], Entries(chain(KEYS[1], 1)[0]))
    fork = chain(KEYS[1], 1, b"another ")[0]
    member.hear(NODES[2], Entries(fork))
    member.do(OpenChannel(OTHER, tuple(NODES[:3])))
    member.do(Say(OTHER, "text", b"stays"))
    member.do(ForgetTeam(TEAM, tuple(NODES[:3]), (name_of(b"theirs"), bytes(32))))
    assert [space for space in member.disk.spaces("chat") if TEAM.hex() in space] == []
    assert [team for team, _ in member.disk.scan("chat")] == [OTHER]
    assert [name for name, _ in member.disk.scan("blobs")] == [name_of(b"ours")]
    assert len(member.disk.spaces(f"chat/{OTHER.hex()}")) == 1
    assert read(member.machine._rows, name_of(b"theirs")) is None
    assert code(member, Say(TEAM, "text", b"")) == "unknown-team"
    member.do(OpenChannel(TEAM, tuple(NODES[:3])))
    assert say(member)[0].key == (1).to_bytes(8)


def test_a_team_may_be_forgotten_after_its_channel_closed_and_twice() -> None:
    member = opened(0)
    say(member)
    member.do(CloseChannel(TEAM))
    assert len(member.do(ForgetTeam(TEAM, tuple(NODES[:3]), ()))) == 1
    assert member.do(ForgetTeam(TEAM, tuple(NODES[:3]), ())) == []

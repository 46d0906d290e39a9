"""Reading a team's talk back from disk."""

from ioa_p2p.gossip import transcript
from ioa_p2p.gossip.commands import CloseChannel
from ioa_p2p.wire.gossip import Entries
from tests.gossip.team import KEYS, NODES, TEAM, Member, chain, opened, pump, say, signed


def talk(member: Member) -> list[bytes]:
    return [entry.body for entry in transcript.read(member._rows, TEAM, NODES[:3])]


def test_a_talk_reads_the_same_to_all_when_each_answers_the_one_before() -> None:
    members = [opened(0), opened(1), opened(2)]
    said = [b"%d" % number for number in range(9)]
    for number, line in enumerate(said):
        speaker = members[number % 3]
        pump(members, {speaker.node: say(speaker, line)})
    assert [talk(member) for member in members] == [said] * 3
    members[0].do(CloseChannel(TEAM))
    assert talk(members[0]) == said


def test_a_line_that_still_waits_for_its_question_is_not_read() -> None:
    member = opened(2)
    member.hear(NODES[0], Entries(signed(KEYS[0], 1, body=b"answer", seen=((NODES[1], 1),))))
    assert talk(member) == []
    member.hear(NODES[1], Entries(chain(KEYS[1], 1, b"question ")[0]))
    assert talk(member) == [b"question line 1", b"answer"]

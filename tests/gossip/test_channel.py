"""The channel of a team, effect by effect."""

from ioa_p2p.effects import Emit, Save, Send, SetTimer
from ioa_p2p.gossip.commands import Say
from ioa_p2p.gossip.events import Delivered, Said
from ioa_p2p.wire import codec, frames
from ioa_p2p.wire.gossip import FIRST_PREVIOUS, Entries, Entry, Held
from tests.gossip.team import KEYS, NODES, NOW, TEAM, chain, events, lines, opened, pump, say, sends


def space(number: int, block: int = 0) -> str:
    return f"chat/{TEAM.hex()}/{NODES[number].hex()}/{block:x}"


def test_a_line_is_saved_then_told_then_pushed_to_every_linked_member():
    member = opened(0)
    effects = member.do(Say(TEAM, "text", b"hello"))
    raw = effects[0].value
    entry = codec.decode(frames.parse(raw).body, Entry)
    assert entry == Entry(NODES[0], TEAM, 0, 1, FIRST_PREVIOUS, (), "text", b"hello", int(NOW.wall))
    others = [node for node in sorted(NODES[:3]) if node != NODES[0]]
    assert effects == [
        Save(space(0), (1).to_bytes(8), raw),
        Emit(Said(TEAM, NODES[0], 1, entry)),
        *[Send(node, Entries(raw)) for node in others],
    ]


def test_an_entry_heard_is_saved_told_and_soon_acknowledged():
    member = opened(1)
    [raw] = chain(KEYS[0], 1)
    entry = codec.decode(frames.parse(raw).body, Entry)
    relayed = [node for node in NODES[:3] if node not in (NODES[0], NODES[1])]
    assert member.hear(NODES[0], Entries(raw)) == [
        Save(space(0), (1).to_bytes(8), raw),
        Emit(Said(TEAM, NODES[0], 1, entry)),
        *[Send(node, Entries(raw)) for node in relayed],
        SetTimer(f"held/{TEAM.hex()}", NOW.boot + 0.05),
    ]
    assert sends(member.time(f"held/{TEAM.hex()}")) == [Held(TEAM, ((NODES[1], NODES[0], 1),))]


def test_the_author_learns_how_many_members_hold_its_line():
    members = [opened(0), opened(1), opened(2)]
    pump(members, {NODES[0]: say(members[0])})
    told = []
    for member in members[1:]:
        heard = pump(members, {member.node: member.time(f"held/{TEAM.hex()}")})
        told += [event for node, event in heard if node == NODES[0]]
    assert told == [Delivered(TEAM, 1, 1, 2), Delivered(TEAM, 1, 2, 2)]


def test_after_a_restart_nothing_is_said_twice_and_no_number_is_used_again():
    member = opened(0)
    for line in (b"one", b"two"):
        say(member, line)
    member.hear(NODES[1], Entries(b"".join(chain(KEYS[1], 2))))
    again = member.restarted()
    assert events(again.effects) == []
    assert again.hear(NODES[1], Entries(chain(KEYS[1], 2)[1]))[0] == SetTimer(f"held/{TEAM.hex()}", NOW.boot + 0.05)
    assert lines(say(again, b"three")) == [(NODES[0], 3)]

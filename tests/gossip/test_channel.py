"""The channel of a team, effect by effect."""

import pytest

from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.effects import Emit, Now, Save, Send, SetTimer
from ioa_p2p.errors import PeerError, UsageError
from ioa_p2p.gossip.commands import LinkPeer, OpenChannel, Say, Wake
from ioa_p2p.gossip.events import Behind, Delivered, Forked, Said
from ioa_p2p.wire import codec, frames, limits
from ioa_p2p.wire.gossip import FIRST_PREVIOUS, Entries, Entry, Frontier, Head, Held, Served, Want, split
from ioa_p2p.wire.ids import blake
from tests.gossip.team import (
    KEYS,
    NODES,
    NOW,
    TEAM,
    Member,
    chain,
    events,
    lines,
    opened,
    pump,
    say,
    sends,
    signed,
)

TELL, REPAIR, HELD, GAPS = (f"{what}/{TEAM.hex()}" for what in ("tell", "repair", "held", "gaps"))


def space(number: int, block: int = 0) -> str:
    return f"chat/{TEAM.hex()}/{NODES[number].hex()}/{block:x}"


def test_a_line_is_saved_then_told_then_pushed_to_every_linked_member() -> None:
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


def test_what_was_said_before_a_start_is_not_said_again_when_the_past_is_told_again() -> None:
    member = opened(0)
    assert all(say(member, words) for words in (b"yes", b"yes", b"no"))
    again = member.restarted()
    told = [
        bool(again.do(Say(TEAM, "text", words, recalled=True))) for words in (b"yes", b"yes", b"no", b"yes", b"new")
    ]
    assert told == [False, False, False, True, True], "each line is recalled once, and then it is a new one"
    assert say(again, b"no"), "who means it may repeat itself"


def test_an_entry_heard_is_saved_told_and_soon_acknowledged() -> None:
    member = opened(1)
    [raw] = chain(KEYS[0], 1)
    entry = codec.decode(frames.parse(raw).body, Entry)
    relayed = [node for node in NODES[:3] if node not in (NODES[0], NODES[1])]
    assert member.hear(NODES[0], Entries(raw)) == [
        Save(space(0), (1).to_bytes(8), raw),
        Emit(Said(TEAM, NODES[0], 1, entry)),
        *[Send(node, Entries(raw)) for node in relayed],
        SetTimer(HELD, NOW.boot + 0.05),
    ]
    assert sends(member.time(HELD)) == [Held(TEAM, ((NODES[1], NODES[0], 1),))]


def test_the_author_learns_how_many_members_hold_its_line() -> None:
    members = [opened(0), opened(1), opened(2)]
    pump(members, {NODES[0]: say(members[0])})
    told = []
    for member in members[1:]:
        heard = pump(members, {member.node: member.time(HELD)})
        told += [event for node, event in heard if node == NODES[0]]
    assert told == [Delivered(TEAM, 1, 1, 2), Delivered(TEAM, 1, 2, 2)]


def test_after_a_restart_nothing_is_said_twice_and_no_number_is_used_again() -> None:
    member = opened(0)
    for line in (b"one", b"two"):
        say(member, line)
    member.hear(NODES[1], Entries(b"".join(chain(KEYS[1], 2))))
    again = member.restarted()
    assert events(again.effects) == []
    assert again.hear(NODES[1], Entries(chain(KEYS[1], 2)[1]))[0] == SetTimer(HELD, NOW.boot + 0.05)
    assert lines(say(again, b"three")) == [(NODES[0], 3)]


# -- frontiers and repair


def frontier(heads: dict[int, int], raws: dict[int, list[bytes]], linked: tuple[int, ...] = (0, 1, 2)) -> Frontier:
    """What a member tells: author number -> seq, with the hashes of `raws`."""
    rows = [
        Head(NODES[author], seq, blake(raws[author][seq - 1])[:8] if seq else bytes(8), author in linked)
        for author, seq in heads.items()
    ]
    return Frontier(TEAM, tuple(rows))


def chain_of(member: Member) -> list[bytes]:
    """A member's own frames on its disk."""
    return [raw for _, raw in member.disk.scan(f"chat/{TEAM.hex()}/{member.node.hex()}/0")]


def test_a_fresh_link_is_greeted_with_the_frontier_and_the_others_soon() -> None:
    member = opened(0, linked=False)
    say(member)
    effects = member.do(LinkPeer(NODES[1], True))
    raw = chain_of(member)[0]
    heads = {
        NODES[0]: Head(NODES[0], 1, blake(raw)[:8], False),
        NODES[1]: Head(NODES[1], 0, bytes(8), True),
        NODES[2]: Head(NODES[2], 0, bytes(8), False),
    }
    assert effects == [
        Send(NODES[1], Frontier(TEAM, tuple(heads[node] for node in sorted(heads)))),
        SetTimer(TELL, NOW.boot + limits.CHAT_TELL_AGAIN_S),
    ]
    assert member.do(LinkPeer(NODES[1], True)) == []


def test_frontiers_go_to_all_linked_members_by_the_clock_and_on_wake() -> None:
    member = opened(0)
    effects = member.time(TELL)
    others = sorted(NODES[1:3])
    assert [effect.to for effect in effects if isinstance(effect, Send)] == others
    [timer] = [effect for effect in effects if isinstance(effect, SetTimer)]
    assert 0.9 * limits.CHAT_TELL_S <= timer.at - NOW.boot <= 1.1 * limits.CHAT_TELL_S
    assert [effect.to for effect in member.do(Wake())] == others


def test_a_frontier_that_shows_more_is_answered_by_a_want_and_that_by_entries_and_an_end_mark() -> None:
    member, raws = opened(1), chain(KEYS[0], 5)
    helper = opened(2)
    for raw in raws:
        helper.hear(NODES[0], Entries(raw))
    member.hear(NODES[0], Entries(raws[0]))
    effects = member.hear(NODES[2], frontier({0: 5}, {0: raws}))
    want = Want(TEAM, NODES[0], 2, 5)
    assert effects == [Send(NODES[2], want), SetTimer(REPAIR, NOW.boot + limits.CHAT_ANSWER_S)]
    answer = helper.hear(NODES[1], want)
    end = Served(TEAM, NODES[0], 2, 5)
    assert answer == [Send(NODES[1], Entries(b"".join(raws[1:]))), Send(NODES[1], end)]
    assert lines(member.hear(NODES[2], answer[0].message)) == [(NODES[0], seq) for seq in (2, 3, 4, 5)]
    assert member.hear(NODES[2], end) == []


def test_a_frontier_that_shows_less_is_answered_by_ours_but_only_every_two_seconds() -> None:
    member = opened(0)
    say(member)
    less = frontier({0: 0, 1: 0, 2: 0}, {})
    soon, later = Now(NOW.wall, NOW.boot + 1.0), Now(NOW.wall, NOW.boot + limits.CHAT_TELL_AGAIN_S)
    member.time(TELL)
    assert member.hear(NODES[1], less, soon) == [SetTimer(TELL, later.boot)]
    [answer] = member.hear(NODES[1], less, later)
    assert isinstance(answer.message, Frontier)
    assert sends(member.hear(NODES[1], less, later)) == []


def test_a_hole_is_pulled_when_it_does_not_close_by_itself() -> None:
    member, raws = opened(1), chain(KEYS[0], 3)
    assert member.hear(NODES[0], Entries(raws[2])) == [
        SetTimer(REPAIR, NOW.boot + limits.CHAT_REPAIR_S),
        SetTimer(GAPS, NOW.boot + limits.CHAT_GAP_S),
        SetTimer(HELD, NOW.boot + limits.CHAT_HELD_S),
    ]
    assert sends(member.time(REPAIR)) == [Want(TEAM, NODES[0], 1, 2)]
    assert lines(member.hear(NODES[0], Entries(b"".join(raws[:2])))) == [(NODES[0], seq) for seq in (1, 2, 3)]


def test_an_answer_is_bounded_in_entries_and_in_bytes() -> None:
    member = opened(0)
    for _ in range(limits.CHAT_WANT_ENTRIES_MAX + 9):
        say(member, b"")
    *parts, end = sends(member.hear(NODES[1], Want(TEAM, NODES[0], 1, 10**12)))
    assert sum(len(list(split(part.raw))) for part in parts) == limits.CHAT_WANT_ENTRIES_MAX
    assert end == Served(TEAM, NODES[0], 1, limits.CHAT_WANT_ENTRIES_MAX + 9)
    for _ in range(40):
        say(member, bytes(limits.CHAT_BODY_BYTES_MAX))
    first = limits.CHAT_WANT_ENTRIES_MAX + 10
    *parts, end = sends(member.hear(NODES[1], Want(TEAM, NODES[0], first, first + 39)))
    assert all(len(part.raw) <= limits.LINK_FRAME_BYTES_MAX - limits.LINK_HEADER_BYTES for part in parts)
    assert sum(len(part.raw) for part in parts) < limits.CHAT_WANT_BYTES_MAX + limits.CHAT_BATCH_BYTES_MAX


# -- acknowledgements, members that lag


def test_word_of_a_member_without_a_link_reaches_the_author_through_another() -> None:
    a, b, c = (opened(number, linked=False) for number in range(3))
    for one, other in ((a, b), (b, a), (b, c), (c, b)):
        one.do(LinkPeer(other.node, True))
    for one, other in ((a, b), (b, a), (b, c), (c, b)):
        other.hear(one.node, sends(one.do(Wake()), other.node)[0])
    pump([a, b, c], {a.node: say(a)})
    heard = []
    for member in (c, b):
        heard += pump([a, b, c], {member.node: member.time(HELD)})
    assert [event for node, event in heard if node == a.node] == [Delivered(TEAM, 1, 1, 2), Delivered(TEAM, 1, 2, 2)]


def test_hearsay_beyond_what_we_hold_is_not_believed() -> None:
    member = opened(0)
    say(member)
    claims = tuple((NODES[2], author, 10**12) for author in NODES[:3])
    assert member.hear(NODES[1], Held(TEAM, claims)) == []


def test_a_member_that_lags_is_told_as_behind_once_gets_no_more_and_is_welcomed_back() -> None:
    member = opened(0, 2)
    for _ in range(limits.CHAT_UNANSWERED_MAX):
        assert sends(say(member, b""))
    effects = say(member, b"")
    assert (sends(effects), events(effects, Behind)) == ([], [Behind(TEAM, NODES[1], True)])
    assert events(say(member, b""), Behind) == []
    effects = member.hear(NODES[1], Held(TEAM, ((NODES[1], NODES[0], limits.CHAT_UNANSWERED_MAX),)))
    assert events(effects) == [Delivered(TEAM, limits.CHAT_UNANSWERED_MAX, 1, 1), Behind(TEAM, NODES[1], False)]
    assert [type(message) for message in sends(effects)] == [Frontier]
    assert sends(say(member, b""))


# -- causal order, forks


def test_an_entry_names_what_its_author_had_read_since_its_last_one() -> None:
    member = opened(2)
    member.hear(NODES[0], Entries(b"".join(chain(KEYS[0], 2))))
    member.hear(NODES[1], Entries(chain(KEYS[1], 1)[0]))
    seen = [dict(events(say(member), Said)[0].entry.seen) for _ in range(2)]
    member.hear(NODES[0], Entries(chain(KEYS[0], 3)[2]))
    seen.append(dict(events(say(member), Said)[0].entry.seen))
    again = member.restarted()
    seen.append(dict(events(say(again), Said)[0].entry.seen))
    assert seen == [{NODES[0]: 2, NODES[1]: 1}, {}, {NODES[0]: 3}, {}]


def test_a_line_whose_question_never_comes_is_told_after_a_minute_and_not_again_after_a_restart() -> None:
    member = opened(1)
    answer = signed(KEYS[0], 1, seen=((NODES[2], 1),))
    effects = member.hear(NODES[0], Entries(answer))
    assert lines(effects) == []
    assert SetTimer(GAPS, NOW.boot + limits.CHAT_GAP_S) in effects
    effects = member.time(GAPS, Now(NOW.wall, NOW.boot + limits.CHAT_GAP_S))
    assert lines(effects) == [(NODES[0], 1)]
    assert Save(f"chat/{TEAM.hex()}/forced", NODES[0], (1).to_bytes(8)) in effects
    again = member.restarted()
    assert lines(again.effects) == []
    [late] = events(again.hear(NODES[2], Entries(chain(KEYS[2], 1)[0])), Said)
    assert (late.author, late.seq, late.late) == (NODES[2], 1, True)


def test_two_histories_freeze_their_author_and_everyone_gets_the_proof() -> None:
    member, raws = opened(1), chain(KEYS[0], 4)
    member.hear(NODES[0], Entries(b"".join(raws[:3])))
    other = signed(KEYS[0], 3, blake(raws[1]), b"other")
    effects = member.hear(NODES[2], Entries(other))
    proof = Entries(raws[2] + other)
    assert effects == [
        Save(f"chat/{TEAM.hex()}/{NODES[0].hex()}/fork", b"", codec.encode((2, (raws[2], other)))),
        *[Send(node, proof) for node in sorted((NODES[0], NODES[2]))],
        Emit(Forked(TEAM, NODES[0], 2)),
    ]
    for heard_by in (member, member.restarted()):
        assert heard_by.hear(NODES[0], Entries(raws[3])) == []
    assert member.hear(NODES[0], Entries(other)) == []


def test_a_frontier_with_another_history_is_asked_for_proof() -> None:
    member, raws = opened(1), chain(KEYS[0], 3)
    member.hear(NODES[0], Entries(b"".join(raws)))
    effects = member.hear(NODES[2], frontier({0: 2, 1: 0, 2: 0}, {0: chain(KEYS[0], 3, b"another ")}))
    assert Want(TEAM, NODES[0], 2, 2) in sends(effects, NODES[2])


def test_a_member_that_still_counts_a_frozen_author_gets_the_proof_with_the_frontier() -> None:
    member, raws = opened(1), chain(KEYS[0], 4)
    member.hear(NODES[0], Entries(b"".join(raws[:3])))
    other = signed(KEYS[0], 3, blake(raws[1]), b"other")
    member.hear(NODES[0], Entries(other))
    effects = member.hear(NODES[2], frontier({0: 3, 1: 0, 2: 0}, {0: raws}))
    assert sends(effects, NODES[2]) == [Entries(raws[2] + other)]


def test_a_node_whose_own_chain_forked_may_not_speak() -> None:
    member = opened(0)
    say(member)
    member.hear(NODES[1], Entries(signed(KEYS[0], 1, body=b"a clone of me")))
    with pytest.raises(UsageError, match="two histories"):
        say(member)


# -- loss of the disk


def test_a_node_that_lost_its_disk_gets_its_own_lines_back_before_it_goes_on() -> None:
    helper, raws = opened(1), chain(KEYS[0], 3)
    helper.hear(NODES[0], Entries(b"".join(raws)))
    member = opened(0)
    [want] = [one for one in sends(member.hear(NODES[1], frontier({0: 3}, {0: raws}))) if isinstance(one, Want)]
    pump([member, helper], {member.node: [Send(NODES[1], want)]})
    assert lines(say(member)) == [(NODES[0], 4)]


def test_a_node_that_knows_of_own_lines_it_lost_does_not_speak_before_they_are_back() -> None:
    member, raws = opened(0), chain(KEYS[0], 3)
    member.hear(NODES[1], Entries(raws[2]))
    with pytest.raises(UsageError, match="missing on disk"):
        say(member)
    member.hear(NODES[1], Entries(b"".join(raws[:2])))
    assert lines(say(member)) == [(NODES[0], 4)]


# -- members


def test_a_newcomer_is_heard_and_who_left_is_not() -> None:
    member = opened(0)
    member.hear(NODES[2], Entries(chain(KEYS[2], 1)[0]))
    member.do(OpenChannel(TEAM, (NODES[0], NODES[1], NODES[3])))
    with pytest.raises(PeerError) as refused:
        member.hear(NODES[1], Entries(chain(KEYS[2], 2)[1]))
    assert refused.value.code == "not-a-member"
    member.do(LinkPeer(NODES[3], True))
    assert lines(member.hear(NODES[3], Entries(chain(KEYS[3], 1)[0]))) == [(NODES[3], 1)]
    assert lines(member.restarted().hear(NODES[3], Entries(chain(KEYS[3], 2)[1]))) == [(NODES[3], 2)]


def test_in_a_large_team_the_rest_get_a_digest_and_pull_what_did_not_come() -> None:
    keys = [*KEYS, *(NodeKey(bytes([number]) * 32) for number in range(1, 5))]
    nodes = [key.node for key in keys]
    member = opened(0, linked=False)
    member.do(OpenChannel(TEAM, tuple(nodes)))
    for node in nodes[1:]:
        member.do(LinkPeer(node, True))
    messages = sends(say(member))
    assert [type(message) for message in messages] == [Entries] * limits.CHAT_PUSH_SOME + [Held] * 13
    other = opened(1)
    assert SetTimer(REPAIR, NOW.boot + limits.CHAT_REPAIR_S) in other.hear(NODES[0], messages[-1])
    assert Want(TEAM, NODES[0], 1, 1) in sends(other.time(REPAIR), NODES[0])


# -- bounds and breaks


def test_the_next_range_is_asked_as_soon_as_an_answer_ends() -> None:
    member, helper, raws = opened(1), opened(2), chain(KEYS[0], limits.CHAT_WANT_ENTRIES_MAX + 5)
    for raw in raws:
        helper.hear(NODES[0], Entries(raw))
    [want] = sends(member.hear(NODES[2], frontier({0: len(raws)}, {0: raws})), NODES[2])
    heard = pump([member, helper], {member.node: [Send(NODES[2], want)]})
    assert [event.seq for _, event in heard if isinstance(event, Said)] == list(range(1, len(raws) + 1))


def test_what_was_asked_of_a_lost_member_is_asked_of_another_at_once() -> None:
    member, raws = opened(1), chain(KEYS[0], 3)
    for teller in (0, 2):
        effects = member.hear(NODES[teller], frontier({0: 3}, {0: raws}))
        assert len(sends(effects)) == (1 if teller == 0 else 0)
    assert Want(TEAM, NODES[0], 1, 3) in sends(member.do(LinkPeer(NODES[0], False)), NODES[2])


def test_an_author_whose_lines_wait_is_not_heard_without_end() -> None:
    member, previous = opened(1), FIRST_PREVIOUS
    for seq in range(1, limits.CHAT_WAITING_MAX + 2):
        raw = signed(KEYS[0], seq, previous, seen=((NODES[2], 1),) if seq == 1 else ())
        previous = blake(raw)
        saved = [one for one in member.hear(NODES[0], Entries(raw)) if isinstance(one, Save)]
        assert len(saved) == (seq <= limits.CHAT_WAITING_MAX)
    later = Now(NOW.wall, NOW.boot + limits.CHAT_ANSWER_S)
    effects = member.time(REPAIR, later)
    assert [want.author for want in sends(effects)] == [NODES[2]]
    assert SetTimer(REPAIR, later.boot + limits.CHAT_ANSWER_S) in effects
    effects = member.hear(NODES[2], Entries(chain(KEYS[2], 1)[0]), later)
    assert len(lines(effects)) == limits.CHAT_WAITING_MAX + 1
    assert sends(member.time(REPAIR, later), NODES[0]) == [
        Want(TEAM, NODES[0], limits.CHAT_WAITING_MAX + 1, limits.CHAT_WAITING_MAX + 1)
    ]


def test_an_early_entry_that_does_not_link_when_the_hole_closes_is_a_fork() -> None:
    member, raws = opened(1), chain(KEYS[0], 2)
    member.hear(NODES[0], Entries(signed(KEYS[0], 3, bytes(32))))
    effects = member.hear(NODES[0], Entries(b"".join(raws)))
    assert lines(effects) == [(NODES[0], 1), (NODES[0], 2)]
    assert events(effects, Forked) == [Forked(TEAM, NODES[0], 1)]


def test_a_claim_beyond_our_last_line_counts_for_our_last_line() -> None:
    member = opened(0)
    say(member)
    effects = member.hear(NODES[1], Held(TEAM, ((NODES[1], NODES[0], 10**12),)))
    assert events(effects) == [Delivered(TEAM, 1, 1, 2)]


def test_nothing_is_acknowledged_to_whom_we_have_no_link() -> None:
    member = opened(1, linked=False)
    member.hear(NODES[0], Entries(chain(KEYS[0], 1)[0]))
    assert member.time(HELD) == []

"""An entry that nobody has: marked after a minute, talked on over, filled and told late if it turns up."""

import pytest

from ioa_p2p.effects import Emit, Now, Save, SetTimer
from ioa_p2p.gossip.events import Forked, Gap, Said
from ioa_p2p.gossip.gaps import runs
from ioa_p2p.wire import limits
from ioa_p2p.wire.gossip import Entries, Want
from ioa_p2p.wire.ids import blake
from tests.gossip.team import KEYS, NODES, NOW, TEAM, Member, chain, events, lines, opened, sends, signed
from tests.gossip.test_channel import frontier

GAPS = f"gaps/{TEAM.hex()}"
RAWS = chain(KEYS[0], 6)
MINUTE = Now(NOW.wall, NOW.boot + limits.CHAT_GAP_S)


def member_without(*missing: int) -> Member:
    """Heard all of RAWS but these, a minute ago."""
    member = opened(1)
    for seq, raw in enumerate(RAWS, 1):
        if seq not in missing:
            member.hear(NODES[0], Entries(raw))
    return member


def test_a_hole_counts_as_met_after_a_minute_durably_and_the_rest_is_told_in_order() -> None:
    member = member_without(3)
    assert events(member.time(GAPS, Now(NOW.wall, MINUTE.boot - 1))) == []
    effects = member.time(GAPS, MINUTE)
    assert effects[:2] == [
        Save(f"chat/{TEAM.hex()}/{NODES[0].hex()}/0", (3).to_bytes(8), b"hole"),
        Emit(Gap(TEAM, NODES[0], 3, 3)),
    ]
    assert lines(effects) == [(NODES[0], 4), (NODES[0], 5), (NODES[0], 6)]
    for one in (member, member.restarted()):
        assert one.machine.gaps(TEAM) == [(NODES[0], 3, 3)]
        assert lines(one.hear(NODES[0], Entries(chain(KEYS[0], 7)[6]))) == [(NODES[0], 7)]
        assert events(one.time(GAPS, MINUTE), Gap) == []


def test_the_minute_begins_anew_whenever_the_chain_grows() -> None:
    member = member_without(2, 5)
    half = Now(NOW.wall, NOW.boot + 30.0)
    assert lines(member.hear(NODES[0], Entries(RAWS[1]), half)) == [(NODES[0], seq) for seq in (2, 3, 4)]
    assert events(member.time(GAPS, MINUTE), Gap) == []
    assert events(member.time(GAPS, Now(NOW.wall, half.boot + limits.CHAT_GAP_S)), Gap) == [Gap(TEAM, NODES[0], 5, 5)]


def test_the_timer_is_set_when_something_comes_too_early() -> None:
    assert SetTimer(GAPS, MINUTE.boot) in opened(1).hear(NODES[0], Entries(RAWS[2]))


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("order", [(2, 3, 4), (4, 3, 2), (3, 2, 4)])
def test_what_turns_up_fills_its_hole_and_is_told_late_once(order: tuple[int, ...], restarted: bool) -> None:
    member = member_without(2, 3, 4)
    assert events(member.time(GAPS, MINUTE), Gap) == [Gap(TEAM, NODES[0], 2, 4)]
    member = member.restarted(MINUTE) if restarted else member
    for seq in order:
        [told] = events(member.hear(NODES[2], Entries(RAWS[seq - 1])), Said)
        assert (told.seq, told.late) == (seq, True)
        assert events(member.hear(NODES[2], Entries(RAWS[seq - 1]))) == []
    assert member.machine.gaps(TEAM) == []
    for one in (member, member.restarted()):
        served = sends(one.hear(NODES[2], Want(TEAM, NODES[0], 1, 6)))[0]
        assert served == Entries(b"".join(RAWS))


def test_a_hole_is_left_out_when_it_is_asked_for() -> None:
    member = member_without(2)
    member.time(GAPS, MINUTE)
    for one in (member, member.restarted()):
        assert sends(one.hear(NODES[2], Want(TEAM, NODES[0], 1, 3)))[0] == Entries(RAWS[0] + RAWS[2])


def test_whoever_tells_of_more_is_asked_for_the_hole_again() -> None:
    member = member_without(2, 3)
    member.time(GAPS, MINUTE)
    effects = member.hear(NODES[2], frontier({0: 6, 1: 0, 2: 0}, {0: RAWS}))
    assert Want(TEAM, NODES[0], 2, 3) in sends(effects, NODES[2])
    less = member.hear(NODES[2], frontier({0: 1, 1: 0, 2: 0}, {0: RAWS}))
    assert not [message for message in sends(less) if isinstance(message, Want)]


def test_what_does_not_fit_the_hole_proves_a_fork() -> None:
    member = member_without(3)
    member.time(GAPS, MINUTE)
    other = signed(KEYS[0], 3, blake(RAWS[1]), b"another history")
    assert events(member.hear(NODES[2], Entries(other)), Forked) == [Forked(TEAM, NODES[0], 2)]
    witness = opened(2)
    for raw in RAWS[:2]:
        witness.hear(NODES[0], Entries(raw))
    told = sends(member.hear(NODES[2], frontier({0: 6, 1: 0, 2: 0}, {0: RAWS})), NODES[2])
    [proof] = [message for message in told if isinstance(message, Entries)]
    assert events(witness.hear(NODES[1], proof), Forked) == [Forked(TEAM, NODES[0], 2)]


def test_what_does_not_follow_the_entry_before_the_hole_proves_a_fork() -> None:
    member = member_without(3, 4)
    member.time(GAPS, MINUTE)
    other = signed(KEYS[0], 3, bytes(32), b"another history")
    assert events(member.hear(NODES[2], Entries(other)), Forked) == [Forked(TEAM, NODES[0], 1)]


def test_a_line_that_others_read_and_nobody_has_is_a_gap_too() -> None:
    member = opened(1)
    member.hear(NODES[0], Entries(signed(KEYS[0], 1, seen=((NODES[2], 2),))))
    effects = member.time(GAPS, MINUTE)
    assert events(effects, Gap) == [Gap(TEAM, NODES[2], 1, 2)]
    assert lines(effects) == [(NODES[0], 1)]
    for one in (member, member.restarted()):
        assert one.machine.gaps(TEAM) == [(NODES[2], 1, 2)]
    first = member.hear(NODES[2], Entries(chain(KEYS[2], 1)[0]))
    assert [(told.seq, told.late) for told in events(first, Said)] == [(1, True)]
    assert member.machine.gaps(TEAM) == [(NODES[2], 2, 2)]


def test_numbers_in_a_row_are_one_range() -> None:
    assert runs([]) == []
    assert runs({5, 1, 2, 3, 9}) == [(1, 3), (5, 5), (9, 9)]


def test_forks_behind_a_hole_are_told_once_and_set_off_no_endless_exchange_of_proofs() -> None:
    members = [opened(number) for number in (1, 2)]
    first, second = (signed(KEYS[0], 2, bytes(32), body) for body in (b"one", b"another"))
    lies = (first, second, signed(KEYS[0], 2, blake(first), b"a third"))
    for member, lie in zip(members, lies[:2], strict=True):
        member.hear(NODES[0], Entries(lie))
        member.time(GAPS, MINUTE)
    mail = [(member, Entries(lie)) for member in members for lie in lies]
    for _ in range(200):
        if mail:
            member, message = mail.pop(0)
            proofs = [sent for sent in sends(member.hear(NODES[0], message)) if isinstance(sent, Entries)]
            mail += [(other, proof) for proof in proofs for other in members if other is not member]
    assert not mail

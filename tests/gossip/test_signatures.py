"""Sender, receiver and mallory: what nobody but the author may put into a chain."""

from collections.abc import Callable

import pytest

from ioa_p2p.crypto import envelope
from ioa_p2p.effects import Emit
from ioa_p2p.errors import PeerError
from ioa_p2p.gossip.events import Refused
from ioa_p2p.wire.frames import Frame, Kind
from ioa_p2p.wire.gossip import Entries, Frontier, Want
from ioa_p2p.wire.ids import blake
from tests.gossip.team import KEYS, NODES, TEAM, Member, chain, events, lines, opened, signed

SENDER, RECEIVER, MALLORY, STRANGER = range(4)


def flipped(raw: bytes, at: int) -> bytes:
    at %= len(raw)
    return raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]


def in_another_name(raw: bytes, victim: int) -> bytes:
    """Mallory's own frame with the victim's key written over hers."""
    return raw.replace(NODES[MALLORY], NODES[victim], 1)


Forge = Callable[[bytes], bytes]
FORGED: dict[str, tuple[Forge, str]] = {
    "the signature broken": (lambda raw: flipped(raw, -1), "bad-signature"),
    "the body changed": (lambda raw: flipped(raw, -75), "bad-signature"),
    "mallory's words in the sender's name": (
        lambda _: in_another_name(signed(KEYS[MALLORY], 1, body=b"pay"), SENDER),
        "bad-signature",
    ),
    "from another mesh": (lambda _: signed(KEYS[SENDER], 1, network=b"some other mesh."), "bad-signature"),
    "signed as a task": (lambda _: signed(KEYS[SENDER], 1, kind=Kind.TASK), "wrong-kind"),
    "a task made an entry": (
        lambda _: signed(KEYS[SENDER], 1, kind=Kind.TASK).replace(b"\x01\x09", b"\x01\x03", 1),
        "bad-signature",
    ),
    "an author who is no member": (lambda _: signed(KEYS[STRANGER], 1), "not-a-member"),
    "another version": (lambda raw: flipped(raw, 0), "unknown-version"),
    "cut off": (lambda raw: raw[:-1], "short-frame"),
    "nothing": (lambda _: b"", "short-frame"),
}


def held(member: Member) -> list[tuple[bytes, int, int | None]]:
    """What the member holds of each chain."""
    chains = member.machine._channels[TEAM]._chains
    return [(author, chain.head, chain.gap) for author, chain in chains.items()]


@pytest.mark.parametrize("name", FORGED)
def test_what_mallory_makes_up_is_refused_and_changes_nothing(name: str) -> None:
    forge, code = FORGED[name]
    member, [raw] = opened(RECEIVER), chain(KEYS[SENDER], 1)
    before = held(member)
    with pytest.raises(PeerError) as refused:
        member.hear(NODES[MALLORY], Entries(forge(raw)))
    assert (refused.value.code, held(member)) == (code, before)
    assert lines(member.hear(NODES[SENDER], Entries(raw))) == [(NODES[SENDER], 1)]


def test_a_member_may_pass_on_what_the_sender_signed() -> None:
    member = opened(RECEIVER)
    assert lines(member.hear(NODES[MALLORY], Entries(chain(KEYS[SENDER], 1)[0]))) == [(NODES[SENDER], 1)]


def test_a_neighbour_that_is_no_member_is_not_heard_at_all() -> None:
    member, [raw] = opened(RECEIVER), chain(KEYS[SENDER], 1)
    for message in (Entries(raw), Frontier(TEAM, ()), Want(TEAM, NODES[SENDER], 1, 1)):
        with pytest.raises(PeerError) as refused:
            member.hear(NODES[STRANGER], message)
        assert refused.value.code == "not-a-member"


def test_an_entry_of_another_team_stays_out_and_is_no_fault() -> None:
    member = opened(RECEIVER)
    effects = member.hear(NODES[SENDER], Entries(signed(KEYS[SENDER], 1, team=b"some other team.")))
    assert effects == [Emit(Refused(NODES[SENDER], "unknown-team"))]


def test_a_forgery_ends_its_batch_and_what_came_before_it_counts() -> None:
    member, raws = opened(RECEIVER), chain(KEYS[SENDER], 3)
    effects = member.hear(NODES[MALLORY], Entries(raws[0] + flipped(raws[1], -1) + raws[2]))
    assert lines(effects) == [(NODES[SENDER], 1)]
    assert events(effects, Refused) == [Refused(NODES[MALLORY], "bad-signature")]


def test_a_copy_costs_no_signature_check(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[bytes] = []
    check = envelope.check

    def counted(frame: Frame, network: bytes) -> None:
        checked.append(frame.raw)
        check(frame, network)

    monkeypatch.setattr(envelope, "check", counted)
    member, raws = opened(RECEIVER), chain(KEYS[SENDER], 3)
    for raw in (raws[0], raws[0], raws[2], raws[2], raws[1], raws[1]):
        member.hear(NODES[SENDER], Entries(raw))
    assert checked == [raws[0], raws[2], raws[1]]


def test_a_forged_fork_freezes_nobody() -> None:
    member, raws = opened(RECEIVER), chain(KEYS[SENDER], 3)
    member.hear(NODES[SENDER], Entries(b"".join(raws[:2])))
    for seq, previous in ((2, blake(raws[0])), (3, bytes(32)), (1, bytes(32))):
        forged = in_another_name(signed(KEYS[MALLORY], seq, previous, b"fork"), SENDER)
        with pytest.raises(PeerError, match="bad-signature"):
            member.hear(NODES[MALLORY], Entries(forged))
    assert lines(member.hear(NODES[SENDER], Entries(raws[2]))) == [(NODES[SENDER], 3)]

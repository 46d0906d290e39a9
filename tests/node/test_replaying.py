"""Transcripts that lie, by a reader's own checks: each lie is refused by name, or is a claim that only its exporter
makes."""

import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.errors import PeerError
from ioa_p2p.wire import limits
from ioa_p2p.wire.ids import network_id
from ioa_p2p.wire.transcript import MAGIC, Absent, Decided, Line, Record, Start
from tests.node.transcripts import (
    LATER,
    Book,
    before_the_seal,
    code_of,
    nth,
    pair,
    places,
    read,
    records,
    resealed,
    sealed,
    working,
)
from tests.team.people import ANN, BOB, CY, DEE, MALLORY, NETWORK, TEAM, founding


def swap(told: list[Record], one: int, other: int) -> list[Record]:
    told[one], told[other] = told[other], told[one]
    return told


# -- a changed file


def test_a_changed_byte_anywhere_is_found(tmp_path: Path) -> None:
    data = pair().transcript(tmp_path)
    read(data)
    for place in range(len(data)):
        assert code_of(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]), place


def test_a_member_that_seals_a_changed_byte_anew_can_change_nothing_but_when_it_exported(tmp_path: Path) -> None:
    data = pair().transcript(tmp_path)
    honest, _ = read(data)
    head = before_the_seal(data)
    for place in range(0, len(head), 3):
        forged = resealed(data, head[:place] + bytes([head[place] ^ 1]) + head[place + 1 :])
        try:
            events, _ = read(forged)
        except PeerError:
            continue
        assert events[1:] == honest[1:], place
        assert {**events[0], "at": 0} == {**honest[0], "at": 0}, place


def test_a_file_cut_anywhere_is_refused(tmp_path: Path) -> None:
    data = pair().transcript(tmp_path)
    for end in (*places(data), *range(0, len(data), 40)):
        if end < len(data):
            assert code_of(data[:end]) in ("cut-short", "not-a-transcript"), end


def test_whatever_follows_the_seal_is_refused(tmp_path: Path) -> None:
    data = pair().transcript(tmp_path)
    for more in (b"\0", data[-40:], data[list(places(data))[1] : list(places(data))[2]]):
        assert code_of(data + more) in ("cut-short", "after-the-end", "undecodable", "record-too-large")


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "not-a-transcript"),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "not-a-transcript"),
        (b"SQLite format 3\0" + bytes(100), "not-a-transcript"),
        (MAGIC[:-1], "not-a-transcript"),
        (MAGIC + b"one\n", "not-a-transcript"),
        (MAGIC + b"9" * 5_000, "not-a-transcript"),
        (MAGIC + b"2\n" + bytes(9), "newer-transcript"),
        (MAGIC + b"1\n", "cut-short"),
        (MAGIC + b"1\n\xff\xff\xff\xff", "record-too-large"),
        (MAGIC + b"1\n\0\0\0\1\xc1", "undecodable"),
        (MAGIC + b"1\n\0\0\0\0", "undecodable"),
    ],
)
def test_what_is_no_transcript_is_refused_in_one_sentence(data: bytes, code: str) -> None:
    with pytest.raises(PeerError) as refused:
        read(data)
    assert refused.value.code == code
    assert "\n" not in str(refused.value)


# -- a member that lies

Lie = Callable[[Book, list[Record]], Iterable[Record]]


def without(kind: type[Any], number: int) -> Lie:
    def tell(book: Book, told: list[Record]) -> list[Record]:
        place = nth(told, kind, number)
        return told[:place] + told[place + 1 :]

    return tell


def instead(kind: type[Any], number: int, record: Callable[[Book], Record]) -> Lie:
    def tell(book: Book, told: list[Record]) -> list[Record]:
        place = nth(told, kind, number)
        return [*told[:place], record(book), *told[place + 1 :]]

    return tell


def also(record: Callable[[Book], Record]) -> Lie:
    return lambda book, told: [*told[:-1], record(book)]


def swapped(kind: type[Any], one: int, other: int) -> Lie:
    return lambda book, told: swap(told, nth(told, kind, one), nth(told, kind, other))


def elected(leader: NodeKey, *voters: NodeKey, **changed: Any) -> Lie:
    def entry(book: Book) -> Record:
        votes = tuple(book.vote(key, leader, 3, **changed) for key in voters)
        return Decided(book.entry(leader, term=3, certificate=votes))

    return also(entry)


OTHER_MESH = network_id("another")
LIES: dict[str, tuple[Lie, str]] = {
    "an entry left out": (without(Decided, 4), "wrong-entry"),
    "the founding left out": (without(Decided, 0), "wrong-founding"),
    "the beginning left out": (without(Start, 0), "wrong-record"),
    "two entries swapped": (swapped(Decided, 3, 4), "wrong-entry"),
    "two lines swapped": (swapped(Line, 0, 1), "out-of-order"),
    "a line left out": (without(Line, 0), "out-of-order"),
    "a second beginning": (also(lambda book: Start(NETWORK, TEAM, ANN.node, 0)), "wrong-record"),
    "an entry of a former coordinator": (
        also(lambda book: Decided(book.entry(ANN, step=b""))), "wrong-signer"),
    "an entry of another mesh": (also(lambda book: Decided(book.entry(network=OTHER_MESH))), "bad-signature"),
    "an entry of another team": (also(lambda book: Decided(book.entry(team=bytes(16)))), "wrong-entry"),
    "an entry of another incarnation": (also(lambda book: Decided(book.entry(incarnation=1))), "wrong-entry"),
    "a term without votes": (elected(BOB), "no-certificate"),
    "a term by a minority": (elected(BOB, BOB, CY), "no-quorum"),
    "a term by one voice thrice": (elected(BOB, BOB, BOB, BOB), "repeated-voter"),
    "a term by strangers": (elected(BOB, BOB, CY, MALLORY), "not-a-voter"),
    "a term of a stranger": (elected(MALLORY, BOB, CY, DEE), "not-a-candidate"),
    "votes for another": (elected(BOB, BOB, CY, DEE, candidate=CY.node), "wrong-vote"),
    "votes over another log": (elected(BOB, BOB, CY, DEE, last_index=3), "wrong-entry"),
    "votes under another roster": (elected(BOB, BOB, CY, DEE, roster_hash=bytes(32)), "wrong-vote"),
    "a member that never signed": (
        instead(Decided, 0, lambda book: Decided(founding(signers=(ANN, BOB, CY)))), "signature-missing"),
    "a team founded by another": (
        instead(Decided, 0, lambda book: Decided(founding(by=MALLORY))), "wrong-founding"),
    "a line of a stranger": (also(lambda book: Line(book.line(MALLORY, "hello"))), "not-a-member"),
    "a line of another mesh": (also(lambda book: Line(book.line(DEE, "hello", OTHER_MESH))), "bad-signature"),
    "a line of another team": (also(lambda book: Line(book.line(DEE, "hello", team=bytes(16)))), "wrong-team"),
    "a line that skips one": (also(lambda book: Line(book.line(DEE, "hello", seq=2))), "wrong-line"),
    "a line again": (also(lambda book: Line(book.lines[CY.node][0])), "wrong-line"),
    "another line two": (also(lambda book: Line(book.line(BOB, "no", seq=2))), "wrong-line"),
    "a line of another history": (also(lambda book: Line(book.line(BOB, "no", previous=bytes(32)))), "wrong-line"),
    "a decision as a line": (also(lambda book: Line(book.frames[1])), "wrong-kind"),
    "a line as a decision": (also(lambda book: Decided(book.lines[CY.node][0])), "wrong-kind"),
    "a gap that is none": (also(lambda book: Absent("lines", BOB.node, 1, 2)), "wrong-gap"),
    "a gap backwards": (also(lambda book: Absent("lines", BOB.node, 3, 2)), "wrong-gap"),
    "a gap among the decisions that is none": (also(lambda book: Absent("decisions", b"", 2, 3)), "wrong-gap"),
    "a gap of decisions backwards": (also(lambda book: Absent("decisions", b"", 10, 9)), "wrong-gap"),
    "a gap of decisions twice": (
        lambda book, told: [*told[:-1], *(2 * [Absent("decisions", b"", 10, 11)])], "wrong-gap"),
}  # fmt: skip


@pytest.mark.parametrize("name", LIES)
def test_a_lie_under_a_good_seal_is_refused_by_name_with_its_place(name: str, tmp_path: Path) -> None:
    lie, code = LIES[name]
    book = working()
    told = records(book.transcript(tmp_path))
    with pytest.raises(PeerError) as refused:
        read(sealed(lie(book, told)))
    assert refused.value.code == code
    assert str(refused.value).startswith("byte "), "it says where"


def test_a_seal_of_a_stranger_or_of_another_file_is_refused(tmp_path: Path) -> None:
    told = records(working().transcript(tmp_path))
    read(sealed(told))
    start = Start(NETWORK, TEAM, MALLORY.node, LATER)
    assert code_of(sealed([start, *told[1:]], MALLORY)) == "not-a-member"
    for changed in ({"index": 8}, {"lines": 2}, {"at": 0}, {"digest": bytes(32)}, {"team": bytes(16)}):
        assert code_of(sealed(told, **changed)) == "wrong-seal", changed
    assert code_of(sealed(told, BOB, node=BOB.node)) == "wrong-seal", "another member than the one that it names"
    assert code_of(sealed([*told[:1], *told[2:]])) != "wrong-seal"


def test_records_in_any_order_under_a_good_seal_end_in_a_verdict_or_a_refusal(tmp_path: Path) -> None:
    told, rng = records(working().transcript(tmp_path)), random.Random(7)
    refused = 0
    for _ in range(300):
        some = [record for record in told[1:-1] if rng.random() < 0.9]
        for _ in range(rng.randrange(3)):
            some.insert(rng.randrange(len(some) + 1), rng.choice(told))
        try:
            read(sealed([told[0], *some]))
        except PeerError:
            refused += 1
    assert 200 < refused < 300


def test_whoever_invents_authors_without_end_is_stopped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(limits, "TRANSCRIPT_AUTHORS_MAX", 9)
    book = working()
    told = records(book.transcript(tmp_path))[:-1]
    crowd = [Line(book.line(NodeKey(bytes([number]) * 32), "hello")) for number in range(50, 62)]
    assert code_of(sealed([*told, *crowd])) == "too-many-authors"

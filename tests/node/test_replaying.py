"""Transcripts that lie, by a reader's own checks: each lie is refused by name, or is a claim that only its exporter
makes."""

import tracemalloc
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.effects import Save
from ioa_p2p.errors import PeerError
from ioa_p2p.gossip import blobs
from ioa_p2p.team import saved_state
from ioa_p2p.team.decisions import spaces
from ioa_p2p.team.state import TeamState
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.decision import Snapshot
from ioa_p2p.wire.ids import blake, network_id
from ioa_p2p.wire.spending import UNLIMITED, Spent
from ioa_p2p.wire.step import (
    Assign,
    Blob,
    Checkpoint,
    Conclude,
    Discuss,
    Hear,
    Outcome,
    Promote,
    Remove,
    Resume,
    Spend,
    encode_step,
)
from ioa_p2p.wire.transcript import MAGIC, Absent, Decided, Forked, Line, Piece, Record, Start, State
from tests.node.transcripts import (
    LATER,
    PAIR,
    Book,
    before_the_seal,
    places,
    read,
    records,
    resealed,
    sealed,
)
from tests.team.people import ANN, BOB, CY, DEE, EVE, MALLORY, NETWORK, ROSTER, TEAM, admission, founding, spec

DATA = bytes(range(256)) * 500  # three pieces
FILE = Blob("counts.csv", "text/csv", blobs.name_of(DATA), len(DATA))


def code_of(data: bytes, network: bytes | None = None) -> str:
    with pytest.raises(PeerError) as refused:
        read(data, network)
    return refused.value.code


def pair() -> Book:
    """The smallest team, and the shortest life of one."""
    book = Book(founding(PAIR, (ANN, BOB)), (ANN, BOB))
    book.elect()
    book.decide(Discuss(ANN.node, "ann", "hello"))
    book.say(ANN, "hello")
    book.say(BOB, "aside", (ANN, 1))
    book.decide(Conclude("done", "hello"))
    return book


def working() -> Book:
    """Four members; a turn, a task with a file, another term, the end."""
    book = Book()
    book.elect()
    book.decide(Discuss(BOB.node, "bob", prompt="what do you see?"), Hear(1, "words"))
    book.say(BOB, "words")
    book.decide(Assign("sync", (spec(1),)), Outcome(spec(1).id, 1, "succeeded", blobs=(FILE,), summary="seven"))
    book.elect(CY, [book.vote(key, CY, 2) for key in (BOB, CY, DEE)])
    book.decide(Resume("it is there"), Discuss(CY.node, "cy", "so it is"))
    book.say(CY, "so it is", (BOB, 1))
    book.say(BOB, "indeed", (CY, 1))
    book.decide(Conclude("done", "seven", (spec(1).id,)))
    return book


def swap(told: list[Record], one: int, other: int) -> list[Record]:
    told[one], told[other] = told[other], told[one]
    return told


def nth(told: list[Record], kind: type[Any], number: int) -> int:
    """Where the record stands; -1 is the last of its kind."""
    return [place for place, record in enumerate(told) if isinstance(record, kind)][number]


# -- what holds


def test_a_whole_story_is_told_in_order_and_verified(tmp_path: Path) -> None:
    events, verdict = read(working().transcript(tmp_path), NETWORK)
    told = [(event["kind"], event.get("state") or event.get("text") or event.get("phase")) for event in events]
    assert [each for each in told if each[0] in ("said", "task", "asked", "chat", "signed")] == [
        ("asked", "what do you see?"), ("said", "words"), ("signed", "words"), ("task", "offered"),
        ("task", "succeeded"), ("said", "so it is"), ("signed", "so it is"), ("chat", "indeed"),
    ]  # fmt: skip
    assert [event["term"] for event in events if event["kind"] == "elected"] == [1, 2]
    assert (verdict.entries, verdict.terms, len(verdict.members), verdict.lines) == (10, 2, 4, 3)
    assert (verdict.own_words, verdict.hearsay, verdict.absent, verdict.concluded) == (2, 0, 0, True)
    assert (verdict.exporter, verdict.exported_at, verdict.network) == (ANN.node, LATER, NETWORK)
    assert code_of(working().transcript(tmp_path), OTHER_MESH) == "wrong-network"


def test_a_team_that_works_on_is_told_up_to_its_last_decision(tmp_path: Path) -> None:
    book = Book()
    book.elect()
    book.decide(Discuss(ANN.node, "ann", "first"))
    book.add(book.entry(step=b"undecided"), decided=False)
    _, verdict = read(book.transcript(tmp_path))
    assert (verdict.entries, verdict.concluded, verdict.hearsay) == (3, False, 1)


def test_an_entry_that_the_rules_refuse_is_shown_as_refused_and_changes_nothing(tmp_path: Path) -> None:
    book = Book()
    book.elect()
    book.decide(Hear(1, "nobody asked"), Discuss(ANN.node, "ann", "first"))
    events, _ = read(book.transcript(tmp_path))
    assert [(event["index"], event["code"]) for event in events if event["kind"] == "refused"] == [(2, "no-such-turn")]
    assert [event["text"] for event in events if event["kind"] == "said"] == ["first"]


def test_files_come_along_only_when_asked_for_and_are_checked(tmp_path: Path) -> None:
    book = working()
    book.disk.commit(blob_rows())
    assert read(book.transcript(tmp_path))[1].files == 0
    data = book.transcript(tmp_path, with_blobs=True)
    assert read(data)[1].files == 1
    told = records(data)
    first = nth(told, Piece, 0)
    assert code_of(sealed([*told[: first + 2], *told[first + 3 :]])) == "wrong-piece"
    assert code_of(sealed(told[:-2])) == "wrong-piece", "the last piece is not there"
    chunk = DATA[: limits.BLOB_CHUNK_BYTES]
    for spoilt in (Piece(FILE.hash, 0, b"x" + chunk[1:]), Piece(bytes(32), 0, chunk), Piece(FILE.hash, 1, chunk)):
        assert code_of(sealed([*told[: first + 1], spoilt, *told[first + 2 :]])) == "wrong-piece"
    assert code_of(sealed([*told[: first + 1], *told[first:]])) == "wrong-piece", "begun again before it is whole"
    empty = codec.encode(blobs.manifest_of(0, blobs.cut(b"")))
    for stranger in (Piece(blobs.name_of(b""), blobs.MANIFEST, empty), Piece(FILE.hash, blobs.MANIFEST, empty)):
        assert code_of(sealed([*told[:first], stranger])) == "wrong-piece", "no outcome names it"


def test_a_file_that_the_disk_does_not_hold_is_said_to_be_missing(tmp_path: Path) -> None:
    _, verdict = read(working().transcript(tmp_path, with_blobs=True))
    assert (verdict.files, verdict.absent) == (0, 1)
    book = working()
    book.disk.commit(blob_rows()[:3])  # the last piece is lost
    events, verdict = read(book.transcript(tmp_path, with_blobs=True))
    assert (verdict.files, verdict.absent) == (0, 1)
    gap = next(event for event in events if event["kind"] == "absent")
    assert (gap["what"], gap["name"], gap["first"], gap["last"]) == ("blob", FILE.hash.hex(), 2, 2)


def blob_rows() -> list[Save]:
    manifest = codec.encode(blobs.manifest_of(len(DATA), blobs.cut(DATA)))
    pieces = [manifest, *blobs.cut(DATA)]
    return [Save(f"blob/{FILE.hash.hex()}/{number}", b"", piece) for number, piece in enumerate(pieces, -1)]


# -- what is missing


def test_lines_that_the_disk_lost_are_said_to_be_missing_and_the_rest_still_holds(tmp_path: Path) -> None:
    book = Book()
    book.elect()
    for number in range(5):
        book.say(BOB, f"line {number}")
    book.say(CY, "I read all that", (BOB, 5))
    for seq in (2, 3):
        book.lose_line(BOB, seq)
    events, verdict = read(book.transcript(tmp_path))
    gaps = [(event["first"], event["last"]) for event in events if event["kind"] == "absent"]
    assert (gaps, verdict.lines, verdict.absent) == ([(2, 3)], 4, 2)
    told = records(book.transcript(tmp_path))
    silent = [record for record in told if not isinstance(record, Absent)]
    assert code_of(sealed(silent)) == "wrong-line", "a gap that nobody tells of is a lie"


def test_lines_that_others_had_read_and_the_exporter_lacks_are_told(tmp_path: Path) -> None:
    book = Book()
    book.elect()
    book.say(CY, "so that is why", (BOB, 2))
    events, verdict = read(book.transcript(tmp_path))
    assert [(event["first"], event["last"]) for event in events if event["kind"] == "absent"] == [(1, 2)]
    assert verdict.absent == 2


def test_one_who_claims_to_have_read_what_was_not_written_yet_stops_no_export(tmp_path: Path) -> None:
    book = Book()
    book.elect()
    book.say(CY, "I know what you will say", (BOB, 2))
    book.say(BOB, "what?", (CY, 1))
    book.say(BOB, "no")
    _, verdict = read(book.transcript(tmp_path))
    assert (verdict.lines, verdict.absent) == (3, 0), "they came after all"


def test_decisions_after_a_damaged_one_are_left_out_and_said_to_be_missing(tmp_path: Path) -> None:
    book = working()
    log = f"decision/{TEAM.hex()}"
    book.disk.commit([Save(log, (4).to_bytes(8, "big"), None)])
    _, verdict = read(book.transcript(tmp_path))
    assert (verdict.entries, verdict.absent, verdict.concluded) == (4, 6, False)
    told = records(book.transcript(tmp_path))
    assert code_of(sealed([*told[:-1], Decided(book.frames[5])])) == "wrong-record"


def test_a_fork_is_shown_with_its_proof_and_nothing_counts_beyond_it(tmp_path: Path) -> None:
    book = Book()
    book.elect()
    for text in ("one", "two", "three"):
        book.say(BOB, text)
    book.say(CY, "which two?", (BOB, 3))
    chain = book.chain(BOB)
    book.disk.commit([chain.freeze(2, book.line(BOB, "another two", seq=2))])
    events, verdict = read(book.transcript(tmp_path))
    assert [event["counts_to"] for event in events if event["kind"] == "forked"] == [1]
    assert (verdict.lines, verdict.absent) == (2, 0)
    told = records(book.transcript(tmp_path))
    beyond = Line(book.lines[BOB.node][1])
    assert code_of(sealed([*told[:-1], beyond])) == "after-a-fork"
    lines = [Line(frame) for frame in book.lines[BOB.node]]
    assert code_of(sealed([*told[:2], *lines, told[nth(told, Forked, 0)]])) == "after-a-fork", "told too late"
    honest = Forked(book.lines[BOB.node][0], book.lines[BOB.node][1])
    for accused in (honest, Forked(beyond.frame, beyond.frame), Forked(book.lines[CY.node][0], beyond.frame)):
        assert code_of(sealed([*told[:3], accused, *told[3:]])) == "no-fork"


# -- members that come and go


def growing() -> Book:
    """Eve is let in, votes and speaks; bob is removed, and counts up to his second line."""
    book = working_without_end()
    book.decide(admission(EVE), Promote(EVE.node))
    book.say(EVE, "here I am", (BOB, 2))
    book.say(BOB, "too late", (EVE, 1))
    book.decide(Remove(BOB.node, 2, "asked to"))
    return book


def working_without_end() -> Book:
    book = Book()
    book.elect()
    book.say(BOB, "one")
    book.say(BOB, "two")
    return book


def test_who_came_and_who_went_is_told_and_what_a_removed_one_said_later_is_left_out(tmp_path: Path) -> None:
    book = growing()
    events, verdict = read(book.transcript(tmp_path))
    moves = [(event["how"], event["counts_to"]) for event in events if event["kind"] == "member"]
    assert moves == [("admitted", None), ("promoted", None), ("removed", 2)]
    assert (len(verdict.members), verdict.lines, verdict.absent) == (5, 3, 0)
    told = records(book.transcript(tmp_path))
    assert code_of(sealed([*told[:-1], Line(book.lines[BOB.node][2])])) == "above-the-cut"


def test_a_term_needs_the_votes_of_those_who_are_in_by_then(tmp_path: Path) -> None:
    book = growing()
    now = {"roster_index": 4, "roster_hash": blake(book.frames[4])}
    told = records(book.transcript(tmp_path))

    def term(*voters: NodeKey, **named: Any) -> bytes:
        votes = tuple(book.vote(key, ANN, 2, **named) for key in voters)
        return sealed([*told[:-1], Decided(book.entry(ANN, term=2, certificate=votes))])

    assert read(term(ANN, CY, EVE, **now))[1].terms == 2
    assert code_of(term(ANN, CY, **now)) == "no-quorum"
    assert code_of(term(ANN, BOB, CY, **now)) == "not-a-voter"
    assert code_of(term(ANN, CY, EVE)) == "wrong-vote", "votes under the first roster"


def test_nobody_is_let_in_who_did_not_sign(tmp_path: Path) -> None:
    book = working_without_end()
    told = records(book.transcript(tmp_path))
    for admitted in (admission(EVE, signer=MALLORY), admission(EVE, team=bytes(16))):
        assert code_of(sealed([*told[:-1], Decided(book.entry(step=encode_step(admitted)))])) == "wrong-admission"


# -- logs that were cut short


def long_lived(archive: int, monkeypatch: pytest.MonkeyPatch) -> Book:
    """Entries 1 to 8, a checkpoint as of 6 that is entry 9, one more. archive: entries that stay below it."""
    monkeypatch.setattr(limits, "ARCHIVE_ENTRIES_MAX", archive)
    book = working()
    book.frames.pop()  # not yet at its end
    book.disk.commit([Save(spaces(TEAM)[0], (9).to_bytes(8, "big"), None)])
    book.compact(6)
    book.decide(Conclude("done", "seven", (spec(1).id,)))
    return book


def test_a_log_that_was_cut_short_is_told_whole_as_long_as_the_disk_holds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events, verdict = read(long_lived(100, monkeypatch).transcript(tmp_path))
    assert (verdict.entries, verdict.terms, verdict.absent, verdict.concluded) == (11, 2, 0, True)
    assert not {event["kind"] for event in events} & {"restored", "earlier"}


def test_where_old_entries_are_gone_a_proven_state_leads_on_and_the_rest_still_proves_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = long_lived(2, monkeypatch)
    data = book.transcript(tmp_path)
    events, verdict = read(data)
    assert (verdict.entries, verdict.absent, verdict.concluded, verdict.head) == (7, 4, True, blake(book.frames[-1]))
    gap = next(event for event in events if event["kind"] == "absent")
    assert (gap["what"], gap["first"], gap["last"]) == ("decisions", 1, 4)
    state = next(event for event in events if event["kind"] == "restored")
    assert (state["index"], [task["state"] for task in state["tasks"]]) == (6, ["succeeded"])
    assert [(event["index"], event["step"]) for event in events if event["kind"] == "earlier"] == [
        (5, "outcome"), (6, "elect"),
    ]  # fmt: skip
    assert [event["text"] for event in events if event["kind"] == "said"] == ["so it is"]
    for place, byte in enumerate(data):
        if place % 5 == 0:
            assert code_of(data[:place] + bytes([byte ^ 1]) + data[place + 1 :])


@pytest.mark.parametrize(
    ("lost", "gap", "earlier"),
    [((1, 2, 3, 4, 5, 6), (1, 5), [6]), ((2, 4), (2, 4), [5, 6]), ((1, 3, 6), (1, 3), [4, 5, 6])],
)
def test_of_what_is_left_all_is_told_that_begins_or_leads_to_a_state(
    lost: tuple[int, ...], gap: tuple[int, int], earlier: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last entry before the state is kept with it, as where a member was away and got a snapshot."""
    book = long_lived(100, monkeypatch)
    book.disk.commit([Save(spaces(TEAM)[3], index.to_bytes(8, "big"), None) for index in lost])
    events, verdict = read(book.transcript(tmp_path))
    assert [(each["first"], each["last"]) for each in events if each["kind"] == "absent"] == [gap]
    assert [event["index"] for event in events if event["kind"] == "earlier"] == earlier
    assert (verdict.absent, verdict.concluded) == (gap[1] - gap[0] + 1, True)


def test_a_state_that_leads_over_missing_entries_cannot_be_invented(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = long_lived(2, monkeypatch)
    told = records(book.transcript(tmp_path))
    at = nth(told, State, 0)
    snapshot = codec.decode(told[at].data, Snapshot)  # type: ignore[union-attr]
    other = saved_state.encode(TeamState(ROSTER))

    def given(code: str, **changed: Any) -> None:
        forged = State(codec.encode(codec.replace(snapshot, **changed)), False)
        assert code_of(sealed([*told[:at], forged, *told[at + 1 :]])) == code

    given("wrong-snapshot", state=other)
    given("wrong-snapshot", anchor=book.frames[7])
    given("wrong-snapshot", checkpoint=book.frames[8])
    given("no-quorum", proof=snapshot.proof[:1])
    given("no-certificate", certificate=())
    earlier = nth(told, Decided, 1)
    assert code_of(sealed([*told[:earlier], *told[earlier + 1 :]])) == "wrong-entry", "one of them left out"
    assert code_of(sealed([*told[:earlier], Decided(book.frames[7])])) == "wrong-entry"
    lines = [record for record in told[: earlier + 1] if isinstance(record, Line)]
    unreached = sealed(told[: earlier + 1], index=6, lines=len(lines))
    assert code_of(unreached) == "wrong-gap", "they do not reach it"
    assert code_of(sealed([*told[:at], *told[at + 1 :]])) == "wrong-record", "no state"
    assert code_of(sealed([*told[: at - 1], *told[at:]])) == "wrong-record", "nothing is said to be missing"
    assert code_of(sealed([*told[:at], State(b"half", True)])) == "wrong-record"


def test_a_state_that_contradicts_itself_is_refused_whoever_decided_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(state: TeamState) -> bytes:
        state.budget = replace(state.budget, held={**state.budget.held, bytes(16): UNLIMITED})
        return honest(state)

    honest = saved_state.encode
    monkeypatch.setattr(saved_state, "encode", broken)
    data = long_lived(2, monkeypatch).transcript(tmp_path)
    assert code_of(data) == "wrong-snapshot"


def test_a_checkpoint_that_names_another_state_than_the_entries_make_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CHECKPOINT_ENTRIES", 3)
    book = working()
    told = records(book.transcript(tmp_path))
    lie = Checkpoint(9, blake(book.frames[9]), 0, bytes(32), saved_state.VERSION)
    assert code_of(sealed([*told[:-1], Decided(book.entry(step=encode_step(lie)))])) == "other-state"
    other = codec.replace(lie, version=saved_state.VERSION + 1)
    read(sealed([*told[:-1], Decided(book.entry(step=encode_step(other)))]))


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


def test_whoever_invents_authors_without_end_is_stopped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(limits, "TRANSCRIPT_AUTHORS_MAX", 9)
    book = working()
    told = records(book.transcript(tmp_path))[:-1]
    crowd = [Line(book.line(NodeKey(bytes([number]) * 32), "hello")) for number in range(50, 62)]
    assert code_of(sealed([*told, *crowd])) == "too-many-authors"


# -- size


def test_five_thousand_entries_are_written_and_read_in_bounded_memory(tmp_path: Path) -> None:
    book = Book()
    book.elect()
    for number in range(2_500):
        book.decide(Spend(Spent(calls=1)))
        book.say((BOB, CY)[number % 2], "x" * 1_500)
    tracemalloc.start()
    try:
        done = book.write(tmp_path / "book.transcript")
        _, written = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        with (tmp_path / "book.transcript").open("rb") as file:
            verdict = drained(file)
        _, both = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (verdict.entries, verdict.lines) == (done.entries, done.lines) == (2_502, 2_500)
    assert done.bytes > 4_500_000
    assert written < 3_000_000, "the newest lines of each author, and a page of rows"
    assert both < 1_000_000


def drained(file: Any) -> Any:
    from ioa_p2p.node.replaying import replay

    told = replay(file)
    while True:
        try:
            next(told)
        except StopIteration as end:
            return end.value

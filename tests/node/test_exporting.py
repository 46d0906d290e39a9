"""What a transcript holds and what a reader makes of it, also where a disk lost some, or a log was cut short."""

import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.effects import Save
from ioa_p2p.gossip import blobs
from ioa_p2p.node.transcript_file import writing
from ioa_p2p.team import saved_state
from ioa_p2p.team.decisions import spaces
from ioa_p2p.team.state import TeamState
from ioa_p2p.wire import codec, limits
from ioa_p2p.wire.decision import Snapshot
from ioa_p2p.wire.ids import blake, network_id
from ioa_p2p.wire.spending import UNLIMITED, Spent
from ioa_p2p.wire.step import (
    Await,
    Checkpoint,
    Conclude,
    Discuss,
    Hear,
    Promote,
    Remove,
    Spend,
    encode_step,
)
from ioa_p2p.wire.transcript import Absent, Decided, Forked, Line, Piece, Start, State
from tests.node.transcripts import (
    DATA,
    FILE,
    LATER,
    Book,
    code_of,
    nth,
    read,
    records,
    sealed,
    working,
)
from tests.team.people import ANN, BOB, CY, DEE, EVE, MALLORY, NETWORK, ROSTER, TEAM, WALL, admission, spec

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
    assert code_of(working().transcript(tmp_path), network_id("another")) == "wrong-network"


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


def test_a_damaged_line_ends_its_authors_chain_and_what_came_after_is_said_to_be_missing(tmp_path: Path) -> None:
    book = Book()
    book.elect()
    for number in range(5):
        book.say(BOB, f"line {number}")
    book.lose_line(BOB, 3, b"\x01\x03 not what it was")
    events, verdict = read(book.transcript(tmp_path))
    gaps = [(event["first"], event["last"]) for event in events if event["kind"] == "absent"]
    assert (gaps, verdict.lines, verdict.absent) == ([(3, 5)], 2, 3)


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


def test_entries_before_a_state_that_do_not_lead_to_it_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = long_lived(2, monkeypatch)
    told = records(book.transcript(tmp_path))
    for place, index in ((nth(told, Decided, 1), 5), (nth(told, Decided, 2), 6)):
        before = blake(book.frames[index - 1])
        other = Decided(book.entry(ANN, index=index, previous=before, step=b"another"))
        assert code_of(sealed([*told[:place], other, *told[place + 1 :]])) == "wrong-entry", index


def test_a_gap_that_reaches_beyond_the_state_or_a_state_without_end_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = records(long_lived(2, monkeypatch).transcript(tmp_path))
    gap = nth(told, Absent, 0)
    assert code_of(sealed([*told[:gap], Absent("decisions", b"", 1, 6), *told[gap + 1 :]])) == "wrong-gap"
    monkeypatch.setattr(limits, "SNAPSHOT_BYTES_MAX", 100)
    assert code_of(sealed(told)) == "record-too-large"


def test_a_file_whose_outcome_is_gone_with_the_old_entries_still_comes_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = long_lived(1, monkeypatch)
    book.disk.commit(blob_rows())
    assert read(book.transcript(tmp_path, with_blobs=True))[1].files == 1


def test_who_came_and_went_before_the_state_still_counts_as_it_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "ARCHIVE_ENTRIES_MAX", 1)
    book = Book()
    book.elect()
    book.decide(admission(EVE), Promote(EVE.node), Remove(EVE.node, 1), Remove(DEE.node))
    book.say(EVE, "here I am")
    book.say(EVE, "still here")
    book.decide(Discuss(ANN.node, "ann", "on we go"))
    book.compact(6)
    _, verdict = read(book.transcript(tmp_path))
    assert (len(verdict.members), verdict.lines, verdict.absent) == (5, 1, 5)
    told = records(book.transcript(tmp_path))
    assert code_of(sealed([*told[:-1], Line(book.lines[EVE.node][1])], index=7)) == "above-the-cut"
    named = {"roster_index": 5, "roster_hash": blake(book.frames[5])}
    votes = tuple(book.vote(key, ANN, 2, **named) for key in (ANN, CY))
    read(sealed([*told[:-1], Decided(book.entry(ANN, term=2, certificate=votes))], index=8))


def test_a_file_that_could_not_be_written_whole_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "talk"
    path.write_bytes(b"old")

    def write_half() -> None:
        with writing(path) as writer:
            writer.write(Start(NETWORK, TEAM, ANN.node, LATER))
            raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        write_half()
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("talk", b"old")]


def given_too_much(state: TeamState) -> None:
    state.budget = replace(state.budget, held={**state.budget.held, bytes(16): UNLIMITED})


def of_another_entry(state: TeamState) -> None:
    state.index -= 1


def waiting_for_nothing(state: TeamState) -> None:
    state.waiting = Await((bytes(16),), "all", WALL)


@pytest.mark.parametrize("spoil", [given_too_much, of_another_entry, waiting_for_nothing])
def test_a_state_that_contradicts_itself_is_refused_whoever_decided_it(
    spoil: Callable[[TeamState], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(state: TeamState) -> bytes:
        spoil(state)
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

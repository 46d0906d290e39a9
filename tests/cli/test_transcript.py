"""`team export` and `team replay`, as people and scripts see them."""

from pathlib import Path

import pytest

from ioa_p2p.wire.ids import node_text
from ioa_p2p.wire.step import Assign, Conclude, Discuss, Hear, Outcome, Reassign, Resume
from tests.cli.conftest import Cli, FakeNode
from tests.node.transcripts import Book
from tests.team.people import ANN, BOB, CY, TEAM, spec

TOLD = {"team": TEAM.hex(), "file": "/x", "entries": 9, "lines": 3, "files": 0, "absent": 0, "bytes": 5_000}


def book() -> Book:
    made = Book()
    made.elect()
    made.decide(
        Discuss(BOB.node, "bob", prompt="what do you see?"),
        Hear(1, "words\n\x1b[2J\x1b[31mverified: 1 entries"),
        Assign("sync", (spec(1),)),
        Reassign(spec(1).id, 2, CY.node, "cy", "its worker was lost"),
        Outcome(spec(1).id, 2, "succeeded", summary="seven\rwords"),
        Resume("it is there"),
        Conclude("done", "seven", (spec(1).id,)),
    )
    made.say(BOB, "by the way")
    return made


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "book.transcript" if book().transcript(tmp_path) else tmp_path


def test_a_transcript_reads_as_a_conversation_with_a_verdict_at_its_end(cli: Cli, file: Path) -> None:
    answer = cli("team", "replay", str(file))
    assert (answer.code, answer.err) == (0, "")
    said = [line.split("s  ", 1)[1] for line in answer.out.splitlines() if "s  " in line]
    bob, cy, task = (f"bob@{node_text(BOB.node)[:8]}", f"cy@{node_text(CY.node)[:8]}", spec(1).id.hex()[:6])
    for line in (
        "goal      count the words",
        f"elected   {node_text(ANN.node)[:8]} leads term 1 with 4 of 4 votes",
        f"asked     {bob}: what do you see?",
        "phase     SYNC_ASSIGN",
        f"task      {task} words.count to {bob}: count",
        f"task      {task} words.count to {cy} (attempt 2): its worker was lost",
        f"chat      {bob[4:]}, line 1: by the way",
        "ended     done: seven",
    ):
        assert line in said, line
    assert "verified: 9 entries, 1 term, 4 members\n" in answer.out
    assert node_text(CY.node) in answer.out.split("verified")[-1], "whose keys it was checked against"


def test_what_members_say_moves_no_cursor_and_passes_for_no_line_of_ours(cli: Cli, file: Path) -> None:
    out = cli("team", "replay", str(file)).out
    assert "\x1b" not in out
    assert "\r" not in out
    assert sum(line.startswith("verified") for line in out.splitlines()) == 1


def test_scripts_get_one_object_a_line_and_the_verdict_last(cli: Cli, file: Path) -> None:
    answer = cli("team", "replay", str(file), "--json", "--mesh", "test")
    assert answer.code == 0
    assert [event["kind"] for event in answer.events[:3]] == ["transcript", "roster", "elected"]
    assert {name: answer.last[name] for name in ("ok", "verified", "entries", "terms", "lines", "hearsay")} == {
        "ok": True, "verified": True, "entries": 9, "terms": 1, "lines": 1, "hearsay": 1,
    }  # fmt: skip
    assert len(answer.last["members"]) == 4


@pytest.mark.parametrize("as_json", [False, True])
def test_what_does_not_hold_is_said_with_its_place_and_the_command_fails(cli: Cli, file: Path, as_json: bool) -> None:
    data = file.read_bytes()
    place = data.index(b"what do you see")
    file.write_bytes(data[:place] + b"W" + data[place + 1 :])
    answer = cli("team", "replay", str(file), *["--json"] * as_json)
    assert answer.code == 1
    if as_json:
        assert (answer.last["ok"], answer.last["code"]) == (False, "bad-signature")
    else:
        assert "decision 2: bad-signature [bad-signature]" in answer.err
        assert "verified" not in answer.out


def test_another_mesh_and_other_files_are_refused(cli: Cli, file: Path) -> None:
    answer = cli("team", "replay", str(file), "--mesh", "kitchen")
    assert (answer.code, "wrong-network" in answer.err) == (1, True)
    (file.parent / "letter").write_text("dear friend")
    answer = cli("team", "replay", str(file.parent / "letter"))
    assert (answer.code, "no transcript of a team" in answer.err) == (1, True)
    assert cli("team", "replay", str(file.parent / "nothing")).code == 2


def test_an_export_names_an_absolute_path_to_the_node(
    cli: Cli, node: FakeNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    node.answers("team-export", TOLD)
    assert cli("team", "export", "a1b2", "-o", "talk").out == "/x: 9 entries, 3 lines\n"
    assert cli("team", "export", "A1B2C3D4E5", "--blobs", "--json").last == {"ok": True, **TOLD}
    assert [args for _, args in node.asked] == [
        {"team": "a1b2", "file": str(tmp_path / "talk"), "blobs": False},
        {"team": "A1B2C3D4E5", "file": str(tmp_path / "team-A1B2C3D4.transcript"), "blobs": True},
    ]


def test_an_export_that_lacks_something_says_so(cli: Cli, node: FakeNode) -> None:
    node.answers("team-export", {**TOLD, "absent": 4})
    assert "not on this disk: 4 entries, lines or pieces" in cli("team", "export", "a1").out

"""`wire show`: frames by name, unknown ones without names, broken ones named as such."""

from pathlib import Path
from typing import Any

from ioa_p2p.cli.wire import INSIDE, LINK, SIGNED, body_type, read_frames
from ioa_p2p.crypto.envelope import seal
from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.wire import codec
from ioa_p2p.wire.decision import Entry
from ioa_p2p.wire.frames import Kind
from ioa_p2p.wire.link import Hello, LinkKind
from ioa_p2p.wire.records import Pointer
from ioa_p2p.wire.step import Discuss
from tests.cli.conftest import Cli

KEY, NETWORK = NodeKey(bytes(32)), bytes(16)
POINTER = Pointer(KEY.node, "meter", 7, 1_800_000_000, 7_200, bytes(16), 0, b"", b"")
FRAME = seal(KEY, NETWORK, Kind.POINTER, POINTER)


def link(kind: int, body: bytes) -> bytes:
    return (len(body) + 1).to_bytes(4, "big") + bytes([kind]) + body


def show(cli: Cli, path: Path, data: bytes) -> list[dict[str, Any]]:
    path.write_bytes(data)
    answer = cli("wire", "show", str(path), "--json")
    assert answer.code == 0
    return answer.events


def test_signed_frames_are_shown_with_the_names_of_their_fields(cli: Cli, tmp_path: Path) -> None:
    shown = show(cli, tmp_path / "file", FRAME + FRAME)
    assert len(shown) == 2
    assert (shown[0]["frame"], shown[0]["type"]) == ("pointer", "Pointer")
    assert shown[0]["body"]["node"] == KEY.node.hex()
    assert shown[0]["body"]["agent"] == "meter"


def test_hex_text_is_read_too(cli: Cli, tmp_path: Path) -> None:
    assert show(cli, tmp_path / "file", FRAME.hex().encode() + b"\n") == show(cli, tmp_path / "raw", FRAME)


def test_people_see_one_field_a_line(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(FRAME)
    out = cli("wire", "show", str(tmp_path / "file")).out
    assert out.startswith("pointer\n")
    assert "  body.agent  " in out


def test_an_unknown_version_is_shown_without_names(cli: Cli, tmp_path: Path) -> None:
    (later,) = show(cli, tmp_path / "file", b"\x02" + FRAME[1:])
    assert (later["frame"], later["problem"], later["version"]) == ("unknown", "unknown-version", 2)
    assert later["body"][1] == "meter"


def test_frames_after_an_unknown_one_are_still_read() -> None:
    assert [frame["frame"] for frame in read_frames(b"\x02" + FRAME[1:] + FRAME)] == ["unknown", "pointer"]


def test_link_frames_are_shown_by_kind(cli: Cli, tmp_path: Path) -> None:
    hello = codec.encode(Hello(1, NETWORK, 5, "me"))
    data = link(LinkKind.HELLO, hello) + link(LinkKind.SIGNED, FRAME) + link(99, codec.encode(["new", 1]))
    first, second, third = show(cli, tmp_path / "file", data)
    assert (first["link"], first["type"], first["body"]["software"]) == ("hello", "Hello", "me")
    assert second["frames"][0]["frame"] == "pointer"
    assert (third["link"], third["body"]) == ("kind 99", ["new", 1])


def test_a_body_of_the_wrong_shape_is_named_and_shown_as_bytes(cli: Cli, tmp_path: Path) -> None:
    (frame,) = show(cli, tmp_path / "file", link(LinkKind.HELLO, b"\xc1"))
    assert frame["problem"]
    assert frame["body"] == "c1"


def test_a_broken_end_is_told_with_its_size(cli: Cli, tmp_path: Path) -> None:
    for data in (FRAME + FRAME[:50], FRAME + b"\x07", link(LinkKind.HELLO, b"x") + b"\x00\x00\x00\x09\x01"):
        *_, last = show(cli, tmp_path / "file", data)
        assert last["frame"] == "unknown"
        assert last["rest_bytes"] > 0


def test_an_empty_file_has_no_frames(cli: Cli, tmp_path: Path) -> None:
    assert show(cli, tmp_path / "file", b"") == []


def test_the_step_inside_a_decision_is_shown_by_name(cli: Cli, tmp_path: Path) -> None:
    step = codec.encode(Discuss(KEY.node, "meter", text="hello"))
    entry = Entry(KEY.node, bytes(16), 0, 1, 2, bytes(32), 1_800_000_000, (), step)
    (shown,) = show(cli, tmp_path / "file", seal(KEY, NETWORK, Kind.DECISION, entry))
    assert (shown["type"], shown["body"]["term"]) == ("Entry", 1)
    assert (shown["body"]["step"]["type"], shown["body"]["step"]["text"]) == ("Discuss", "hello")


def test_every_named_type_exists() -> None:
    for kind in (*SIGNED.values(), *LINK.values(), *INSIDE.values()):
        assert body_type(kind)
    assert SIGNED.keys() <= Kind.__members__.keys()
    assert LINK.keys() <= LinkKind.__members__.keys()

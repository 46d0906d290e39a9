"""`ioa-p2p wire show FILE`: signed or link frames, named; what is unknown is shown without names.

file ──> frames ──> kind ──> its type in wire/ ──> {field: value}
                      └─ unknown kind or version ──> plain MessagePack
"""

import importlib
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import click

from ioa_p2p.cli.here import Here, node_command

if TYPE_CHECKING:
    from ioa_p2p.errors import PeerError

_HEADER = struct.Struct(">BBH")
_LINK_HEADER = struct.Struct(">IB")
FILE_BYTES_MAX = 64 * 1024 * 1024  # a transcript of a long day; more is cut, and said so

SIGNED = {
    "RECORD": "records.AgentRecord",
    "POINTER": "records.Pointer",
    "LOG": "gossip.Entry",
    "VOTE": "decision.Vote",
    "DECISION": "decision.Entry",
    "INVITE": "team.Invite",
    "BID": "team.Bid",
    "SEEDS": "seeds.SeedList",
    "TRANSCRIPT": "transcript.Seal",
}
LINK = {
    "HELLO": "link.Hello",
    "CHANNEL": "gossip.ChannelMessage",
    "DECISION": "decision.DecisionMessage",
    "TEAM": "team.TeamMessage",
    "DIRECTORY": "dht.Directory",
}
"""Kind -> the type of its body, in wire/. Bodies of other kinds are shown without names."""

INSIDE = {("Entry", "step"): "step.Step", ("Found", "roster"): "roster.Roster"}
"""(Type, field) -> the type of the bytes in it."""


@click.group()
def command() -> None:
    """Look at what crosses the wire."""


@node_command(command, name="show")
@click.argument("file", type=click.File("rb"))
def show(here: Here, file: BinaryIO) -> None:
    """The frames in FILE ('-': standard input), binary or as hex text."""
    from ioa_p2p.node.control import plain

    count = 0
    for frame in read_frames(_bytes_of(file)):
        count += 1
        here.out.event(plain(frame))
        here.out.line(_text(plain(frame)))
    here.out.result({"frames": count})


def read_frames(data: bytes) -> Iterator[dict[str, Any]]:
    """Frames one after another. Link frames begin with a zero (their length is below 2^24), signed ones do not."""
    while data:
        frame, data = _link_frame(data) if data[0] == 0 else _signed_frame(data)
        yield frame


def _bytes_of(file: BinaryIO) -> bytes:
    data = file.read(FILE_BYTES_MAX)
    try:
        return bytes.fromhex(data.decode("ascii"))
    except ValueError:
        return data


def _signed_frame(data: bytes) -> tuple[dict[str, Any], bytes]:
    from ioa_p2p.errors import PeerError
    from ioa_p2p.wire import frames

    try:
        frame, rest = frames.take(data)
    except PeerError as fault:
        return _unknown_frame(data, fault)
    name = frame.kind.name
    return {"frame": name.lower(), **_body(frame.body, SIGNED.get(name)), "signature": frame.signature}, rest


def _unknown_frame(data: bytes, fault: "PeerError") -> tuple[dict[str, Any], bytes]:
    """A frame of a version or kind we do not know, or the broken rest of the file."""
    from ioa_p2p.wire import limits

    version, kind, length = _HEADER.unpack(data[:4].ljust(4, b"\0"))
    end = 4 + length + limits.SIGNATURE_BYTES
    head = {"frame": "unknown", "problem": fault.code, "version": version, "kind": kind}
    if fault.code not in ("unknown-version", "unknown-kind", "no-signer") or len(data) < end:
        return {**head, "rest_bytes": len(data)}, b""
    body = data[4 : end - limits.SIGNATURE_BYTES]
    return {**head, **_body(body, None), "signature": data[end - limits.SIGNATURE_BYTES : end]}, data[end:]


def _link_frame(data: bytes) -> tuple[dict[str, Any], bytes]:
    from ioa_p2p.wire import limits
    from ioa_p2p.wire.link import LinkKind

    length, number = _LINK_HEADER.unpack(data[:5].ljust(5, b"\0"))
    if not 0 < length <= limits.LINK_FRAME_BYTES_MAX or len(data) < 4 + length:
        return {"frame": "unknown", "problem": "link-frame-length", "rest_bytes": len(data)}, b""
    name = {kind.value: kind.name for kind in LinkKind}.get(number, f"kind {number}")
    body, rest = data[5 : 4 + length], data[4 + length :]
    if name == "SIGNED":
        return {"link": "signed", "frames": list(read_frames(body))}, rest
    return {"link": name.lower(), **_body(body, LINK.get(name))}, rest


def _body(body: bytes, kind: str | None) -> dict[str, Any]:
    """The body by its type, or without names, or as bytes."""
    from ioa_p2p.errors import PeerError
    from ioa_p2p.wire import codec

    try:
        if kind is None:
            return {"body": codec.read_any(body)}
        message = codec.decode(body, body_type(kind))
        return {"type": type(message).__name__, "body": _named(message)}
    except PeerError as fault:
        return {"problem": str(fault), "body": body}


def body_type(kind: str) -> Any:
    module, name = kind.split(".")
    return getattr(importlib.import_module(f"ioa_p2p.wire.{module}"), name)


def _named(value: Any) -> Any:
    """Messages as {field: value}."""
    names: tuple[str, ...] | None = getattr(value, "__struct_fields__", None)
    if names is not None:
        return {name: _field(type(value).__name__, name, getattr(value, name)) for name in names}
    if isinstance(value, (tuple, list)):
        return [_named(item) for item in cast(list[Any], value)]
    return value


def _field(owner: str, name: str, value: Any) -> Any:
    """A field's value; bytes that hold a message of their own are opened."""
    from ioa_p2p.errors import PeerError
    from ioa_p2p.wire import codec

    kind = INSIDE.get((owner, name))
    if kind is None or not value:
        return _named(value)
    try:
        inner = codec.decode(value, body_type(kind))
        return {"type": type(inner).__name__, **_named(inner)}
    except PeerError:
        return value


def _text(frame: dict[str, Any]) -> str:
    from ioa_p2p.cli.output import pairs

    head = frame.get("frame") or f"link {frame['link']}"
    return f"{head}\n" + "\n".join("  " + line for line in pairs({**frame, "frame": head}).splitlines()[1:])

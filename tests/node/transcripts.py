"""Teams on a disk, made by hand from real signatures, and their transcripts, taken apart and put together."""

import hashlib
import io
import struct
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from ioa_p2p.crypto.envelope import seal
from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.effects import Save
from ioa_p2p.errors import PeerError
from ioa_p2p.gossip import blobs
from ioa_p2p.gossip.log import Chain
from ioa_p2p.node.exporting import Exported, Source, export
from ioa_p2p.node.replaying import Verdict, replay
from ioa_p2p.node.transcript_file import Reader, Writer
from ioa_p2p.storage.memory import MemoryStorage
from ioa_p2p.team import saved_state
from ioa_p2p.team.audit import LogAudit
from ioa_p2p.team.decisions import Decisions, HardState, held_of, spaces
from ioa_p2p.team.machine import SPACE, TeamRow
from ioa_p2p.wire import codec, gossip
from ioa_p2p.wire.decision import Entry, Vote
from ioa_p2p.wire.frames import Kind
from ioa_p2p.wire.ids import blake
from ioa_p2p.wire.step import (
    Assign,
    Blob,
    Checkpoint,
    Conclude,
    Discuss,
    Hear,
    Outcome,
    Resume,
    Step,
    encode_step,
    roster_step,
)
from ioa_p2p.wire.transcript import End, Record, Seal, Start
from tests.team.people import ANN, BOB, CY, DEE, NETWORK, ROSTER, TEAM, WALL, founding, member, spec

PAIR = codec.replace(ROSTER, members=(member(ANN, "ann"), member(BOB, "bob")))
LATER = WALL + 1_000
DATA = bytes(range(256)) * 500  # three pieces
FILE = Blob("counts.csv", "text/csv", blobs.name_of(DATA), len(DATA))


def read(data: bytes, network: bytes | None = None) -> tuple[list[dict[str, Any]], Verdict]:
    """All events of a file, and the verdict. Raises PeerError."""
    events: list[dict[str, Any]] = []
    told = replay(io.BytesIO(data), network)
    while True:
        try:
            events.append(next(told))
        except StopIteration as end:
            return events, end.value


def code_of(data: bytes, network: bytes | None = None) -> str:
    with pytest.raises(PeerError) as refused:
        read(data, network)
    return refused.value.code


class Book:
    """A team whose log and talk are written here, as they would lie on a member's disk."""

    def __init__(self, founded: bytes | None = None, signers: Sequence[NodeKey] = (ANN, BOB, CY, DEE)) -> None:
        self.disk = MemoryStorage()
        self.frames = [founded or founding()]
        self.lines: dict[bytes, list[bytes]] = {}
        self._signers = {key.node: key for key in signers}
        self._term, self._leader, self._at = 0, signers[0], WALL
        self.disk.commit([Save(SPACE, TEAM, codec.encode(TeamRow(self.frames[0])))])

    def vote(self, voter: NodeKey, chosen: NodeKey, term: int, network: bytes = NETWORK, **changed: Any) -> bytes:
        end = codec.decode(self.frames[-1][4:-64], Entry)
        fields = {"roster_index": 0, "roster_hash": blake(self.frames[0]), "last_index": end.index}
        fields |= {"team": TEAM, "incarnation": 0, "last_term": end.term}
        return seal(voter, network, Kind.VOTE, Vote(**{
            "node": voter.node, "term": term, "candidate": chosen.node, **fields, **changed}))  # fmt: skip

    def elect(self, leader: NodeKey = ANN, votes: Sequence[bytes] | None = None) -> None:
        """By all, unless told otherwise."""
        self._term, self._leader = self._term + 1, leader
        certificate = tuple(votes or (self.vote(key, leader, self._term) for key in self._signers.values()))
        self.add(self.entry(certificate=certificate))

    def decide(self, *steps: Step) -> None:
        for step in steps:
            self.add(self.entry(step=encode_step(step)))

    def entry(self, signer: NodeKey | None = None, network: bytes = NETWORK, **changed: Any) -> bytes:
        """The next, or one that pretends to be."""
        self._at += 1
        by = signer or self._leader
        fields = {"team": TEAM, "incarnation": 0, "term": self._term, "index": len(self.frames), "at": self._at}
        fields |= {"previous": blake(self.frames[-1]), "certificate": (), "step": b""}
        return seal(by, network, Kind.DECISION, Entry(**{"node": by.node, **fields, **changed}))

    def add(self, frame: bytes, *, decided: bool = True) -> None:
        log, votes, *_ = spaces(TEAM)
        key = len(self.frames).to_bytes(8, "big")
        vote = Save(votes, b"state", codec.encode(HardState(0, self._term, b"", True)))
        self.disk.commit([Save(log, key, frame), vote, *([Save(votes, b"commit", key)] if decided else [])])
        self.frames.append(frame)

    def compact(self, index: int) -> None:
        """Decide a checkpoint as of entry `index`, and let it stand for the entries up to there."""
        log = LogAudit(NETWORK, TEAM, self.frames[0])
        for frame in self.frames[1 : index + 1]:
            log.take(frame)
        state = saved_state.encode(log.state)
        changes = [0, *(place for place in range(1, index + 1) if roster_step(held_of(self.frames[place]).entry.step))]
        self.decide(Checkpoint(index, blake(self.frames[index]), changes[-1], blake(state), saved_state.VERSION))
        decisions = Decisions(held_of(self.frames[0]), NETWORK, lambda space: list(self.disk.scan(space)))
        decisions.compact(index, state, len(self.frames) - 1)
        self.disk.commit(decisions.drain())

    def line(self, author: NodeKey, text: str, network: bytes = NETWORK, **changed: Any) -> bytes:
        """The author's next, or one that pretends to be."""
        before = self.lines.get(author.node, [])
        fields = {"team": TEAM, "epoch": 0, "seq": len(before) + 1, "seen": (), "kind": "text", "at": self._at}
        fields |= {"previous": blake(before[-1]) if before else bytes(32), "body": text.encode()}
        return seal(author, network, Kind.LOG, gossip.Entry(**{"node": author.node, **fields, **changed}))

    def say(self, author: NodeKey, text: str, *read_: tuple[NodeKey, int]) -> bytes:
        frame = self.line(author, text, seen=tuple((key.node, seq) for key, seq in read_))
        lines = self.lines.setdefault(author.node, [])
        lines.append(frame)
        space = f"chat/{TEAM.hex()}/{author.node.hex()}/{len(lines) // 64:x}"
        self.disk.commit([Save(space, len(lines).to_bytes(8), frame)])
        return frame

    def lose_line(self, author: NodeKey, seq: int, instead: bytes = b"hole") -> None:
        space = f"chat/{TEAM.hex()}/{author.node.hex()}/{seq // 64:x}"
        self.disk.commit([Save(space, seq.to_bytes(8), instead)])

    def chain(self, author: NodeKey) -> Chain:
        chain = Chain(TEAM, author.node, lambda space: list(self.disk.scan(space)))
        list(chain.load())
        return chain

    def write(self, path: Path, by: NodeKey = ANN, *, with_blobs: bool = False) -> Exported:
        return export(Source(self.disk, by, NETWORK), TEAM, path, LATER, with_blobs=with_blobs)

    def transcript(self, folder: Path, by: NodeKey = ANN, *, with_blobs: bool = False) -> bytes:
        self.write(folder / "book.transcript", by, with_blobs=with_blobs)
        return (folder / "book.transcript").read_bytes()


# -- two lives of a team


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


# -- files taken apart


def nth(told: list[Record], kind: type[Any], number: int) -> int:
    """Where the record stands; -1 is the last of its kind."""
    return [place for place, record in enumerate(told) if isinstance(record, kind)][number]


def records(data: bytes) -> list[Record]:
    return list(Reader(io.BytesIO(data)).records())


def places(data: bytes) -> Iterator[int]:
    """Where each record begins, and the end."""
    reader = Reader(io.BytesIO(data))
    for _ in reader.records():
        yield reader.place
    yield len(data)


def sealed(told: Iterable[Record], by: NodeKey = ANN, **changed: Any) -> bytes:
    """A file of these records, the seal (if there is one among them) set anew: by one who means to deceive."""
    told = [record for record in told if not isinstance(record, End)]
    file = io.BytesIO()
    writer = Writer(file)
    for record in told:
        writer.write(record)
    writer.write(End(seal(by, NETWORK, Kind.TRANSCRIPT, _seal(told, by, writer.digest, changed))))
    return file.getvalue()


def _seal(told: Sequence[Record], by: NodeKey, digest: bytes, changed: dict[str, Any]) -> Seal:
    decided = sum(type(record).__name__ == "Decided" for record in told)
    lines = sum(type(record).__name__ == "Line" for record in told)
    start = next((record for record in told if isinstance(record, Start)), Start(NETWORK, TEAM, by.node, LATER))
    fields = {"node": start.node, "team": start.team, "at": start.at}
    return Seal(**{**fields, "index": decided - 1, "lines": lines, "digest": digest, **changed})


def before_the_seal(data: bytes) -> bytes:
    return data[: list(places(data))[-2]]


def resealed(data: bytes, altered: bytes, by: NodeKey = ANN) -> bytes:
    """What stands in place of all before the seal of `data`, under a seal that fits it."""
    end = records(data)[-1]
    assert isinstance(end, End)
    told = codec.replace(codec.decode(end.frame[4:-64], Seal), digest=hashlib.blake2b(altered, digest_size=32).digest())
    body = codec.encode(End(seal(by, NETWORK, Kind.TRANSCRIPT, told)))
    return altered + struct.pack(">I", len(body)) + body

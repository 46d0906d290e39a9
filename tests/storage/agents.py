"""Agents for tests of the local directory: records with frames of the right shape, and the cards they name.

The directory is handed what was proven before, so the frames here carry no signature worth checking.
"""

from ioa_p2p.wire import codec, frames, ids
from ioa_p2p.wire.frames import Kind
from ioa_p2p.wire.records import AgentRecord, Card, Skill
from tests.wire.samples import record

WALL = 1_800_000_000.0


def node(number: int) -> bytes:
    return ids.blake(b"node %d" % number)


def card(name: str, description: str = "", *skills: Skill) -> Card:
    return Card(name=name, description=description, skills=skills)


def record_of(number: int, card: Card, seq: int = 1, issued: float = WALL, **changes: object) -> AgentRecord:
    fields = {
        "node": node(number),
        "agent": card.name,
        "seq": seq,
        "issued": int(issued),
        "skills": tuple(skill.name for skill in card.skills)[:10],
        "card": ids.blake(codec.encode(card)),
    }
    return record(**{**fields, **changes})


def frame_of(record: AgentRecord, salt: int = 0) -> bytes:
    """salt: another frame of the same record, as a clone's would be."""
    body = codec.encode(record)
    return frames.header(Kind.RECORD, body) + body + bytes([salt]) * 64

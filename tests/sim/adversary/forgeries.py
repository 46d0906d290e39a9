"""Twenty kinds of records and pointers that nobody may keep or believe: `KINDS[name](number, wall_s) -> frame`.

Mallory has her own key, and everything that others ever signed. Each number gives another frame.
"""

import random
from collections.abc import Callable

from ioa_p2p.crypto import envelope
from ioa_p2p.crypto.keys import NodeKey
from ioa_p2p.wire import limits
from ioa_p2p.wire.frames import Kind
from ioa_p2p.wire.records import AgentRecord, Pointer
from tests.dht.frames import forged, sealed
from tests.wire.samples import ALICE, BOB, MALLORY, NETWORK, OTHER_NETWORK, pointer, record

TTL_S = 600
Forge = Callable[[int, int], bytes]


def genuine(number: int, wall_s: int, key: NodeKey = BOB, **changes: object) -> bytes:
    return sealed(_record(number, wall_s, key, **changes), key)


def _record(number: int, wall_s: int, key: NodeKey = MALLORY, **changes: object) -> AgentRecord:
    fields = {"agent": f"agent-{number}", "seq": wall_s * 1_000, "issued": wall_s, "ttl": TTL_S}
    return record(key, **{**fields, **changes})


def _pointer(number: int, wall_s: int, key: NodeKey = MALLORY, **changes: object) -> Pointer:
    fields = {"agent": f"agent-{number}", "seq": wall_s * 1_000, "issued": wall_s, "ttl": TTL_S}
    return pointer(key, **{**fields, **changes})


def _own(body: AgentRecord | Pointer, network: bytes = NETWORK) -> bytes:
    return sealed(body, MALLORY, network)


def _flipped(raw: bytes, place: int) -> bytes:
    return raw[:place] + bytes([raw[place] ^ 0x10]) + raw[place + 1 :]


def _relabelled(raw: bytes, kind: Kind) -> bytes:
    return raw[:1] + bytes([kind]) + raw[2:]


def _far_too_many_skills(number: int, wall_s: int) -> bytes:
    skills = tuple(f"skill-{number}-{one}" for one in range(limits.RECORD_SKILLS_MAX + 1))
    return _own(_record(number, wall_s, skills=skills))


def _rewritten(number: int, wall_s: int) -> bytes:
    """Bob's record with Mallory's address, under Bob's signature of the true one."""
    raw, other = genuine(number, wall_s), genuine(number, wall_s, endpoint="127.0.0.1:6666")
    return other[: -limits.SIGNATURE_BYTES] + raw[-limits.SIGNATURE_BYTES :]


def _garbage(number: int, wall_s: int) -> bytes:
    return random.Random(number).randbytes(600)


KINDS: dict[str, Forge] = {
    "record signed by another": lambda n, w: forged(_record(n, w, BOB), BOB),
    "pointer signed by another": lambda n, w: forged(_pointer(n, w, BOB), BOB),
    "newer seq signed by another": lambda n, w: forged(_record(n, w, ALICE, seq=1 << 60), ALICE),
    "end signed by another": lambda n, w: forged(_record(n, w, ALICE, gone=True), ALICE),
    "bit of the signature": lambda n, w: _flipped(genuine(n, w), -1 - n % limits.SIGNATURE_BYTES),
    "body rewritten": _rewritten,
    "of another mesh": lambda n, w: _own(_record(n, w), OTHER_NETWORK),
    "record called a pointer": lambda n, w: _relabelled(_own(_pointer(n, w)), Kind.RECORD),
    "pointer called a record": lambda n, w: _relabelled(_own(_record(n, w, skills=(), addresses=())), Kind.POINTER),
    "vote": lambda n, w: envelope.seal(MALLORY, NETWORK, Kind.VOTE, (MALLORY.node, n)),
    "record expired": lambda n, w: _own(_record(n, w, issued=w - TTL_S - limits.CLOCK_SKEW_S)),
    "pointer expired": lambda n, w: _own(_pointer(n, w, issued=w - TTL_S - limits.CLOCK_SKEW_S - n)),
    "record of the future": lambda n, w: _own(_record(n, w, issued=w + limits.CLOCK_SKEW_S + 1 + n)),
    "ttl too long": lambda n, w: _own(_record(n, w, ttl=limits.TTL_S_MAX + 1)),
    "ttl too short": lambda n, w: _own(_record(n, w, ttl=limits.TTL_S_MIN - 1)),
    "too many skills": _far_too_many_skills,
    "name of no agent": lambda n, w: _own(_record(n, w, agent=f"Agent {n}")),
    "body of no record": lambda n, w: envelope.seal(MALLORY, NETWORK, Kind.RECORD, (MALLORY.node, f"a-{n}", w)),
    "cut off": lambda n, w: _own(_record(n, w))[: 80 + n % 100],
    "garbage": _garbage,
}  # fmt: skip

assert len(KINDS) == 20
